"""What this machine sits in: a container, WSL, a cluster with a batch system."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

__all__ = ["container", "is_wsl", "scheduler"]

# The more telling sign first: a pod is made of containers, and Apptainer may start from a Docker image
# whose /.dockerenv came along.
_CONTAINER_VARIABLES = (
    ("KUBERNETES_SERVICE_HOST", "kubernetes"),
    ("APPTAINER_CONTAINER", "apptainer"),
    ("SINGULARITY_CONTAINER", "apptainer"),
)
_CONTAINER_FILES = (
    ("var/run/secrets/kubernetes.io", "kubernetes"),
    (".singularity.d", "apptainer"),
    ("run/.containerenv", "podman"),
    (".dockerenv", "docker"),
)
_CONTAINER_CGROUPS = (
    ("kubepods", "kubernetes"),
    ("libpod", "podman"),
    ("docker", "docker"),
    ("containerd", "containerd"),
    ("lxc", "lxc"),
)
# qconf is Grid Engine's alone; qsub is PBS's and Grid Engine's.
_SCHEDULER_COMMANDS = (("sbatch", "slurm"), ("bsub", "lsf"), ("qconf", "sge"), ("qsub", "pbs"))


def container(root: Path, environ: Mapping[str, str]) -> str | None:
    """The kind of container around this process, or None where there is no sign of one."""
    for variable, kind in _CONTAINER_VARIABLES:
        if environ.get(variable):
            return kind
    for name, kind in _CONTAINER_FILES:
        if _exists(root / name):
            return kind
    groups = _text(root / "proc/self/cgroup")
    for word, kind in _CONTAINER_CGROUPS:
        if word in groups:
            return kind
    return None


def is_wsl(root: Path) -> bool:
    """Whether the kernel is that of the Windows Subsystem for Linux, where the driver is Windows' own."""
    return "microsoft" in _text(root / "proc/version").lower()


def scheduler(root: Path, environ: Mapping[str, str]) -> str | None:
    """The batch system whose submit command is on PATH, or None."""
    folders = [root / folder.lstrip("/") for folder in environ.get("PATH", "").split(os.pathsep) if folder]
    for command, name in _SCHEDULER_COMMANDS:
        if any(os.access(folder / command, os.X_OK) for folder in folders):
            return name
    return None


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
