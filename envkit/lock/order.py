"""Which of two versions is the newer one, by the rules of the tool that installs the package."""

from __future__ import annotations

import re

from envkit.model import Manager

__all__ = ["compare_versions"]

_PART = re.compile(r"\d+|[a-z]+")


def compare_versions(manager: Manager, a: str, b: str) -> int:
    """-1, 0 or 1 as `a` is older than, as old as, or newer than `b`.

    conda's order for conda packages, PEP 440 for pip's. What neither can read is ordered by its numbers and
    words, so that a stranger's odd version still has a place.
    """
    if a == b:
        return 0
    return _conda(a, b) if manager == "conda" else _pip(a, b)


def _conda(a: str, b: str) -> int:
    import rattler
    from rattler.exceptions import InvalidVersionError

    try:
        old, new = rattler.Version(a), rattler.Version(b)
    except (InvalidVersionError, TypeError, ValueError):
        return _plain(a, b)
    return (old > new) - (old < new)


def _pip(a: str, b: str) -> int:
    from packaging.version import InvalidVersion, Version

    try:
        old, new = Version(a), Version(b)
    except InvalidVersion:
        return _plain(a, b)
    return (old > new) - (old < new)


def _plain(a: str, b: str) -> int:
    old, new = _parts(a), _parts(b)
    return (old > new) - (old < new)


def _parts(version: str) -> list[tuple[bool, int, str]]:
    """Words before numbers, as a pre-release comes before the next number."""
    found = _PART.findall(version.lower())
    return [(part.isdigit(), int(part) if part.isdigit() else 0, part) for part in found]
