"""Pass the logs through the integrity gate; it writes its report or stops the workflow."""

from pathlib import Path

from kvcert.logs.integrity import check
from kvcert.worklog import logged

with logged(snakemake.log[0]):
    check(Path(snakemake.config["run"]["results"]), snakemake.config)
