# ruff: noqa: E501  one mutant a line
"""Break the device kernels on purpose, one change at a time; each mutant must be caught by the executor's cases.

Run `python tests/kernels/mutations.py`; the last line reads `caught N/N`. `--list` prints the mutants without running,
`--every 3` runs every third.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2] / "src")]

import shim  # noqa: E402
import torch  # noqa: E402
from hostile import HOSTILE  # noqa: E402
from problems import agree, paged, problem, reference  # noqa: E402
from test_draws import random_case  # noqa: E402

from kvcert.kernels.build import source_dir  # noqa: E402
from kvcert.kernels.evict_torch import draw_torch, gather_torch  # noqa: E402
from kvcert.kernels.nvrtc import HEADERS  # noqa: E402


class Mutant(NamedTuple):
    """In `file`, the one occurrence of `old` becomes `new`."""

    what: str
    file: str
    old: str
    new: str


MUTANTS = [
    Mutant("second moments rescaled by the first power", "state.h", "w2 *= a2; q0 *= a2; q2 *= a2; m = m2;", "w2 *= a; q0 *= a; q2 *= a; m = m2;"),
    Mutant("Q1 rescaled by the first power", "lane.cuh", "if (CERT) q1[i] *= a2; }", "if (CERT) q1[i] *= a; }"),
    Mutant("merge forgets to rescale the other side's sum", "state.h", "l = l * a + y.l * b;", "l = l * a + y.l;"),
    Mutant("merge of the range by the square", "state.h", "r = larger(r * a, y.r * b);", "r = larger(r * a2, y.r * b2);"),
    Mutant("range not rescaled", "state.h", "l *= a; r *= a;", "l *= a;"),
    Mutant("(1 - Pi) left out of Q0", "state.h", "c = miss * ww;", "c = ww;"),
    Mutant("range over certain tokens too", "state.h", "if (miss > 0.f) {", "if (miss >= 0.f) {"),
    Mutant("offset with the wrong sign", "decode.cuh", "dot[g] - lp[u], miss", "dot[g] + lp[u], miss"),
    Mutant("centre not subtracted", "decode.cuh", "v[u][i] -= mid[i];", "v[u][i] -= 0.f;"),
    Mutant("centre not added back", "decode.cuh", "narrow(o + mid,", "narrow(o,"),
    Mutant("causal limit one token late", "decode.cuh", "a.end - a.T + t + 1;", "a.end - a.T + t + 2;"),
    Mutant("begin ignored", "decode.cuh", "const int lo = a.begin[row * a.Hkv + head] + blockIdx.x", "const int lo = blockIdx.x"),
    Mutant("ragged end of a split not masked", "decode.cuh", "if (j < hi && j < limit[g])", "if (j < limit[g])"),
    Mutant("wrong lanes in the dot product", "decode.cuh", "for (int s = C::LANES / 2; s > 0; s >>= 1) {", "for (int s = C::LANES; s > 1; s >>= 1) {"),
    Mutant("lane merge stops early", "decode.cuh", "for (int s = C::LANES; s < 32; s <<= 1) {", "for (int s = C::LANES; s < 16; s <<= 1) {"),
    Mutant("barrier dropped before the warps merge", "decode.cuh", "  __syncthreads();\n  for (int e", "  for (int e"),
    Mutant("barrier dropped in combine", "decode.cuh", "    __syncthreads();\n    oq = oo", "    oq = oo"),
    Mutant("barrier inside a divergent branch", "decode.cuh", "  __syncthreads();\n  for (int e", "  if (sub == 0) __syncthreads();\n  for (int e"),
    Mutant("one warp left out of the merge", "decode.cuh", "merged<D>(sm + g * REC, WARPS, GB * REC, x, m)", "merged<D>(sm + g * REC, WARPS - 1, GB * REC, x, m)"),
    Mutant("Q1 merged by the first power", "lane.cuh", "(e >= 2 && e <= 4) || e >= HEAD + D;", "(e >= 2 && e <= 4);"),
    Mutant("wrong query head's slot", "decode.cuh", "head * G + i % G) * a.T + i / G;", "head * G + i / G) * a.T + i % G;"),
    Mutant("page offset not masked", "lane.cuh", "j &= (1 << a.page_shift) - 1;", "j &= (2 << a.page_shift) - 1;"),
    Mutant("variance without the cross term", "state.h", "s.q2 - 2.f * oq + oo * s.q0", "s.q2 - oq + oo * s.q0"),
    Mutant("guarded radius uses the largest weight of all", "state.h", "rest = 1.f - y.p_sampled;", "rest = 1.f - y.p_max;"),
    Mutant("empty row divides by zero", "state.h", "if (s.l == 0.f) return", "if (s.l < 0.f) return"),
    Mutant("Philox round constant", "philox.h", "0xBB67AE85u", "0xBB67AE86u"),
    Mutant("nine Philox rounds", "philox.h", "i < 10; ++i", "i < 9; ++i"),
    Mutant("threshold compared in 32 bits", "philox.h", "s.draw) < limit;", "s.draw) < (u32)limit;"),
    Mutant("keep on equality", "philox.h", "s.draw) < limit;", "s.draw) <= limit;"),
    Mutant("stage left out of the counter", "evict.cuh", "<< 8) + a.stage};", "<< 8)};"),
    Mutant("barrier dropped before the scan", "evict.cuh", "    __syncthreads();\n    int before", "    int before"),
    Mutant("barrier dropped after the scan", "evict.cuh", "    __syncthreads();\n    if (threadIdx.x == 0) sm[WARPS] += total;", "    if (threadIdx.x == 0) sm[WARPS] += total;"),
    Mutant("scan counts its own lane", "evict.cuh", "(1u << lane) - 1u", "(2u << lane) - 1u"),
    Mutant("left-aligned copy", "evict.cuh", "a.length + a.end - kept + j;", "a.length + j;"),
    Mutant("cumulative log Pi overwritten", "evict.cuh", "(a.log_pi ? (double)a.log_pi[at + i] : 0.0)", "0.0"),
    Mutant("position of the slot instead of the token", "evict.cuh", "a.position_out[to] = a.position[at + i];", "a.position_out[to] = i;"),
]  # fmt: skip


def decode_problems() -> list[tuple[dict, dict, int]]:
    """(problem as run, problem as referenced, splits): small, and between them touching every line of the kernels."""
    shapes = [((1, 2, 3, 1, 64, 90), 3), ((1, 1, 3, 2, 128, 40), 2), ((2, 1, 4, 1, 96, 30), 2)]
    made = []
    for seed, (shape, splits) in enumerate(shapes):
        dtype = torch.bfloat16 if shape[4] != 64 else torch.float32
        p = problem(*shape, dtype=dtype, seed=seed)
        made.append((p, p, splits))
    p = problem(1, 2, 3, 1, 64, 60, seed=9)
    made.append((paged(p, 16), p, 2))
    made += [
        (p, p, 4)
        for p in (
            HOSTILE["early_query_sees_nothing"](),
            HOSTILE["longest_padding"](),
            HOSTILE["dominant_token"](),
        )
    ]
    return made


def evict_problems() -> list[dict]:
    """Draws of several tiles, with certain tokens, earlier stages and a unit that starts late."""
    g = torch.Generator().manual_seed(5)
    made = [
        e for e in (random_case(g) for _ in range(40)) if e["k"].shape[2] > 260 and e["log_pi"] is not None
    ][:2]
    certain = random_case(g)
    certain["pi"] = torch.full_like(certain["pi"], 1.0)
    return [*made, certain, _equality()]


def _equality() -> dict:
    """One token whose uniform equals its threshold exactly: it must go."""
    from kvcert.kernels.evict import Draw
    from kvcert.survey.philox import uniforms

    u = int(uniforms(3, 4, torch.tensor([0]), 1, 1, 0)[0, 0, 0])
    pi = torch.tensor([[[u / 2**32, 1.0]]], dtype=torch.float64)
    k = torch.zeros(1, 1, 2, 8)
    return {
        "k": k, "v": k, "pi": pi, "positions": torch.arange(2, dtype=torch.int32).view(1, 1, 2),
        "begin": torch.zeros(1, 1, dtype=torch.int32), "log_pi": None, "name": Draw(3, 0, 4, [0], 0),
    }  # fmt: skip


def verify(driver: Path, folder: Path, decodes: list, wants: list, evicts: list) -> None:
    """Raise AssertionError unless every case agrees with its reference."""
    cases = [shim.decode_case(p, splits=s, seed=7 + i) for i, (p, _, s) in enumerate(decodes)]
    raw = shim.run(driver, cases, folder, timeout=60)
    for y, want in zip(shim.decode_results(raw, [(p, True) for p, _, _ in decodes]), wants, strict=True):
        agree(y, want, loose=2.0)
    for i, e in enumerate(evicts):
        rows, groups, n, _dim = e["k"].shape
        raw = shim.run(driver, [shim.evict_case(e, n, seed=3 + i)], folder, timeout=60)
        index, count = draw_torch(e["pi"], e["positions"], e["begin"], e["name"])
        units = rows * groups
        got = torch.frombuffer(bytearray(raw), dtype=torch.int32)
        assert torch.equal(got[units * n : units * (n + 1)].view_as(count), count), "count"
        want = gather_torch(
            e["k"], e["v"], e["pi"], e["positions"], e["log_pi"], index, count, int(count.max()), n
        )
        at, valid = units * (n + 1), torch.arange(n) >= int(count.max()) - count[..., None]
        valid &= torch.arange(n) < int(count.max())
        for x in want:
            part = got[at : at + x.numel()].view(x.dtype).view_as(x)
            assert torch.equal(part[valid], x[valid]), "copy"
            at += x.numel()


def main() -> int:
    """Run all mutants; 0 when every one is caught and the unchanged kernels pass."""
    torch.set_num_threads(1)
    if "--list" in sys.argv:
        print("\n".join(f"{m.file}: {m.what}" for m in MUTANTS))
        return 0
    step = int(sys.argv[sys.argv.index("--every") + 1]) if "--every" in sys.argv else 1
    chosen = MUTANTS[::step]
    decodes, evicts = decode_problems(), evict_problems()
    wants = [reference(p) for _, p, _ in decodes]
    caught = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        verify(shim.build(folder / "driver", "driver.cpp", "-DFEW"), folder, decodes, wants, evicts)
        for m in chosen:
            texts = folder / "kernels"
            shutil.rmtree(texts, ignore_errors=True)
            texts.mkdir()
            for header in HEADERS:
                text = (source_dir() / header).read_text()
                (texts / header).write_text(text.replace(m.old, m.new) if header == m.file else text)
            driver = shim.build(folder / "mutant", "driver.cpp", "-DFEW", kernels=texts)
            try:
                verify(driver, folder, decodes, wants, evicts)
                verdict = "SURVIVED"
            except Exception as problem:
                verdict, caught = f"caught ({(str(problem).splitlines() or ['?'])[0][:70]})", caught + 1
            print(f"{m.what:55s} {verdict}", flush=True)
    print(f"caught {caught}/{len(chosen)}")
    return 0 if caught == len(chosen) else 1


if __name__ == "__main__":
    raise SystemExit(main())
