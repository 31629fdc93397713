"""Score the seven claims."""

from pathlib import Path

from kvcert.claims import score_all
from kvcert.worklog import logged

with logged(snakemake.log[0]):
    score_all(Path(snakemake.config["run"]["results"]), Path(snakemake.params.root), snakemake.config)
