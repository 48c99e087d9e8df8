"""Which checks to run: all, the quick ones, or those named by id or area."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from envkit.checks.definition import CheckInfo
from envkit.errors import InputError
from envkit.messages import _

__all__ = ["Selection", "choose"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    """What to run, in the catalogue's order, and the ids to show.

    What is run only because another check needs it is shown only where it fails.
    """

    run: tuple[CheckInfo, ...]
    shown: frozenset[str]


def choose(
    catalogue: Sequence[CheckInfo], *, quick: bool = False, only: Iterable[str] = (), skip: Iterable[str] = ()
) -> Selection:
    """Select checks. `only` and `skip` hold ids ("shm.size") or areas ("shm"); InputError for an unknown one.

    Named checks are run whether quick or not. What is skipped is not run even where another check needs it.
    """
    named, left_out = _ids(catalogue, only), _ids(catalogue, skip)
    wanted = named or {info.id for info in catalogue if info.quick or not quick}
    wanted -= left_out
    if not wanted:
        raise InputError(_("no check is left to run"), _("see the checks with `envkit validate --list`"))
    by_id = {info.id: info for info in catalogue}
    running = set(wanted)
    for info in reversed(catalogue):
        if info.id in running:
            running |= {need for need in info.needs if need in by_id and need not in left_out}
    return Selection(run=tuple(info for info in catalogue if info.id in running), shown=frozenset(wanted))


def _ids(catalogue: Sequence[CheckInfo], names: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for name in names:
        matching = {info.id for info in catalogue if info.id == name or info.id.startswith(name + ".")}
        if not matching:
            raise InputError(_("there is no check '{name}'").format(name=name), _hint(catalogue, name))
        found |= matching
    return found


def _hint(catalogue: Sequence[CheckInfo], name: str) -> str:
    ids = [info.id for info in catalogue]
    areas = sorted({id.partition(".")[0] for id in ids})
    near = difflib.get_close_matches(name, ids + areas, n=3, cutoff=0.5)
    if near:
        return _("did you mean {names}?").format(names=", ".join(near))
    return _("areas are {areas}; see the checks with `envkit validate --list`").format(areas=", ".join(areas))
