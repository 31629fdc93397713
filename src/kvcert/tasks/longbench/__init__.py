"""LongBench: 21 datasets and the 13 of LongBench-E, each a task. Known by name without lm-eval, which they need to run."""

from __future__ import annotations

from kvcert.tasks import register
from kvcert.tasks.longbench.catalogue import DATASETS, PREFIX, dataset
from kvcert.tasks.longbench.task import LongBench

for _name in DATASETS:
    _data = dataset(_name)
    register(
        type(
            f"LongBench_{_name}",
            (LongBench,),
            {"name": PREFIX + _name, "about": f"LongBench {_name}, {_data.language}", "data": _data},
        )
    )
