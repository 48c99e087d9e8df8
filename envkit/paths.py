"""The only two places envkit writes to unasked: ENVKIT_HOME (environments, state) and ENVKIT_CACHE."""

from __future__ import annotations

import errno
import os
from pathlib import Path

__all__ = ["CACHED", "NoHome", "cache", "environments", "existing_folder", "home", "scratch", "state"]


CACHED = frozenset(
    {"bundles", "downloads", "pip", "pip-files", "pkgs", "pypi", "repodata", "tools", "wheels"}
)
"""The folders of the cache."""


class NoHome(OSError):
    """`~` stands in a path and nobody knows whose home that is: no HOME, or no such user."""


def home() -> Path:
    """Environments and state: `$ENVKIT_HOME`, by default `~/.local/share/envkit`. Raises NoHome."""
    return _absolute(os.environ.get("ENVKIT_HOME") or "~/.local/share/envkit")


def cache() -> Path:
    """What can be fetched or built again: `$ENVKIT_CACHE`, by default beside home, on one file system.

    Packages are hard-linked from here into environments, so the two belong on one file system.
    """
    chosen = os.environ.get("ENVKIT_CACHE")
    return _absolute(chosen) if chosen else home() / "cache"


def environments() -> Path:
    """The folder of named environments."""
    return home() / "envs"


def state() -> Path:
    """Locks of ad-hoc variants and what earlier runs learnt."""
    return home() / "state"


def _absolute(path: str) -> Path:
    try:
        return Path(path).expanduser().absolute()
    except RuntimeError:
        raise NoHome(errno.ENOENT, os.strerror(errno.ENOENT), path) from None


def existing_folder(path: Path) -> Path:
    """The nearest folder that exists: `path` or one that it would lie in."""
    path = path.absolute()
    return next(folder for folder in (path, *path.parents) if os.path.isdir(folder))  # noqa: PTH112


def scratch(purpose: str) -> str:
    """How the name of a temporary file or folder begins: it says whose it is once its maker is dead."""
    return f"envkit-{purpose}-{os.getpid()}-"
