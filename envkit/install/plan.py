"""Which packages of a lock go into a prefix on this machine."""

from __future__ import annotations

import platform as machine
import sys
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from envkit.errors import Error, InputError
from envkit.messages import _
from envkit.model import Lock, Package

__all__ = ["Plan", "plan", "this_platform"]

# conda's name for what `uname -m` says: https://docs.conda.io/projects/conda/en/stable/user-guide/concepts/channels.html
_SUBDIRS = {"x86_64": "linux-64", "aarch64": "linux-aarch64", "ppc64le": "linux-ppc64le"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """The packages of one prefix: those linked from conda archives and those that pip installs."""

    platform: str
    conda: tuple[Package, ...]
    pip: tuple[Package, ...]


def this_platform() -> str:
    """The conda subdir of this machine; Error where environments cannot be installed."""
    subdir = _SUBDIRS.get(machine.machine()) if sys.platform == "linux" else None
    if subdir is None:
        raise Error(
            _("environments are installed on Linux (x86-64, aarch64); this is {system} on {machine}").format(
                system=machine.system(), machine=machine.machine()
            ),
            _("locks for other platforms can be made here, and installed by `conda-lock install`"),
        )
    return subdir


def plan(
    lock: Lock,
    platform: str | None = None,
    categories: Collection[str] = ("main",),
    *,
    elsewhere: bool = False,
) -> Plan:
    """What of `lock` goes into a prefix for `platform` (this machine's by default).

    `elsewhere` says that it will be installed on another machine, of that platform.

    Raises Error for a platform that is locked for but not installed on, InputError for a lock that has
    nothing for the platform or that no prefix could hold.
    """
    wanted = platform or this_platform()
    if not wanted.startswith("linux-"):
        raise Error(
            _("{platform} is locked for, not installed on: envkit installs on Linux").format(platform=wanted),
            _("on that machine, run `conda-lock install {path}`").format(path=lock.path),
        )
    chosen = [package for package in lock.on(wanted) if package.category in categories]
    conda = tuple(package for package in chosen if package.manager == "conda")
    pip = tuple(package for package in chosen if package.manager == "pip")
    if not conda:
        raise InputError(
            _("the lock has no packages for {platform} (it has {platforms})").format(
                platform=wanted, platforms=", ".join(lock.platforms) or _("none")
            ),
            _("add {platform} to the variant's platforms in matrix.yaml and run `envkit lock`").format(
                platform=wanted
            ),
            path=lock.path,
        )
    _refuse_impossible(
        lock, wanted, conda, pip, native=elsewhere or platform is None or platform == this_platform()
    )
    return Plan(platform=wanted, conda=conda, pip=pip)


def _refuse_impossible(
    lock: Lock, platform: str, conda: tuple[Package, ...], pip: tuple[Package, ...], *, native: bool
) -> None:
    counts = Counter(package.name for package in conda)
    twice = sorted(name for name, count in counts.items() if count > 1)
    if twice:
        raise InputError(
            _("the lock names packages twice for {platform}: {names}").format(
                platform=platform, names=", ".join(twice)
            ),
            _("make the lock again with `envkit lock`"),
            path=lock.path,
        )
    if not pip:
        return
    missing = sorted({"python", "pip"} - counts.keys())
    if missing:
        raise InputError(
            _("the lock has a pip section but not {names}").format(names=", ".join(missing)),
            _("add `pip` and `python` to the dependencies and run `envkit lock`"),
            path=lock.path,
        )
    if not native:
        raise Error(
            _("the pip section of a lock can only be installed on {platform} itself").format(
                platform=platform
            ),
            _("run the installation on a {platform} machine").format(platform=platform),
        )
