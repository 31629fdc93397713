"""Versions of installed packages, for the logs."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version


@cache
def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def versions(*packages: str) -> dict[str, str | None]:
    """Package → version; None for one that is not installed."""
    return {package: _version(package) for package in packages}
