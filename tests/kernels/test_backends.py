"""The twin and the torch expression against the float64 reference, over shapes, types and strides."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest
import shim
import torch
from problems import LEVEL, agree, paged, problem, reference

from kvcert.kernels import decode
from kvcert.kernels.reference import decode_reference
from kvcert.survey.hajek import hajek_certificate

BACKENDS = ["cpu", "torch"]
#: rows, KV heads, query heads per KV head, query positions, D, tokens
SHAPES = [
    (2, 3, 3, 1, 64, 450), (2, 2, 3, 12, 64, 200), (1, 2, 3, 40, 64, 130), (1, 2, 8, 5, 128, 130), (2, 1, 1, 1, 16, 33),
    (1, 1, 5, 3, 24, 70), (2, 2, 4, 9, 96, 100), (1, 2, 2, 2, 256, 77), (1, 1, 7, 1, 32, 64), (3, 1, 8, 1, 128, 65),
    (1, 1, 6, 30, 8, 129), (1, 2, 2, 1, 40, 1),
]  # fmt: skip


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.bfloat16, torch.float16], ids=["fp32", "bf16", "fp16"]
)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_against_float64(shape: tuple[int, ...], dtype: torch.dtype, backend: str) -> None:
    for seed, centred in ((1, True), (2, False)):
        p = problem(*shape, dtype=dtype, seed=seed, centred=centred)
        want = reference(p)
        y, plain = decode(**p, certificate=True, backend=backend), decode(**p, backend=backend)
        assert y.out.dtype == dtype
        assert y.variance.dtype == torch.float32
        assert plain.variance is None
        agree(y, want)
        agree(plain, want)


@pytest.mark.parametrize("backend", BACKENDS)
def test_many_threads_give_the_same_bits(backend: str) -> None:
    p = problem(3, 2, 3, 20, 64, 150)
    one = decode(**p, certificate=True, backend=backend)
    torch.set_num_threads(2)
    try:
        two = decode(**p, certificate=True, backend=backend)
    finally:
        torch.set_num_threads(1)
    if backend == "cpu":
        assert all(torch.equal(a, b) for a, b in zip(one, two, strict=True))
    else:
        agree(two, reference(p))


def test_twin_rows_do_not_depend_on_the_batch() -> None:
    p = problem(4, 2, 3, 1, 64, 150, seed=9)
    whole = decode(**p, certificate=True, backend="cpu")
    part = {n: v[2:3] for n, v in p.items() if isinstance(v, torch.Tensor)}
    alone = decode(**(p | part), certificate=True, backend="cpu")
    assert all(torch.equal(a[2:3], b) for a, b in zip(whole, alone, strict=True))


@pytest.mark.parametrize("backend", BACKENDS)
def test_paged_cache(backend: str) -> None:
    p = problem(2, 2, 3, 2, 64, 150, seed=4)
    agree(decode(**paged(p, 32), certificate=True, backend=backend), reference(p))


def test_reference_is_the_survey() -> None:
    """The kernels' reference and the package's statistics are two texts of one definition."""
    p = problem(1, 1, 1, 1, 16, 60, seed=5, ragged=False, spare=0)
    out, stats = decode_reference(**p, level=LEVEL)
    lp, v = p["log_pi"][0, 0].double(), p["v"][0, 0].double()
    logits = (p["k"][0, 0].double() @ p["q"][0, 0, 0].double()) * p["scale"]
    y = hajek_certificate(logits, lp, v, p["centre"][0, 0].double())
    assert torch.allclose(y.out, out[0, 0, 0])
    for name, value in zip(
        ("lse", "variance", "bound", "radius", "guarded", "ess", "p_max", "p_sampled"),
        stats[:, 0, 0, 0],
        strict=True,
    ):
        assert torch.allclose(getattr(y, name).double(), value, rtol=1e-9), name


def test_variance_does_not_depend_on_the_centre() -> None:
    p = problem(2, 2, 3, 1, 64, 200, seed=6)
    a = decode(**p, certificate=True, backend="cpu")
    b = decode(**(p | {"centre": None}), certificate=True, backend="cpu")
    assert torch.allclose(a.variance, b.variance, rtol=1e-4)
    assert not torch.allclose(a.bound, b.bound, rtol=1e-2)


def test_operator_registration() -> None:
    """Schema, fake tensors and dispatch of the custom operator, as torch itself checks them."""
    import kvcert.kernels.twin  # noqa: F401

    p = problem(1, 1, 2, 1, 16, 20, seed=7)
    args = (p["q"], p["k"], p["v"], p["log_pi"], p["begin"], p["end"], p["scale"], p["centre"], True, LEVEL)
    torch.library.opcheck(torch.ops.kvcert.decode_cpu, args, test_utils=("test_schema", "test_faketensor"))


def test_traced_programs_use_the_operator() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    p = problem(1, 2, 3, 2, 16, 20, seed=8)
    with FakeTensorMode() as mode:
        fake = {n: mode.from_tensor(x) if isinstance(x, torch.Tensor) else x for n, x in p.items()}
        y = decode(**fake, certificate=True, backend="cpu")
    assert y.out.shape == p["q"].shape
    assert y.radius.shape == p["q"].shape[:3]


@pytest.mark.slow
@pytest.mark.parametrize("flag", ["-mno-avx512f", "-mno-avx"])
def test_narrower_vectors(flag: str, tmp_path: Path) -> None:
    """The same text for processors without AVX-512 and without AVX."""
    if platform.machine() != "x86_64":
        pytest.skip("x86 only")
    driver = shim.build(tmp_path / "twin", "twin_driver.cpp", "-fopenmp", "-march=native", flag)
    problems = [problem(*shape, seed=i) for i, shape in enumerate(SHAPES)]
    raw = shim.run(driver, [shim.twin_case(p) for p in problems], tmp_path)
    for p, y in zip(problems, shim.decode_results(raw, [(p, True) for p in problems]), strict=True):
        agree(y, reference(p))
