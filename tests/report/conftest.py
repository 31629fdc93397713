"""A page from synthetic logs whose answers do their worst, and a browser to read it in."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from worst import Made, hostile

from chromium import chromium
from kvcert.claims import score_all
from kvcert.config import resolve
from kvcert.report import write
from page_driver import Reader
from page_driver import reader as open_browser
from synthetic import write_logs


@pytest.fixture(scope="session")
def made(base_config: dict[str, Any], root: Path, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Two tasks, eight examples each, scored and written as a page."""
    config = copy.deepcopy(base_config)
    config["study"]["tasks"] = [
        task | {"examples": 8} for task in config["study"]["tasks"] if task["name"] in ("niah", "squad_long")
    ]
    config["study"]["max_new_tokens"] = 6
    results = tmp_path_factory.mktemp("results")
    config["run"]["results"] = str(results)
    config = resolve(config)
    write_logs(results, config, seed=3, hook=hostile)
    (results / "config.json").write_text(json.dumps(config))
    score_all(results, root, config)
    page = write(results, results / "figures", config, root)
    runs, steps = (ds.dataset(results / name).to_table().to_pandas() for name in ("runs", "steps"))
    return Made(results, config, page, runs.set_index("run_id"), steps)


@pytest.fixture(scope="session")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """One browser for all tests of a worker."""
    with open_browser(chromium(), tmp_path_factory.mktemp("chromium")) as found:
        yield found


@pytest.fixture
def reader(window: Reader, made: Made) -> Reader:
    """The page, freshly opened on a desktop."""
    window.open(made.page)
    return window
