"""Slurm for the tests: there already, installed with apt where that is possible, or a reason why not."""

from __future__ import annotations

import os
import shutil
import subprocess

NEEDED = ("slurmctld", "slurmd", "squeue", "munged")
PACKAGES = ("slurmctld", "slurmd", "slurm-client", "munge")


def lacking() -> list[str]:
    """Programs that are not there."""
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    return [name for name in NEEDED if shutil.which(name, path=path) is None]


def ensure() -> str | None:
    """None when Slurm is there (now); otherwise why it cannot be."""
    if not lacking():
        return None
    if shutil.which("apt-get") is None:
        return f"{', '.join(lacking())} not found, and no apt-get to install Slurm with"
    root = [] if os.geteuid() == 0 else ["sudo", "-n"]
    if root and shutil.which("sudo") is None:
        return f"{', '.join(lacking())} not found, and only root could install Slurm"
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    wait = ["-o", "DPkg::Lock::Timeout=300"]
    for command in (
        ["apt-get", *wait, "update", "-qq"],
        ["apt-get", *wait, "install", "-y", "-qq", "--no-install-recommends", *PACKAGES],
    ):
        done = subprocess.run([*root, *command], env=environment, capture_output=True, text=True, check=False)
    if not lacking():
        return None
    last = (done.stderr.strip().splitlines() or ["no message"])[-1]
    return f"{', '.join(lacking())} could not be installed: {last}"


if (
    __name__ == "__main__"
):  # `make test-slurm` calls it first, so that its two test processes need not install at once
    print(ensure() or "Slurm is there")
