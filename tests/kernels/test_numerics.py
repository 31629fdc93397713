"""Hostile inputs: every backend against the float64 reference, and the values that are known exactly."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import shim
import torch
from hostile import HOSTILE, Problem
from problems import agree, reference

from kvcert.kernels import Decoded, decode

#: Cancellation leaves an absolute error of about 1e-6 ||v - c||^2 in the variance; its root is the radius's.
FLOOR = {"identical_values": 0.0, "nearly_identical_values": 1e-9}


def check(name: str, p: Problem, y: Decoded) -> None:
    want = reference(p)
    if name == "identical_values":
        assert float(y.variance.abs().max()) <= 1e-10
        assert float(y.radius.max()) <= 1e-5
        assert float((y.out - want[0]).abs().max()) <= 1e-6
        return
    if name == "nearly_identical_values":
        assert torch.allclose(y.variance.double(), want[1][1], rtol=1e-3, atol=0.0)
        assert torch.allclose(y.radius.double(), want[1][3], rtol=1e-3, atol=0.0)
        return
    if name == "nearly_certain":
        assert float(want[1][1].max()) > 0
        assert torch.allclose(y.variance.double(), want[1][1], rtol=1e-4, atol=0.0)
    if name == "all_certain":
        assert not y.variance.any()
        assert not y.bound.any()
        assert not y.radius.any()
        assert not y.guarded.any()
        assert not y.p_sampled.any()
    if name == "one_sampled_token":
        assert y.guarded.isinf().all()
        assert (y.p_sampled == 1).all()
        assert (y.ess == 1).all()
    if name == "early_query_sees_nothing":
        assert (y.lse[:, :, :2] == -math.inf).all()
        assert not y.out[:, :, :2].any()
        assert not y.radius[:, :, :2].any()
    if name == "dominant_token":
        assert float(y.p_sampled.max()) > 0.5
    agree(y, want, loose=2.0)


@pytest.mark.parametrize("backend", ["cpu", "torch"])
@pytest.mark.parametrize("name", HOSTILE)
def test_host_backends(name: str, backend: str) -> None:
    p = HOSTILE[name]()
    check(name, p, decode(**p, certificate=True, backend=backend))


def test_device_kernels(driver: Path, tmp_path: Path) -> None:
    made = {name: make() for name, make in HOSTILE.items()}
    raw = shim.run(driver, [shim.decode_case(p, splits=4, seed=11) for p in made.values()], tmp_path)
    for (name, p), y in zip(
        made.items(), shim.decode_results(raw, [(p, True) for p in made.values()]), strict=True
    ):
        check(name, p, y)


@pytest.mark.parametrize("backend", ["cpu", "torch"])
def test_a_nan_inside_the_cache_is_not_hidden(backend: str) -> None:
    p = HOSTILE["empty_tail"]()
    p["k"][0, 1, p["end"] - 1] = math.nan
    y = decode(**p, certificate=True, backend=backend)
    assert y.out[0, 3:].isnan().all()
    assert y.variance[0, 3:].isnan().all()
    assert not y.out[0, :3].isnan().any()
