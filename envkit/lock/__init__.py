"""Locks: conda-lock v1 files, read and checked. Writing one is `envkit.solve`'s part."""

from envkit.lock.accelerator import TORCH_NAMES, build_cuda, check_accelerator
from envkit.lock.canonical import canonicalise
from envkit.lock.check import LockState, check
from envkit.lock.diff import Change, Diff, apply, diff, diff_json
from envkit.lock.head import read_head
from envkit.lock.markdown import diff_markdown
from envkit.lock.place import LOCK_NAME, is_fresh, lock_path
from envkit.lock.read import DIGEST_KEY, SCHEMA, SCHEMA_KEY, parse_lock, read_lock
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
    "apply",
    "build_cuda",
    "canonicalise",
    "check",
    "check_accelerator",
    "diff",
    "diff_json",
    "diff_markdown",
    "diff_text",
    "is_fresh",
    "lock_path",
    "parse_lock",
    "read_head",
    "read_lock",
]
