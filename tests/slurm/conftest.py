"""One real Slurm for all tests of this folder, and a small study for each."""

from __future__ import annotations

import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from cluster import Cluster
from install import ensure
from study import Study, overlay, rows_of
from tests.tiny_grid import save_tiny_model

from kvcert.config import load, merge, resolve
from kvcert.grid import shards
from kvcert.runner.shard import run_shard

ROOT = Path(__file__).resolve().parents[2]


def interrupted(number: int, frame: Any) -> None:
    """Turn the first SIGTERM into Ctrl-C, so that fixtures are torn down; later ones must not interrupt that."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A running Slurm; skipped, with the reason, only where Slurm cannot be had."""
    reason = ensure()
    if reason:
        pytest.skip(reason)
    slurm = Cluster(tmp_path_factory.mktemp("slurm"))
    signal.signal(signal.SIGTERM, interrupted)  # a terminated test run must not leave daemons behind
    try:
        slurm.start()
        yield slurm
    finally:
        slurm.stop()


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory, tokenizer: Any) -> Path:
    """Folder of a random two-layer model behind the real tokenizer."""
    return save_tiny_model(tmp_path_factory.mktemp("tiny-model"), tokenizer)


@pytest.fixture(scope="session")
def own_cache(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Path:
    """A cache of these tests' own, with links to what the real one holds: nothing is written outside their folder."""
    folder = tmp_path_factory.mktemp("cache")
    for entry in cache.resolve().iterdir():
        if entry.name == "manifest.json":
            shutil.copy(entry, folder)
        elif entry.is_dir() and entry.name != "prepared":
            (folder / entry.name).symlink_to(entry)
    return folder


@pytest.fixture(scope="session")
def reference(tmp_path_factory: pytest.TempPathFactory, tiny: Path, own_cache: Path) -> dict[str, Any]:
    """The tiny grid's rows by shard, run undisturbed in this process."""
    results = tmp_path_factory.mktemp("reference")
    grid = overlay(tiny, own_cache, str(results))
    config = resolve(merge(load(ROOT / "config" / "config.yaml"), grid))
    for spec in shards(config):
        run_shard(spec, config["run"], progress=False)
    return {spec["shard"]: rows_of(results, spec["shard"]) for spec in shards(config)}


@pytest.fixture
def make_study(
    tmp_path: Path, cluster: Cluster, tiny: Path, own_cache: Path
) -> Iterator[Callable[..., Study]]:
    """`make_study(profile="slurm", **run)`: a fresh project folder with the tiny grid."""
    made: list[Study] = []

    def make(profile: str = "slurm", **run: Any) -> Study:
        grid = overlay(tiny, own_cache, **run)
        made.append(Study(tmp_path / f"project-{len(made)}", cluster, grid, profile))
        return made[-1]

    yield make
    for study in made:
        study.end()


@pytest.fixture
def study(make_study: Callable[..., Study]) -> Study:
    """A fresh project folder with the tiny grid."""
    return make_study()
