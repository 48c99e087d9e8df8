"""Specs to locks: rattler solves, conda-lock parses and writes, in one process. Nothing is imported early."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from envkit.solve.lock import lock_text, open_shelf, solve, write_lock

__all__ = ["lock_text", "open_shelf", "solve", "write_lock"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from envkit.solve import lock

        return getattr(lock, name)
    raise AttributeError(name)
