"""X4 on a tiny model: ratios, missing backends, the second pass, the page's files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from roots import outcomes

from kvcert.exhibits import x4_overhead as x4
from kvcert.exhibits.overhead_cells import LEVEL, noise, two_pass
from kvcert.exhibits.timing import interleaved
from kvcert.kernels.dispatch import missing
from kvcert.kernels.reference import decode_reference
from kvcert.paper.exhibits import load, publish


@pytest.fixture(scope="module")
def found(grid: dict[str, Any], root: Path) -> dict[str, Any]:
    return x4.measure(grid, root, lambda line: None)


def test_every_backend_is_measured_or_says_why(found: dict[str, Any]) -> None:
    for entry in found["expectations"]:
        backend = entry["id"].rsplit("_", 1)[1]
        if missing(backend) is None:
            assert entry["value"] > 0
            assert entry["low"] <= entry["value"] <= entry["high"]
        else:
            assert entry["outcome"] == "not measured"
            assert entry["note"] == missing(backend)
    assert found["about"]["machine"]
    assert "not measured" in outcomes(found).values() or missing("cuda") is None


def test_table_and_figure(found: dict[str, Any], grid: dict[str, Any], tmp_path: Path) -> None:
    results = Path(grid["run"]["results"])
    assert len(publish(results, tmp_path, "X4")) == 5
    frame = load(results, "X4").rows()
    assert (frame["ratio"] * frame["off_ms"]).tolist() == pytest.approx(frame["on_ms"].tolist())


def test_the_second_pass_computes_the_certificate() -> None:
    q, k, v = noise(2, 4, 1, 8, key=1), noise(2, 2, 30, 8, key=2), noise(2, 2, 30, 8, key=3)
    log_pi = (3 * noise(2, 2, 30, key=4)).clamp_max(0.0)
    begin, centre = torch.zeros(2, 2, dtype=torch.int32), v.mean(2)
    out, stats = decode_reference(q, k, v, log_pi, begin, 30, scale=0.5, centre=centre, level=LEVEL)
    mine = two_pass(q, k, v, log_pi, centre, 0.5)
    assert torch.allclose(mine[0].view(2, 4, 1, 8), out.float(), atol=1e-5)
    for value, plane in zip(mine[1:], (3, 4, 5, 6), strict=True):
        assert torch.allclose(value.view(2, 4, 1), stats[plane].float(), rtol=1e-4)


def test_contenders_alternate() -> None:
    order: list[str] = []
    times = interleaved({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, 20, "key")
    assert set(times) == {"a", "b"}
    assert all(set(order[i : i + 2]) == {"a", "b"} for i in range(0, len(order), 2))
    assert {"".join(order[i : i + 2]) for i in range(0, len(order), 2)} == {"ab", "ba"}
