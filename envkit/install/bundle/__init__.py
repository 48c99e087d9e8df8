"""One file with all that an environment needs, for machines without a network."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from envkit.errors import Error
from envkit.messages import _
from envkit.model import Lock

__all__ = ["opened"]


def opened(path: Path, sha256: str | None) -> AbstractContextManager[tuple[Lock, Path]]:
    """The lock in a bundle and the root of its channel tree, for as long as the context lasts."""
    raise Error(_("{path}: bundles cannot be read yet").format(path=path))
