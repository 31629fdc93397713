"""Random attention written as traces of a small grid, with the registered exhibits shrunk to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import yaml
from safetensors.torch import save_file

from kvcert import config as configuration
from kvcert.exhibits import EXHIBITS
from kvcert.grid import shards

ROOT = Path(__file__).resolve().parents[2]


def registered() -> dict[str, Any]:
    """The exhibits' entries as they lie in preregistration/."""
    found: dict[str, Any] = {}
    for path in sorted((ROOT / "preregistration").glob("exhibits*.yaml")):
        content = yaml.safe_load(path.read_text())
        found |= content.get("exhibits", content)
    return found


def shrunk(folder: Path, name: str, **parameters: Any) -> Path:
    """A root folder whose registration is the real one with some of `name`'s parameters replaced."""
    entries = registered()
    empty = {"title": "", "question": "", "method": "", "parameters": {}, "expectations": []}
    entries[name]["parameters"] |= parameters
    file = folder / "preregistration" / "exhibits.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(yaml.safe_dump({"exhibits": {key: entries.get(key, empty) for key in EXHIBITS}}))
    return folder


def attention(
    seed: int, n: int, *, layers: int = 2, groups: int = 2, heads: int = 4, steps: int = 3, d: int = 8
) -> dict:
    """Tensors of one traced example, named as `runner.trace` names them, without the example's number."""
    g = torch.Generator().manual_seed(seed)
    keys = torch.randn(layers, groups, n, d, generator=g)
    queries = 1.5 * torch.randn(layers, heads, steps, d, generator=g)
    score = (queries[:, ::2] @ keys.transpose(-1, -2) / d**0.5).softmax(-1).mean(2).double()
    data = {"layers": torch.arange(layers) * 3, "keys": keys, "values": torch.randn(keys.shape, generator=g)}
    data |= {"queries": queries, "score.aware.snapkv": score}
    return data | {"score.streaming.snapkv": score.roll(1, -1)}


def grid(folder: Path, *, write: bool = True) -> dict[str, Any]:
    """A resolved configuration with two tasks of two examples, and their traces in its results."""
    config = configuration.load(ROOT / "config" / "config.yaml", ROOT / "config" / "smoke.yaml")
    config["study"]["tasks"] = [
        {"name": name, "length": 320, "examples": 2, "fail_below": 0.5, "params": {}} for name in ("niah", "facts")
    ]  # fmt: skip
    config["run"] |= {
        "results": str(folder / "results"),
        "figures": str(folder / "figures"),
        "trace_examples": 2,
    }
    config = configuration.resolve(config)
    (folder / "results" / "traces").mkdir(parents=True)
    for number, spec in enumerate(shards(config) if write else []):
        tensors: dict[str, torch.Tensor] = {}
        for example in spec["examples"]:
            found = attention(10 * number + example, 150 + 10 * example)
            tensors |= {f"{example}/{name}": value.contiguous() for name, value in found.items()}
        save_file(tensors, folder / "results" / "traces" / f"{spec['shard']}.safetensors")
    return config
