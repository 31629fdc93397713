"""Compile the CUDA text with NVRTC, without nvcc, vendor headers or a GPU, and keep the result in the user's cache."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from filelock import FileLock

from kvcert.errors import KvcertError
from kvcert.kernels.build import cache_dir, digest, source_bytes

HEADERS = ("state.h", "numbers.h", "philox.h", "device.cuh", "lane.cuh", "decode.cuh", "evict.cuh")
PROGRAM = '#include "decode.cuh"\n#include "evict.cuh"\n'
#: No --use_fast_math: only the exponential is fast (see `fast_exp`), NaN and infinities keep their meaning.
OPTIONS = ("--std=c++17", "--ptxas-options=-v")


class Compiled(NamedTuple):
    """cubin : machine code. symbols : lowered name of every name expression. log : compiler's log (registers, spills)."""

    cubin: bytes
    symbols: dict[str, str]
    log: str


def _nvrtc() -> Any:
    try:
        from cuda.bindings import nvrtc
    except ImportError as problem:
        raise KvcertError(
            "kernels: the cuda backend needs cuda-bindings; pip install 'kvcert[kernels]'"
        ) from problem
    return nvrtc


def _call(result: tuple[Any, ...], what: str) -> Any:
    if int(result[0]):
        raise KvcertError(f"kernels: NVRTC: {what} failed with {result[0].name}")
    return result[1] if len(result) == 2 else result[1:]


def compile_kernels(names: tuple[str, ...], capability: int) -> Compiled:
    """Compile the named instantiations, e.g. `kvc::combine<float,64,true>`, for sm_`capability`. No GPU is needed.

    Raises
    ------
    KvcertError
        NVRTC is missing, too old for the architecture, or reports an error (its first error line is shown).
    """
    nvrtc = _nvrtc()
    headers = source_bytes(HEADERS)
    program = _call(
        nvrtc.nvrtcCreateProgram(
            PROGRAM.encode(), b"kvcert.cu", len(HEADERS), headers, [name.encode() for name in HEADERS]
        ),
        "creating the program",
    )
    for name in names:
        _call(nvrtc.nvrtcAddNameExpression(program, name.encode()), name)
    options = [option.encode() for option in (f"--gpu-architecture=sm_{capability}", *OPTIONS)]
    status = nvrtc.nvrtcCompileProgram(program, len(options), options)[0]
    log = (
        _buffer(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program)
        .decode(errors="replace")
        .rstrip("\0\n")
    )
    if int(status):
        lines = [line for line in log.splitlines() if "error" in line] or [log or status.name]
        raise KvcertError(f"kernels: NVRTC could not compile for sm_{capability}: {lines[0]}")
    cubin = _buffer(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, program)
    symbols = {
        name: _call(nvrtc.nvrtcGetLoweredName(program, name.encode()), name).decode() for name in names
    }
    nvrtc.nvrtcDestroyProgram(program)
    return Compiled(cubin, symbols, log)


def _buffer(size: Any, fill: Any, program: Any) -> bytes:
    room = b" " * _call(size(program), "reading a size")
    _call((*fill(program, room), None), "reading a result")
    return room


def cached_cubin(name: str, capability: int) -> tuple[Path, str]:
    """Path of the cubin of one instantiation and its symbol; compiled at first use, keyed by source and architecture."""
    version = "{}.{}".format(*_call(_nvrtc().nvrtcVersion(), "asking for the version"))
    key = digest(*source_bytes(HEADERS), PROGRAM, " ".join(OPTIONS), version, name)
    target = cache_dir() / f"sm{capability}-{key}.cubin"
    symbol = target.with_suffix(".symbol")
    if not symbol.exists():
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(str(target) + ".lock"):
                if not symbol.exists():
                    made = compile_kernels((name,), capability)
                    _replace(target, made.cubin)
                    _replace(
                        symbol, made.symbols[name].encode()
                    )  # last: its presence says that the pair is whole
        except OSError as problem:
            raise KvcertError(
                f"kernels: cannot write {target.parent}: {problem}; set KVCERT_KERNEL_CACHE"
            ) from problem
    return target, symbol.read_text()


def _replace(target: Path, content: bytes) -> None:
    handle, name = tempfile.mkstemp(dir=target.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    Path(name).replace(target)
