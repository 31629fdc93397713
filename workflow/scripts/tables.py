"""Write every table."""

from pathlib import Path

from kvcert.paper.tables import write_all
from kvcert.worklog import logged

with logged(snakemake.log[0]):
    write_all(Path(snakemake.config["run"]["results"]), snakemake.config)
