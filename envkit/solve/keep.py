"""A new lock that changes no more of the old one than it must.

The solver prefers old records where told to, which is not a promise: it may take another way through. So what
it moved without need is moved back, one package at a time, by proof: a solve in which the old record is the
only choice. And a package that is to be updated is asked for above its version until no higher one solves.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from envkit.messages import _
from envkit.model import Lock, VirtualPackage
from envkit.progress import SILENT, Observer
from envkit.solve.engine import Index, Solved, Unsolvable

__all__ = ["kept_records", "settle"]

_MOST_TRIES = 40
"""Solves spent on moving packages back; past that, most of the environment had to move anyway."""


def kept_records(index: Index, locked: Lock, observer: Observer = SILENT) -> list[Solved]:
    """The conda packages of an old lock on the platform of `index`, as the channels have them now.

    A record that is gone is told to the observer; the newest build of its version stands in for it, where
    there is one.
    """
    kept = []
    for package in locked.on(index.platform):
        if package.manager != "conda":
            continue
        found = index.find(package.name, package.url)
        if found is None:
            observer.note(
                _("{platform}: {file} is no longer in its channel; {name} moves").format(
                    platform=index.platform, file=package.file_name, name=package.name
                )
            )
            same = index.matching(f"{package.name} =={package.version}")
            found = max(same, key=lambda record: record.build_number, default=None)
        if found is not None:
            kept.append(found)
    return kept


def settle(
    index: Index,
    specs: Sequence[str],
    virtual_packages: Sequence[VirtualPackage],
    *,
    old: Sequence[Solved],
    moving: Collection[str] = (),
) -> tuple[Solved, ...]:
    """The packages that satisfy `specs`, as many of `old` as can be among them.

    Those named in `moving` take the highest version that any solution has, one after the other. Raises
    Unsolvable where there is no solution.
    """
    stay = [record for record in old if record.name not in moving]
    solved = index.solve(specs, virtual_packages, locked=stay)
    raised = [*specs]
    for name in moving:
        solved = _highest(index, raised, virtual_packages, stay, name, solved)
        if name in (now := _by_name(solved)):
            raised.append(f"{name} =={now[name].version}")
    return _moved_back(index, raised, virtual_packages, stay, solved)


def _highest(
    index: Index,
    specs: Sequence[str],
    virtual_packages: Sequence[VirtualPackage],
    stay: Sequence[Solved],
    name: str,
    solved: tuple[Solved, ...],
) -> tuple[Solved, ...]:
    """The solution with the highest version of one package."""
    while name in (now := _by_name(solved)):
        try:
            solved = index.solve([*specs, f"{name} >{now[name].version}"], virtual_packages, locked=stay)
        except Unsolvable:
            break
    return solved


def _moved_back(
    index: Index,
    specs: Sequence[str],
    virtual_packages: Sequence[VirtualPackage],
    stay: Sequence[Solved],
    solved: tuple[Solved, ...],
) -> tuple[Solved, ...]:
    """The solution after every package that can keep its old record by itself has got it back."""
    before = _by_name(stay)
    held: dict[str, Solved] = {}
    must_move: set[str] = set()
    for _try in range(_MOST_TRIES):
        moved = [
            before[name]
            for name, now in _by_name(solved).items()
            if name in before and before[name].url != now.url and name not in must_move
        ]
        if not moved:
            break
        try:
            solved = index.solve(specs, virtual_packages, locked=stay, pinned=[*held.values(), moved[0]])
        except Unsolvable:
            must_move.add(moved[0].name)
        else:
            held[moved[0].name] = moved[0]
    return solved


def _by_name(packages: Sequence[Solved]) -> Mapping[str, Solved]:
    return {package.name: package for package in packages}
