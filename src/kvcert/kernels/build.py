"""Compile the CPU twin with g++ at first use and keep it in the user's cache.

The file name carries the hash of sources, flags, compiler version and processor flags, so a stale or foreign build is
never loaded. A file lock lets one process compile while others wait; the library appears by atomic rename.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from filelock import FileLock

from kvcert.errors import KvcertError

SOURCES = (
    "twin.cpp",
    "twin_decode.h",
    "twin_tile.h",
    "twin_evict.h",
    "vec.h",
    "philox.h",
    "numbers.h",
    "state.h",
)
FLAGS = (
    "-std=gnu++17", "-O3", "-march=native", "-mprefer-vector-width=512", "-fopenmp", "-fPIC", "-shared",
    "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast", "-fno-plt", "-Wno-psabi",
)  # fmt: skip  # no -ffast-math: NaN padding and infinities must keep their meaning


def source_dir() -> Path:
    """Folder of the C++ and CUDA texts, shipped inside the package."""
    return Path(__file__).parent


def cache_dir() -> Path:
    """`KVCERT_KERNEL_CACHE`, else `XDG_CACHE_HOME/kvcert`, else `~/.cache/kvcert`."""
    named = os.environ.get("KVCERT_KERNEL_CACHE")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kvcert"


def compiler() -> str | None:
    """The C++ compiler: `CXX` if set, else g++; None when there is none."""
    return shutil.which(os.environ.get("CXX") or "g++")


def digest(*parts: str | bytes) -> str:
    """First 16 hexadecimal digits of the SHA-256 of the parts, each with its length."""
    total = hashlib.sha256()
    for part in parts:
        raw = part.encode() if isinstance(part, str) else part
        total.update(len(raw).to_bytes(8, "little") + raw)
    return total.hexdigest()[:16]


def source_bytes(names: tuple[str, ...]) -> list[bytes]:
    """The named files' content, in order."""
    return [(source_dir() / name).read_bytes() for name in names]


@cache
def processor() -> str:
    """What `-march=native` depends on: architecture and processor flags."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        found = [line for line in lines if line.startswith(("flags", "Features", "model name"))]
        return platform.machine() + "".join(sorted(set(found)))
    except OSError:
        return platform.machine() + platform.processor()


def build_twin() -> Path:
    """Path of the compiled twin; compiles it where the cache does not hold it yet.

    Raises
    ------
    KvcertError
        No compiler, a read-only cache, or a failed compilation (with the compiler's last line).
    """
    found = compiler()
    if not found:
        raise KvcertError("kernels: the cpu backend needs g++ (or CXX); install it or choose backend: torch")
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout
    key = digest(*source_bytes(SOURCES), " ".join(FLAGS), version, processor())
    target = cache_dir() / f"twin-{key}.so"
    if target.exists():
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(str(target) + ".lock"):
            if not target.exists():
                _compile(found, target)
    except OSError as problem:
        raise KvcertError(
            f"kernels: cannot write {target.parent}: {problem}; set KVCERT_KERNEL_CACHE"
        ) from problem
    return target


def _compile(found: str, target: Path) -> None:
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        built = Path(folder) / target.name
        command = [found, *FLAGS, str(source_dir() / SOURCES[0]), "-o", str(built)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise KvcertError(
                f"kernels: {found} could not compile the cpu twin: {last}; choose backend: torch"
            )
        built.replace(target)
