"""What produced a row: versions of the packages that matter and the processor."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from kvcert import installed
from kvcert.files import canonical_json

PACKAGES = ("kvcert", "torch", "transformers", "tokenizers", "numpy", "pyarrow", "safetensors")


@cache
def processor() -> str:
    """The processor's name, as the kernel tells it where it does."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def versions(task: Mapping[str, str | None], *more: str) -> str:
    """Canonical JSON of package versions (`more`: those that only some runs use), Python, processor, the task's own."""
    own = {"python": platform.python_version(), "processor": processor()}
    return canonical_json({**installed.versions(*PACKAGES, *more), **own, **task})
