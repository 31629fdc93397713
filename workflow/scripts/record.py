"""Store the resolved configuration beside the results, so that they say what they are."""

import json
from pathlib import Path

from kvcert.files import write_atomic
from kvcert.worklog import logged

with logged(snakemake.log[0]):
    write_atomic(Path(snakemake.output[0]), json.dumps(snakemake.params.config, indent=2) + "\n")
