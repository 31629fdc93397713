"""Fetch, check and convert the models and texts; the output is the manifest of what was prepared."""

import json
from pathlib import Path

from kvcert.files import write_atomic
from kvcert.prepare import prepare_all
from kvcert.worklog import logged

with logged(snakemake.log[0]):
    manifest = prepare_all(snakemake.config)
    write_atomic(Path(snakemake.output[0]), json.dumps(manifest, indent=1, sort_keys=True) + "\n")
