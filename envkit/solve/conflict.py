"""Which of the specs exclude each other: the fewest that do not solve together, found by leaving out.

The solver's own words stop at the first obstacle it met and may name one side of a conflict only.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Sequence

from envkit.model import VirtualPackage
from envkit.solve.engine import Index, Unsolvable

__all__ = ["SECONDS", "conflict", "names_in"]

SECONDS = 4.0
"""Time spent on leaving specs out."""

_TRIES = 64
_WORD = re.compile(r"[a-z0-9_][a-z0-9_.-]*")


def conflict(
    specs: Sequence[str],
    index: Index,
    virtual_packages: Sequence[VirtualPackage],
    *,
    named: Collection[str] = (),
    seconds: float = SECONDS,
) -> tuple[str, ...]:
    """Specs out of `specs` that do not solve together; none of them where all of them do solve.

    Each of them is needed for that, unless the time was over first. Of several such sets it is one with as
    many of the packages in `named` as can be.
    """
    until = time.monotonic() + seconds
    tried = 0

    def refused(some: Sequence[str]) -> bool:
        """Whether these are seen not to solve; what is not known in time is not seen."""
        nonlocal tried
        tried += 1
        left = until - time.monotonic()
        if tried > _TRIES or left <= 0:
            return False
        try:
            index.solve(some, virtual_packages, limit=left)
        except Unsolvable:
            return time.monotonic() < until
        return False

    kept = [spec for spec in specs if _name(spec) in named]
    if not refused(kept):
        kept = list(specs)
        if not refused(kept):
            return ()
    for spec in sorted(kept, key=lambda one: _name(one) in named):
        fewer = [one for one in kept if one != spec]
        if refused(fewer):
            kept = fewer
    return tuple(kept)


def names_in(text: str, specs: Sequence[str]) -> frozenset[str]:
    """The packages of `specs` that a text names, each as a word of its own."""
    words = {word.rstrip(".-") for word in _WORD.findall(text.lower())}
    return frozenset(name for spec in specs if (name := _name(spec)) in words)


def _name(spec: str) -> str:
    return re.split(r"[ =<>!~\[]", spec.rpartition("::")[2], maxsplit=1)[0].lower()
