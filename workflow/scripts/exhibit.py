"""Measure one exhibit. Everything was fetched by the rule `setup`: a worker needs no network."""

import os
from pathlib import Path

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1")  # read when the libraries are imported

from kvcert.exhibits import run
from kvcert.worklog import logged

with logged(snakemake.log[0]):
    run(snakemake.wildcards.exhibit, snakemake.config, Path(snakemake.params.root), print)
