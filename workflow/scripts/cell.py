"""Run one shard and write its Parquet tables."""

import json

from kvcert.runner.shard import run_shard
from kvcert.worklog import logged

with logged(snakemake.log[0]):
    run_shard(json.loads(snakemake.params.spec), snakemake.config["run"], progress=True)
