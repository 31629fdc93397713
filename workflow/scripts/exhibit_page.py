"""Write the table and the figure of one exhibit."""

from pathlib import Path

from kvcert.paper.exhibits import publish
from kvcert.worklog import logged

RUN = snakemake.config["run"]

with logged(snakemake.log[0]):
    publish(Path(RUN["results"]), Path(RUN["figures"]), snakemake.params.name)
