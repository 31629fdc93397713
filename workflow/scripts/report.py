"""Write the report page."""

from pathlib import Path

from kvcert.report import write
from kvcert.worklog import logged

RUN = snakemake.config["run"]

with logged(snakemake.log[0]):
    write(Path(RUN["results"]), Path(RUN["figures"]), snakemake.config, Path(snakemake.params.root))
