"""Draw every figure."""

from pathlib import Path

from kvcert.paper.figures import draw_all
from kvcert.worklog import logged

with logged(snakemake.log[0]):
    draw_all(
        Path(snakemake.config["run"]["results"]), Path(snakemake.config["run"]["figures"]), snakemake.config
    )
