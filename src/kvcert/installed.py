"""What is installed: versions for the logs, and whether a library can be found."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec


@cache
def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def versions(*packages: str) -> dict[str, str | None]:
    """Package → version; None for one that is not installed."""
    return {package: _version(package) for package in packages}


def has(module: str) -> bool:
    """Whether a module can be found; it is not imported."""
    return find_spec(module) is not None
