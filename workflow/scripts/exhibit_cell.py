"""Run one shard of an exhibit into the exhibits' own folder; no traces."""

import json
import os
from pathlib import Path

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1")  # read when the libraries are imported

from kvcert.runner.shard import run_shard
from kvcert.worklog import logged

RUN = snakemake.config["run"] | {"results": str(Path(snakemake.output.runs).parents[1]), "trace_examples": 0}

with logged(snakemake.log[0]):
    run_shard(json.loads(snakemake.params.spec), RUN, progress=True)
