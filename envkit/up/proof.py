"""Remembers which environments passed the full validation here, so that the next run may be a quick one.

A proof is about one installation on one machine: installing anew, from the same lock too, makes another
marker file, and the proof no longer fits. It lies in the state folder, because a shared prefix may be
read-only and was proven for this user and this machine alone.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path

from envkit import paths
from envkit.errors import Error
from envkit.files import write_atomically
from envkit.install import marker
from envkit.model import Environment

__all__ = ["forget", "is_proven", "remember"]


def is_proven(environment: Environment) -> bool:
    """Whether this very installation passed in full; False where that is not known."""
    try:
        return _file(environment).read_text(encoding="utf-8") == _installation(environment)
    except (OSError, ValueError):
        return False


def remember(environment: Environment) -> None:
    """Note that it passed. Where that cannot be written, the next run is a full one again."""
    with suppress(OSError, Error):
        write_atomically(_file(environment), _installation(environment))


def forget(environment: Environment) -> None:
    """Take back what was noted of an environment, which is to be removed."""
    with suppress(OSError):
        _file(environment).unlink()


def _file(environment: Environment) -> Path:
    return paths.state() / "proven" / hashlib.sha256(bytes(environment.prefix)).hexdigest()


def _installation(environment: Environment) -> str:
    written = marker.path(environment.prefix).stat()
    return f"{environment.lock_sha256} {written.st_ino} {written.st_mtime_ns}\n"
