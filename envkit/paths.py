"""The only two places envkit writes to unasked: ENVKIT_HOME (environments, state) and ENVKIT_CACHE."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["cache", "environments", "home", "state"]


def home() -> Path:
    """Environments and state: `$ENVKIT_HOME`, by default `~/.local/share/envkit`."""
    chosen = os.environ.get("ENVKIT_HOME")
    return Path(chosen).expanduser().absolute() if chosen else Path.home() / ".local" / "share" / "envkit"


def cache() -> Path:
    """What can be fetched or built again: `$ENVKIT_CACHE`, by default beside home, on one file system.

    Packages are hard-linked from here into environments, so the two belong on one file system.
    """
    chosen = os.environ.get("ENVKIT_CACHE")
    return Path(chosen).expanduser().absolute() if chosen else home() / "cache"


def environments() -> Path:
    """The folder of named environments."""
    return home() / "envs"


def state() -> Path:
    """Locks of ad-hoc variants and what earlier runs learnt."""
    return home() / "state"
