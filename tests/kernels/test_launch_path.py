"""The Python side of the GPU path, end to end, with the CPU executor in place of the CUDA driver's launch call."""

from __future__ import annotations

import contextlib
import ctypes
from types import SimpleNamespace
from typing import Any

import pytest
import shim
import torch
from problems import LEVEL, agree, paged, problem, reference
from test_draws import random_case

from kvcert.errors import KvcertError
from kvcert.kernels import cuda_decode, cuda_evict
from kvcert.kernels.device import plan_decode
from kvcert.kernels.evict_torch import draw_torch, gather_torch
from kvcert.kernels.types import pack


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    target = tmp_path_factory.mktemp("inproc") / "simt.so"
    return ctypes.CDLL(str(shim.build(target, "inproc.cpp", "-shared", "-fPIC")))


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch, library: ctypes.CDLL) -> list[str]:
    """Names of the kernels launched so far."""
    launched: list[str] = []

    def launch(name: str, grid: tuple[int, ...], threads: int, shared: int, args: ctypes.Structure) -> None:
        launched.append(name)
        code = library.simt_launch(
            name.encode(), ctypes.byref(args), (ctypes.c_uint * 3)(*grid), threads, shared, 5
        )
        assert code == 0, f"{name}: {code}"

    for module in (cuda_decode, cuda_evict):
        monkeypatch.setattr(module, "launch", launch)
        monkeypatch.setattr(module, "kernel", lambda name, device: name)
    monkeypatch.setattr(torch.cuda, "device", lambda device: contextlib.nullcontext())
    monkeypatch.setattr(
        torch.cuda, "get_device_properties", lambda device: SimpleNamespace(multi_processor_count=1)
    )
    return launched


def on_gpu(p: dict[str, Any], certificate: bool, splits: int | None = None) -> Any:
    names = ("q", "k", "v", "log_pi", "begin", "end", "scale", "centre")
    out, stats = cuda_decode.decode_cuda(*(p[n] for n in names), certificate, LEVEL, p.get("pages"), splits)
    return pack(out, stats, p["q"].dtype)


def test_decode(gpu: list[str]) -> None:
    p = problem(2, 2, 3, 1, 64, 150, seed=1, spare=8)
    agree(on_gpu(p, True), reference(p))
    agree(on_gpu(p, False), reference(p))
    agree(on_gpu(paged(p, 16), True, splits=3), reference(p))
    p = problem(1, 1, 4, 2, 128, 70, seed=2, dtype=torch.bfloat16, spare=8)
    agree(on_gpu(p, True, splits=2), reference(p))
    assert gpu == [
        "kvc::split_decode<float,64,3,4,true>", "kvc::combine<float,64,true>",
        "kvc::split_decode<float,64,3,4,false>", "kvc::combine<float,64,false>",
        "kvc::split_decode<float,64,3,4,true>", "kvc::combine<float,64,true>",
        "kvc::split_decode<kvc::bf16,128,4,4,true>", "kvc::combine<kvc::bf16,128,true>",
    ]  # fmt: skip


def test_evict(gpu: list[str]) -> None:
    g = torch.Generator().manual_seed(2)
    e = random_case(g)
    while e["k"].shape[2] > 90 or e["log_pi"] is None:
        e = random_case(g)
    index, count = cuda_evict.draw_cuda(e["pi"], e["positions"], e["begin"], e["name"])
    want, total = draw_torch(e["pi"], e["positions"], e["begin"], e["name"])
    assert torch.equal(count, total)
    end, n = int(count.max()), e["k"].shape[2]
    parts = [e[x] for x in ("k", "v", "pi", "positions", "log_pi")]
    a = cuda_evict.gather_cuda(*parts, index, count, end, end + 4)
    b = gather_torch(*parts, want, total, end, end + 4)
    slots = torch.arange(end + 4)
    valid = (slots >= end - count[..., None]) & (slots < end)
    assert all(torch.equal(x[valid], y[valid]) for x, y in zip(a, b, strict=True))
    assert gpu == ["kvc::draw_units<8>", "kvc::gather_units<8>"]
    assert n >= end


def test_refusals(gpu: list[str]) -> None:
    p = problem(1, 1, 2, 1, 64, 20, spare=8)
    with pytest.raises(KvcertError, match="need one type"):
        on_gpu(p | {"q": p["q"].half()}, True)
    odd = torch.zeros(1, 1, 28, 66)[..., 1:65]
    with pytest.raises(KvcertError, match="16-byte aligned rows"):
        on_gpu(p | {"k": odd}, True)
    with pytest.raises(KvcertError, match="takes head dimensions"):
        on_gpu(problem(1, 1, 2, 1, 32, 20, spare=8), True)
    assert not gpu


@pytest.mark.parametrize("processors", [1, 132])
@pytest.mark.parametrize("end", [1, 63, 64, 65, 4097, 65536])
@pytest.mark.parametrize(
    ("heads", "groups", "steps"), [(9, 3, 1), (32, 8, 1), (7, 1, 3), (8, 8, 40), (5, 1, 1)]
)
def test_every_token_and_row_is_covered_once(
    processors: int, end: int, heads: int, groups: int, steps: int
) -> None:
    plan = plan_decode(2, heads, groups, steps, 128, end, True, processors=processors)
    assert plan.splits * plan.keys >= end > (plan.splits - 1) * plan.keys
    assert plan.rows * plan.chunks >= heads // groups * steps > plan.rows * (plan.chunks - 1)
    assert plan.grid == (plan.splits, groups * plan.chunks, 2)
    assert plan.shared <= 48 * 1024
