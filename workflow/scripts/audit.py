"""Build the evidence bundle of one claim."""

from pathlib import Path

from kvcert.audit import build
from kvcert.worklog import logged

with logged(snakemake.log[0]):
    results, out = Path(snakemake.config["run"]["results"]), Path(snakemake.output[0]).parent
    build(snakemake.params.claim, results, Path(snakemake.params.root), snakemake.config, out)
