"""The valid values nearest to a wrong one: by spelling for words, by distance for versions."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from envkit.host.drivers import numbers

__all__ = ["listing", "nearest_versions", "nearest_words"]

_SHOWN = 3


def nearest_words(wrong: str, valid: Iterable[str]) -> tuple[str, ...]:
    """Up to three of `valid`, the most alike first; all of them where few are or none is alike."""
    words = list(valid)
    alike = difflib.get_close_matches(wrong.lower(), words, n=_SHOWN, cutoff=0.5)
    return tuple(alike or words)


def nearest_versions(wrong: str, valid: Iterable[str]) -> tuple[str, ...]:
    """Up to three of `valid`, the nearest in number first; by spelling where `wrong` is no version."""
    versions = list(valid)
    own = numbers(wrong)
    if not own:
        return nearest_words(wrong, versions)

    # Minor versions count on through the majors, so that 12.0 is as near to 11.9 as 11.8 is.
    per_major = 1 + max((minor for version in versions for minor in numbers(version)[1:2]), default=0)

    def place(parts: tuple[int, ...]) -> int:
        return parts[0] * per_major + (parts[1] if len(parts) > 1 else 0)

    def distance(version: str) -> int:
        return abs(place(numbers(version) or (1 << 30,)) - place(own))

    return tuple(sorted(versions, key=distance)[:_SHOWN])


def listing(values: Iterable[str]) -> str:
    """Values as they stand in a sentence."""
    return ", ".join(values)
