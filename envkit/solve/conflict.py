"""Which of the specs exclude each other: the fewest that do not solve together, found by leaving out.

The solver's own words stop at the first obstacle it met and may name one side of a conflict only.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Sequence

from envkit.model import VirtualPackage
from envkit.solve.engine import Index, Unsolvable

__all__ = ["SECONDS", "conflict", "name_of", "names_in", "only_with"]

SECONDS = 4.0
"""Time spent on leaving specs out."""

_TRIES = 64
_MOST_VERSIONS = 8
_WORD = re.compile(r"[a-z0-9_][a-z0-9_.-]*")


def conflict(
    specs: Sequence[str],
    index: Index,
    virtual_packages: Sequence[VirtualPackage],
    *,
    named: Collection[str] = (),
    added: Collection[str] = (),
    seconds: float = SECONDS,
) -> tuple[str, ...]:
    """Specs out of `specs` that do not solve together; none of them where all of them do solve.

    Each of them is needed for that, unless the time was over first. Of several such sets it is one with as
    many of the packages in `named` as can be, and of `added`, for which nobody asked, as few.
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

    own = [spec for spec in specs if name_of(spec) not in added]
    # From the narrowest to all: what an own wish explains is not laid to what was added to it.
    choices = [[spec for spec in own if name_of(spec) in named], own]
    choices += [[spec for spec in specs if name_of(spec) in named], list(specs)]
    kept = next((some for some in choices if some and refused(some)), None)
    if kept is None:
        return ()
    for spec in sorted(kept, key=lambda one: (name_of(one) not in added, name_of(one) in named)):
        fewer = [one for one in kept if one != spec]
        if refused(fewer):
            kept = fewer
    return tuple(kept)


def only_with(
    side: str,
    others: Sequence[str],
    index: Index,
    virtual_packages: Sequence[VirtualPackage],
    *,
    seconds: float = SECONDS,
) -> tuple[str, ...]:
    """The versions of the package of `side`, as far as their minor, that there are beside `others`.

    None of them where there are more than a few, where that is not known in time, or where one of them is
    what `side` asks for and so its version is not what keeps it out.
    """
    until, name = time.monotonic() + seconds, name_of(side)
    wanted = index.versions(side)
    found: list[str] = []
    while len(found) <= _MOST_VERSIONS:
        left = until - time.monotonic()
        if left <= 0:
            return ()
        without = ",".join(f"!={version}.*" for version in found)
        try:
            solved = index.solve([*others, f"{name} {without}".strip()], virtual_packages, limit=left)
        except Unsolvable:
            return tuple(reversed(found)) if time.monotonic() < until else ()
        version = next((package.version for package in solved if package.name == name), None)
        if version is None or version in wanted:
            return ()
        found.append(".".join(version.split(".")[:2]))
    return ()


def names_in(text: str, specs: Sequence[str]) -> frozenset[str]:
    """The packages of `specs` that a text names, each as a word of its own."""
    words = {word.rstrip(".-") for word in _WORD.findall(text.lower())}
    return frozenset(name for spec in specs if (name := name_of(spec)) in words)


def name_of(spec: str) -> str:
    """The package of a match spec."""
    return re.split(r"[ =<>!~\[]", spec.rpartition("::")[2], maxsplit=1)[0].lower()
