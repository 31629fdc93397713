"""Write the run as a Workflow Run RO-Crate."""

from pathlib import Path

from kvcert.crate import write
from kvcert.worklog import logged

with logged(snakemake.log[0]):
    results, out = Path(snakemake.config["run"]["results"]), Path(snakemake.output[0]).parent
    write(results, Path(snakemake.params.root), snakemake.config, out)
