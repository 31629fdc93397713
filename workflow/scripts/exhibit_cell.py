"""Run one shard of an exhibit into the exhibits' own folder."""

import json
import os

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1")  # read when the libraries are imported

from kvcert.exhibits.grids import operational
from kvcert.runner.shard import run_shard
from kvcert.worklog import logged

with logged(snakemake.log[0]):
    run_shard(json.loads(snakemake.params.spec), operational(snakemake.config), progress=True)
