"""The CUDA text compiles for three architectures without a GPU: no spills, registers within a budget."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

import pytest
import torch

from kvcert.errors import KvcertError
from kvcert.kernels import nvrtc
from kvcert.kernels.build import source_dir
from kvcert.kernels.device import EVICT_NAMES, decode_names

pytest.importorskip("cuda.bindings.nvrtc")

F, B, H = torch.float32, torch.bfloat16, torch.float16
#: Instantiation (type, D, query rows, certificate): register budgets for sm_80 and sm_90, and for sm_100, a step of 8
#: above what nvidia-cuda-nvrtc 13.0.88 gives. 128 threads and two blocks per processor allow 255.
BUDGET = {
    (B, 64, 1, True): (96, 136), (B, 64, 3, True): (168, 200), (B, 96, 4, True): (248, 255), (B, 128, 1, False): (80, 112),
    (B, 128, 4, False): (160, 192), (B, 128, 4, True): (200, 232), (B, 256, 4, True): (200, 232),
    (H, 64, 3, True): (176, 200),
    (H, 128, 4, True): (208, 232), (F, 64, 3, False): (136, 168), (F, 64, 3, True): (176, 200), (F, 96, 2, True): (160, 176),
    (F, 96, 4, True): (255, 255), (F, 128, 4, True): (208, 240),
}  # fmt: skip
SMALL = (64, 72)
ARCHITECTURES = (80, 90, 100)


def usage(log: str) -> dict[str, tuple[int, int]]:
    """symbol -> (registers, bytes spilled) from the compiler's log."""
    found, symbol, spilled = {}, "", 0
    for line in log.splitlines():
        if m := re.search(r"(?:entry function '|Function properties for )([\w$]+)", line):
            symbol = m[1]
        if m := re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", line):
            spilled = int(m[1]) + int(m[2])
        if m := re.search(r"Used (\d+) registers", line):
            found[symbol] = (int(m[1]), spilled)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("capability", ARCHITECTURES)
def test_no_spills_and_register_budget(capability: int) -> None:
    budget = {decode_names(t, d, rows, cert)[0]: most for (t, d, rows, cert), most in BUDGET.items()}
    budget |= dict.fromkeys(
        (decode_names(B, 128, 4, True)[1], decode_names(F, 96, 4, True)[1], *EVICT_NAMES), SMALL
    )
    made = nvrtc.compile_kernels(tuple(budget), capability)
    assert made.cubin[:4] == b"\x7fELF"
    used = usage(made.log)
    for name, (older, newer) in budget.items():
        most = newer if capability >= 100 else older
        registers, spilled = used[made.symbols[name]]
        assert spilled == 0, f"sm_{capability} {name}: {spilled} bytes spilled"
        assert registers <= most, f"sm_{capability} {name}: {registers} registers, budget {most}"


def test_cache_compiles_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KVCERT_KERNEL_CACHE", str(tmp_path))
    path, symbol = nvrtc.cached_cubin(EVICT_NAMES[0], 90)
    assert path.read_bytes()[:4] == b"\x7fELF"
    assert "draw_units" in symbol
    monkeypatch.setattr(nvrtc, "compile_kernels", None)  # a second compilation would fail
    assert nvrtc.cached_cubin(EVICT_NAMES[0], 90) == (path, symbol)


def test_a_compile_error_is_one_line() -> None:
    with pytest.raises(KvcertError, match="NVRTC could not compile for sm_90"):
        nvrtc.compile_kernels(("kvc::combine<float,60,true>()",), 90)


def nvcc() -> str | None:
    """nvcc that can compile for us, if any: some machines carry a stub."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "a.cu"
        source.write_text("__global__ void f() {}\n")
        try:
            done = subprocess.run(
                ["nvcc", "-cubin", "-arch=sm_90", source, "-o", f"{folder}/a"],
                capture_output=True,
                check=False,
            )
        except OSError:
            return None
        return "nvcc" if done.returncode == 0 else None


@pytest.mark.slow
def test_nvcc_where_present(tmp_path: Path) -> None:
    if not nvcc():
        pytest.skip("no working nvcc")
    source = tmp_path / "kernels.cu"
    source.write_text(
        '#include "decode.cuh"\n#include "evict.cuh"\nusing namespace kvc;\n'
        "template __global__ void kvc::split_decode<bf16, 128, 4, 4, true>(const DeviceDecode);\n"
        "template __global__ void kvc::combine<bf16, 128, true>(const DeviceDecode);\n"
        "template __global__ void kvc::draw_units<8>(const DeviceEvict);\n"
        "template __global__ void kvc::gather_units<8>(const DeviceEvict);\n"
    )
    command = [
        "nvcc",
        "-std=c++17",
        "-cubin",
        "-arch=sm_90",
        f"-I{source_dir()}",
        str(source),
        "-o",
        str(tmp_path / "out"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
