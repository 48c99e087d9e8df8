"""Locks: conda-lock v1 files, read, checked, compared and rewritten. Solving one is `envkit.solve`'s part.

What half the verbs never ask for is imported when it is: `canonicalise` and the forms of a diff.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from envkit.lock.accelerator import TORCH_NAMES, build_cuda, check_accelerator
from envkit.lock.check import LockState, State, check
from envkit.lock.diff import Change, Diff, apply, diff, diff_json
from envkit.lock.head import locked_version, read_head
from envkit.lock.place import LOCK_NAME, is_fresh, lock_path
from envkit.lock.read import DIGEST_KEY, SCHEMA, SCHEMA_KEY, parse_lock, read_lock
from envkit.lock.size import download_size, size_notes

if TYPE_CHECKING:
    from envkit.lock.canonical import canonicalise
    from envkit.lock.markdown import diff_markdown
    from envkit.lock.rows import diff_text

__all__ = [
    "DIGEST_KEY",
    "LOCK_NAME",
    "SCHEMA",
    "SCHEMA_KEY",
    "TORCH_NAMES",
    "Change",
    "Diff",
    "LockState",
    "State",
    "apply",
    "build_cuda",
    "canonicalise",
    "check",
    "check_accelerator",
    "diff",
    "diff_json",
    "diff_markdown",
    "diff_text",
    "download_size",
    "is_fresh",
    "lock_path",
    "locked_version",
    "parse_lock",
    "read_head",
    "read_lock",
    "size_notes",
]

_LATER = {"canonicalise": "canonical", "diff_markdown": "markdown", "diff_text": "rows"}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
