"""Where the lock of a variant lies, and whether it is still the one its spec asks for."""

from __future__ import annotations

from pathlib import Path

from envkit import paths
from envkit.model import Lock, Spec, Variant

__all__ = ["LOCK_NAME", "is_fresh", "lock_path"]

LOCK_NAME = "conda-lock.yml"


def lock_path(root: Path, variant: Variant, *, listed: bool = True) -> Path:
    """Where the lock of `variant` lies.

    A variant that the matrix lists has its lock in the project at `root`, to be committed; any other one
    in envkit's own state, for this user alone.
    """
    folder = root / "environments" if listed else paths.state() / "locks"
    return folder / variant.name / LOCK_NAME


def is_fresh(lock: Lock, spec: Spec) -> bool:
    """Whether `lock` was made for exactly this text and these virtual packages. No solving, no network."""
    return lock.digest == spec.digest
