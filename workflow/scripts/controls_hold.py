"""Stop the workflow when a negative control did not do what it must: the instrument is broken then."""

from pathlib import Path

from kvcert.paper.exhibits.console import require_controls
from kvcert.worklog import logged

with logged(snakemake.log[0]):
    require_controls(Path(snakemake.params.found).parents[1])
