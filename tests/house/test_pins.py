"""One set of versions: the lock satisfies pyproject.toml, environment.yml repeats the lock's pins, and it is installed."""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
#: Conda's names of packages that pip calls otherwise.
CONDA_NAMES = {"pytorch-gpu": "torch", "pytorch": "torch"}


def lock() -> dict[str, Version]:
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    pins = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(name): Version(version) for name, version in pins}


def project() -> dict[str, list[Requirement]]:
    table = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = {"base": table["dependencies"], **table["optional-dependencies"]}
    return {group: [Requirement(text) for text in texts] for group, texts in groups.items()}


def cluster() -> dict[str, str]:
    pins: dict[str, str] = {}
    for entry in yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]:
        if isinstance(entry, dict):
            for text in entry["pip"]:
                requirement = Requirement(text)
                pins[canonicalize_name(requirement.name)] = str(requirement.specifier).removeprefix("==")
        else:
            name, _, version = entry.partition("=")
            pins[canonicalize_name(CONDA_NAMES.get(name, name))] = version.strip("=")
    return pins


def test_the_lock_is_plain_sorted_and_complete() -> None:
    text = [
        line for line in (ROOT / "requirements.lock").read_text().splitlines() if not line.startswith("#")
    ]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][A-Za-z0-9.]*", line) for line in text), (
        "no hash, no local version"
    )
    assert len(lock()) == len(text) > 100


@pytest.mark.parametrize("group", project())
def test_the_lock_satisfies_the_project(group: str) -> None:
    pins = lock()
    for requirement in project()[group]:
        name = canonicalize_name(requirement.name)
        assert name in pins, f"{name} of [{group}] is not locked"
        assert requirement.specifier.contains(pins[name]), f"{requirement} against {pins[name]}"


def test_the_base_needs_no_torch() -> None:
    names = {canonicalize_name(requirement.name) for requirement in project()["base"]}
    assert names
    assert not names & {"torch", "transformers", "tokenizers", "safetensors", "snakemake", "kvpress"}


def test_the_cluster_shares_the_pins() -> None:
    pins, shared = lock(), {name: version for name, version in cluster().items() if name in lock()}
    assert len(shared) >= 20
    assert {"torch", "transformers", "flash-attn", "cuda-version"} <= set(cluster())
    assert shared == {name: str(pins[name]) for name in shared}


def test_the_cluster_has_everything_that_measuring_and_scoring_need() -> None:
    needed = {canonicalize_name(r.name) for group in ("base", "run", "kernels") for r in project()[group]}
    assert needed <= set(cluster())


def test_the_environment_is_the_locked_one() -> None:
    wrong = []
    for group in ("base", "run", "dev"):
        for requirement in project()[group]:
            installed = Version(metadata.version(requirement.name)).public
            if installed != str(lock()[canonicalize_name(requirement.name)]):
                wrong.append(f"{requirement.name} {installed}")
    assert not wrong, f"run `make env`: {', '.join(wrong)}"
