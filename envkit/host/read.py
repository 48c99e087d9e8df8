"""Read a Host: every fact from its own place, none of which may make the whole fail."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from envkit.host.cgroups import cpu_limit, memory_limit
from envkit.host.cpu import cpu_level
from envkit.host.nvidia import read_nvidia
from envkit.host.surroundings import container, is_wsl, scheduler
from envkit.model import Host

__all__ = ["read_host"]

_SUBDIRS = {
    ("linux", "x86_64"): "linux-64",
    ("linux", "amd64"): "linux-64",
    ("linux", "aarch64"): "linux-aarch64",
    ("linux", "arm64"): "linux-aarch64",
    ("linux", "ppc64le"): "linux-ppc64le",
    ("darwin", "arm64"): "osx-arm64",
    ("darwin", "x86_64"): "osx-64",
    ("win32", "amd64"): "win-64",
    ("win32", "arm64"): "win-arm64",
}


def read_host(root: Path = Path("/"), environ: Mapping[str, str] = os.environ) -> Host:
    """The facts of the machine whose file tree is at `root`.

    Another root than "/" is a tree of fixtures: NVML, glibc and the size of shared memory belong to the
    running machine and are then left out, or taken from the tree where it has them.
    """
    wsl = is_wsl(root)
    nvidia = read_nvidia(root, windows=wsl)
    return Host(
        platform=_platform(),
        system=_system() if root == Path("/") else None,
        cpu_level=cpu_level(root),
        glibc=_glibc() if root == Path("/") else None,
        driver=nvidia.driver,
        driver_cuda=nvidia.driver_cuda,
        gpus=nvidia.gpus,
        cpus=cpu_limit(root),
        memory_limit=memory_limit(root),
        shm_size=_size(root / "dev" / "shm"),
        container=container(root, environ),
        scheduler=scheduler(root, environ),
        wsl=wsl,
        override_cuda=environ.get("CONDA_OVERRIDE_CUDA"),
    )


def _platform() -> str:
    """This machine as a conda subdir, or the kernel's own words where conda has none."""
    machine = platform.machine().lower()
    return _SUBDIRS.get((sys.platform, machine), f"{sys.platform}-{machine}")


def _system() -> str | None:
    """The version of the kernel on Linux ("6.1.0"), of the system on macOS and Windows."""
    release = platform.mac_ver()[0] if sys.platform == "darwin" else platform.release()
    match = re.match(r"\d+(\.\d+)*", release)
    return match[0] if match else None


def _glibc() -> str | None:
    """The version of the C library where it is glibc; None on musl, macOS and Windows."""
    try:
        text = os.confstr("CS_GNU_LIBC_VERSION")
    except (AttributeError, OSError, ValueError):
        return None
    name, _separator, version = (text or "").partition(" ")
    return version if name == "glibc" and version else None


def _size(folder: Path) -> int | None:
    """The size in bytes of the file system that `folder` is on."""
    try:
        figures = os.statvfs(folder)
    except (AttributeError, OSError):
        return None
    return figures.f_blocks * figures.f_frsize
