"""Run one shard and write its Parquet tables. Everything was fetched by the rule `setup`: a worker needs no network."""

import json
import os

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1")  # read when the libraries are imported

from kvcert.runner.shard import run_shard
from kvcert.worklog import logged

with logged(snakemake.log[0]):
    run_shard(json.loads(snakemake.params.spec), snakemake.config["run"], progress=True)
