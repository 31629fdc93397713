"""Where Chromium is; it is installed once where that is possible, since a page is only tested in a browser."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from filelock import FileLock

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")


def chromium() -> str:
    """Path of the browser: `KVCERT_CHROMIUM`, the PATH, or freshly installed; the test is skipped without one."""
    with FileLock(Path(tempfile.gettempdir()) / "kvcert-chromium.lock"):
        found = os.environ.get("KVCERT_CHROMIUM") or _installed()
        if not found and os.geteuid() == 0 and shutil.which("apt-get"):
            found = _install()
    if not found:
        pytest.skip(
            "no Chromium: install it (Debian: apt-get install chromium) or name one in KVCERT_CHROMIUM"
        )
    return found


def _installed() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def _install() -> str | None:
    """Debian's package, from the machine's own sources; fonts too, or every letter is a box."""
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (
        ["update"],
        ["install", "-y", "--no-install-recommends", "chromium", "fonts-dejavu-core"],
    ):
        done = subprocess.run(
            ["apt-get", "-qq", *arguments], env=environment, capture_output=True, timeout=600, check=False
        )
        if done.returncode:
            return None
    return _installed()
