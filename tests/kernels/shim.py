"""Python side of the CPU executor: build the drivers, write cases, read results."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path
from typing import Any

import torch
from problems import LEVEL
from torch import Tensor

from kvcert.kernels.build import compiler, source_dir
from kvcert.kernels.device import DeviceDecode, DeviceEvict, plan_decode
from kvcert.kernels.twin import KINDS, _Decode
from kvcert.kernels.types import STATS, Decoded, pack

HERE = Path(__file__).parent / "simt"
SANITIZE = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
#: (type, head dimension, query rows per block) compiled into the driver; mirrors simt/instantiations.h.
NAMES = {torch.float32: "float", torch.bfloat16: "bf16", torch.float16: "half16"}


def build(target: Path, source: str = "driver.cpp", *flags: str, kernels: Path | None = None) -> Path:
    """Compile a driver against the kernel texts in `kernels` (default: the package's)."""
    command = [
        compiler() or "g++",
        "-std=c++17",
        "-O1",
        *flags,
        f"-I{HERE}",
        f"-I{kernels or source_dir()}",
        "-Wno-psabi",
    ]
    done = subprocess.run(
        [*command, str(HERE / source), "-o", str(target)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return target


def run(driver: Path, cases: list[bytes], folder: Path, timeout: float = 120) -> bytes:
    """Results of all cases, one after another; a driver that fails raises with what it said."""
    (folder / "cases").write_bytes(b"".join(cases))
    command = [str(driver), str(folder / "cases"), str(folder / "results")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=timeout)
    if done.returncode:
        raise AssertionError(f"driver: exit {done.returncode}: {done.stderr[:1500]}")
    return (folder / "results").read_bytes()


def words(*values: int) -> bytes:
    """Signed 64-bit words."""
    return struct.pack(f"<{len(values)}q", *values)


def block(x: Tensor | bytes | None) -> bytes:
    """A length-prefixed block: the tensor's whole storage, so that its strides stay true."""
    if x is None:
        return words(0)
    if isinstance(x, Tensor):
        assert x.storage_offset() == 0
        x = torch.empty(0, dtype=torch.uint8).set_(x.untyped_storage()).numpy().tobytes()
    return words(len(x)) + x


def decode_case(p: dict[str, Any], *, splits: int, seed: int, certificate: bool = True) -> bytes:
    """One decode for the device driver."""
    q, k, v, log_pi, pages = p["q"], p["k"], p["v"], p["log_pi"], p.get("pages")
    rows, heads, steps, dim = q.shape
    groups = k.shape[1]
    plan = plan_decode(rows, heads, groups, steps, dim, p["end"], certificate, processors=1, splits=splits)
    shift = 0 if pages is None else k.shape[2].bit_length() - 1
    table = (0, 0) if pages is None else pages.stride()[:2]
    args = DeviceDecode(
        *[None] * 10, *k.stride()[:3], *v.stride()[:3], *log_pi.stride()[:2], *table,
        heads, groups, steps, p["end"], heads // groups * steps, plan.chunks, plan.splits, plan.keys, shift,
        rows * heads * steps, p["scale"], LEVEL,
    )  # fmt: skip
    total = rows * heads * steps
    head = words(
        0,
        KINDS[k.dtype],
        dim,
        plan.rows,
        certificate,
        *plan.grid,
        plan.shared,
        plan.combine_shared,
        total,
        seed,
    )
    head += words(
        total * plan.splits * plan.record * 4,
        total * dim * q.element_size(),
        total * (8 if certificate else 1) * 4,
    )
    centre = p["centre"] if certificate else None
    return (
        head
        + block(bytes(args))
        + b"".join(map(block, (q.contiguous(), k, v, log_pi, centre, p["begin"], pages)))
    )


def decode_results(raw: bytes, shapes: list[tuple[dict[str, Any], bool]]) -> list[Decoded]:
    """Cut the device driver's results."""
    made, at = [], 0
    for p, certificate in shapes:
        q, n = p["q"], p["q"].numel() // p["q"].shape[-1]
        size, planes = q.numel() * q.element_size(), len(STATS) if certificate else 1
        out = torch.frombuffer(bytearray(raw[at : at + size]), dtype=q.dtype).view(q.shape)
        at += size
        stats = torch.frombuffer(bytearray(raw[at : at + planes * n * 4]), dtype=torch.float32).view(
            planes, *q.shape[:3]
        )
        at += planes * n * 4
        made.append(pack(out, stats, q.dtype))
    assert at == len(raw)
    return made


def twin_case(p: dict[str, Any], certificate: bool = True) -> bytes:
    """One decode for the twin's driver."""
    q, k, v, log_pi = p["q"].float().contiguous(), p["k"], p["v"], p["log_pi"]
    rows, heads, steps, dim = q.shape
    args = _Decode(
        *[None] * 8, rows, heads, k.shape[1], steps, dim, p["end"], KINDS[k.dtype], *k.stride()[:3], *v.stride()[:3],
        *log_pi.stride()[:2], 1, certificate, p["scale"], LEVEL,
    )  # fmt: skip
    sizes = words(q.numel() * 4, rows * heads * steps * (8 if certificate else 1) * 4)
    return sizes + block(bytes(args)) + b"".join(map(block, (q, k, v, log_pi, p["centre"], p["begin"])))


def evict_case(e: dict[str, Any], length: int, seed: int) -> bytes:
    """One draw and compaction for the device driver. `e`: k, v, pi, positions, begin, log_pi, name (a Draw)."""
    k, v, pi, name = e["k"], e["v"], e["pi"], e["name"]
    rows, groups, n, dim = k.shape
    args = DeviceEvict(
        Hkv=groups, n=n, length=length, row_bytes=dim * k.element_size(), element=k.element_size(),
        k0=k.stride(0), k1=k.stride(1), k2=k.stride(2), v0=v.stride(0), v1=v.stride(1), v2=v.stride(2),
        seed_lo=name.seed & 0xFFFFFFFF, seed_hi=name.seed >> 32, layer=name.layer, example=name.example, stage=name.stage,
    )  # fmt: skip
    draw = torch.tensor(name.draw, dtype=torch.int32)
    head = words(1, rows * groups, n, length, dim * k.element_size(), seed) + block(bytes(args))
    return head + b"".join(map(block, (pi, e["positions"], e["begin"], draw, k, v, e["log_pi"])))
