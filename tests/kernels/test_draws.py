"""The same inclusion set, bit for bit, from the twin, the torch form and the device kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import shim
import torch

from kvcert.errors import KvcertError
from kvcert.kernels import evict
from kvcert.kernels.evict import Draw
from kvcert.kernels.evict_torch import draw_torch
from kvcert.kernels.twin_evict import draw_cpu
from kvcert.survey.philox import philox4x32, uniforms

SETS = 1200  # inclusion sets compared: units (row x KV head) over all random cases


def random_case(g: torch.Generator, dim: int = 8) -> dict[str, Any]:
    def integer(low: int, high: int) -> int:
        return int(torch.randint(low, high, (), generator=g))

    rows, groups, n = integer(1, 4), integer(1, 5), integer(1, 400)
    pi = torch.rand(rows, groups, n, generator=g, dtype=torch.float64) ** integer(1, 4)
    pi[torch.rand(pi.shape, generator=g) < 0.2] = 1.0
    pi[torch.rand(pi.shape, generator=g) < 0.1] = 1e-6
    pi[torch.rand(pi.shape, generator=g) < 0.02] = 0.0
    pi[torch.rand(pi.shape, generator=g) < 0.02] = 1.0 - 2.0**-33  # floor gives 2**32 - 1: not certain
    step = torch.randint(1, 50, (rows, groups, n), generator=g)
    log_pi = -torch.rand(rows, groups, n, generator=g)
    k = torch.randn(rows, groups, n, dim, generator=g)
    draws = [integer(0, 2**24) for _ in range(rows)]
    return {
        "k": k, "v": k + 1.0, "pi": pi, "positions": step.cumsum(-1).to(torch.int32),
        "begin": torch.randint(0, n, (rows, groups), generator=g, dtype=torch.int32),
        "log_pi": log_pi if integer(0, 2) else None,
        "name": Draw(integer(0, 2**62), integer(0, 2**16), integer(0, 2**32), draws, integer(0, 256)),
    }  # fmt: skip


def test_bit_equal_inclusion_sets_and_caches(driver: Path, tmp_path: Path) -> None:
    g = torch.Generator().manual_seed(0)
    made: list[dict[str, Any]] = []
    while sum(e["k"].shape[0] * e["k"].shape[1] for e in made) < SETS:
        made.append(random_case(g))
    lengths = [
        e["k"].shape[2] if e["k"].shape[2] < 60 else 0 for e in made
    ]  # 0: the executor draws but copies nothing
    cases = [
        shim.evict_case(e, length, seed=1 + i)
        for i, (e, length) in enumerate(zip(made, lengths, strict=True))
    ]
    raw = shim.run(driver, cases, tmp_path)
    at = compared = 0
    for e, length in zip(made, lengths, strict=True):
        rows, groups, n, dim = e["k"].shape
        cut, whole_rows = [], (length * dim, torch.float32)
        for size, dtype in (
            (n, torch.int32),
            (1, torch.int32),
            whole_rows,
            whole_rows,
            (length, torch.float32),
            (length, torch.int32),
        ):
            end = at + rows * groups * size * 4
            cut.append(
                torch.tensor(bytearray(raw[at:end]), dtype=torch.uint8).view(dtype).view(rows, groups, size)
            )
            at = end
        index, count = draw_torch(e["pi"], e["positions"], e["begin"], e["name"])
        other = draw_cpu(e["pi"], e["positions"], e["begin"], e["name"])
        assert torch.equal(count, other[1])
        assert torch.equal(count, cut[1][..., 0])
        valid = torch.arange(n) < count[..., None]
        for one in (other[0], cut[0]):
            assert torch.equal(index[valid], one[valid])
        whole = {key: e[key] for key in ("k", "v", "pi", "positions", "log_pi", "begin")} | e[
            "name"
        ]._asdict()
        a, b = evict(**whole, backend="cpu"), evict(**whole, backend="torch")
        kept = torch.arange(a.end) >= a.begin[..., None]
        assert torch.equal(a.begin, b.begin)
        for x, y in zip(a[:4], b[:4], strict=True):
            assert torch.equal(x[kept], y[kept])
        device = (
            cut[2].view(rows, groups, length, dim),
            cut[3].view(rows, groups, length, dim),
            cut[4],
            cut[5],
        )
        for x, z in zip(a[:4], device if length else (), strict=length > 0):
            assert torch.equal(x[kept], z[:, :, : a.end][kept])
        compared += rows * groups
    assert compared >= 1000
    assert at == len(raw)


def test_known_answers() -> None:
    """Salmon et al.'s published vectors of Philox4x32-10."""
    full = 0xFFFFFFFF
    assert int(philox4x32((0, 0), (0, 0, 0, 0))) == 0x6627E8D5
    assert int(philox4x32((full, full), (full, full, full, full))) == 0x408F276D
    assert (
        int(philox4x32((0xA4093822, 0x299F31D0), (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344)))
        == 0xD16CFE09
    )


def test_evict_uses_the_survey_uniforms() -> None:
    n, seed, example = 300, 2607 + (5 << 40), 0xDEADBEEF
    u = uniforms(seed, example, torch.arange(n), 3, 2, draw=1, stage=2)[2]
    pi = torch.full((1, 2, n), 0.3, dtype=torch.float64)
    k = torch.zeros(1, 2, n, 8)
    y = evict(k, k, pi, seed=seed, layer=2, example=example, draw=1, stage=2)
    for head in range(2):
        want = torch.nonzero(u[head] < int(0.3 * 2**32))[:, 0]
        assert torch.equal(y.positions[0, head, int(y.begin[0, head]) : y.end].long(), want)


@pytest.mark.parametrize("backend", ["cpu", "torch"])
def test_order_alignment_and_stored_probability(backend: str) -> None:
    g = torch.Generator().manual_seed(1)
    k = torch.randn(1, 2, 100, 16, generator=g).expand(3, -1, -1, -1)
    pi = torch.full((3, 2, 100), 0.3, dtype=torch.float64)
    pi[:, :, :4] = 1.0
    y = evict(k, -k, pi, seed=1, layer=0, example=7, draw=[0, 1, 1], room=5, backend=backend)
    assert y.k.shape == (3, 2, y.end + 5, 16)
    assert int((y.end - y.begin).max()) == y.end
    for r in range(3):
        for h in range(2):
            at = y.positions[r, h, y.begin[r, h] : y.end].long()
            assert (at[:4] == torch.arange(4)).all()
            assert (at.diff() > 0).all()
            assert torch.equal(y.k[r, h, y.begin[r, h] : y.end], k[r, h, at])
            assert torch.equal(y.v[r, h, y.begin[r, h] : y.end], -k[r, h, at])
            lp = y.log_pi[r, h, y.begin[r, h] : y.end]
            assert not lp[:4].any()
            assert torch.allclose(
                lp[4:].double().exp(), torch.tensor(int(0.3 * 2**32) / 2**32).double(), rtol=1e-7
            )
    kept = [y.positions[r, 0, y.begin[r, 0] : y.end].tolist() for r in range(3)]
    assert kept[1] == kept[2] != kept[0], "rows of one draw share their uniforms, another draw does not"


def test_refusals() -> None:
    k, pi = torch.zeros(2, 1, 5, 8), torch.ones(2, 1, 5)
    with pytest.raises(KvcertError, match="pi must be float64"):
        evict(k, k, pi, seed=0, layer=0, example=0)
    with pytest.raises(KvcertError, match="out of range"):
        evict(k, k, pi.double(), seed=0, layer=0, example=0, draw=[1])
