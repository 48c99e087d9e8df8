"""Before the first byte: whether the disks have room for an installation and the machine can run it.

    preflight.space      bytes to unpack and to link against what is free, for each file system
    preflight.inodes     files to make against the inodes that are free
    lock.host-*          what the packages ask of this machine (`envkit.lock.audit`)

Only what is certain fails; what is likely warns, and what is not known is never good.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from envkit.errors import Error
from envkit.install.work import GROWTH, Part, Work
from envkit.messages import _
from envkit.model import Check, Host, Lock, Report, Severity, Status
from envkit.paths import existing_folder
from envkit.report.size import spoken

__all__ = ["demand", "preflight", "refuse"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Demand:
    """What one file system is to take: bytes and inodes at least, bytes likely, and what is free there."""

    place: Path
    least: int
    likely: int
    inodes: int
    free: int
    total: int
    free_inodes: int | None


def preflight(work: Work, lock: Lock, prefix: Path, *, cache: Path, host: Host) -> Report:
    """Whether an installation of `lock` at `prefix` can succeed here. Writes nothing.

    The machine's rules are left out for packages of another platform, and those of the driver where
    CONDA_OVERRIDE_CUDA says what to take it for.
    """
    from envkit.lock.audit import fits

    checks = [check for one in demand(work, prefix, cache) for check in (_space(one), _inodes(one))]
    if any(part.package.platform == host.platform for part in work.link):
        taken_for = replace(host, driver=None, driver_cuda=host.override_cuda) if host.override_cuda else host
        checks += fits(lock, taken_for)
    return Report(subject=str(prefix), checks=tuple(checks))


def refuse(report: Report) -> None:
    """Error with every reason why it cannot succeed, if there is one."""
    bad = [check for check in report.checks if check.bad and check.status is Status.FAIL]
    if bad:
        raise Error("\n".join(check.summary for check in bad), bad[0].hint)


def demand(work: Work, prefix: Path, cache: Path) -> tuple[Demand, ...]:
    """What the file systems of cache and prefix are to take; one, where it is the same."""
    cache, parent = existing_folder(cache), existing_folder(prefix.parent)
    shared = cache.stat().st_dev == parent.stat().st_dev
    wheels = [part for part in work.fetch if part.package.manager == "pip"]
    unpacked = _unpacked(work)
    kept = _Amount.of(wheels, growth=1.0)
    archives = [part.bytes or 0 for part in work.fetch if part.package.manager == "conda"]
    into_cache = unpacked + kept + _Amount(least=0, likely=max(archives, default=0), inodes=0)
    linked = _linked(work.link, unpacked, copied=not shared) + _Amount.of(work.pip, growth=GROWTH)
    if shared:
        return (_against(parent, into_cache + linked),)
    found = [_against(parent, linked)]
    if into_cache.likely or into_cache.inodes:
        found.insert(0, _against(cache, into_cache))
    return tuple(found)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Amount:
    least: int
    likely: int
    inodes: int

    def __add__(self, other: _Amount) -> _Amount:
        return _Amount(
            least=self.least + other.least,
            likely=self.likely + other.likely,
            inodes=self.inodes + other.inodes,
        )

    @classmethod
    def of(cls, archives: Sequence[Part], *, growth: float) -> _Amount:
        """What archives become; one of unknown size is at least one file."""
        known = sum(part.bytes or 0 for part in archives)
        return cls(least=known, likely=int(known * growth), inodes=len(archives))


def _unpacked(work: Work) -> _Amount:
    unsized = work.unsized or 0
    rest = _Amount(least=unsized if work.is_sure else 0, likely=int(unsized * GROWTH), inodes=0)
    return _Amount.of(work.unpack, growth=GROWTH) + rest


def _linked(parts: Sequence[Part], unpacked: _Amount, *, copied: bool) -> _Amount:
    """What the prefix takes. A hard link takes nothing; a file that holds the prefix is always written."""
    known = [part for part in parts if part.files is not None]
    if not copied:
        rewritten = sum(part.rewritten for part in known)
        return _Amount(least=rewritten, likely=rewritten, inodes=len(parts))
    there = sum(part.bytes or 0 for part in known)
    files = sum(part.files or 0 for part in known)
    return unpacked + _Amount(least=there, likely=there, inodes=files + len(known))


def _against(place: Path, amount: _Amount) -> Demand:
    state = os.statvfs(place)
    return Demand(
        place=place,
        least=amount.least,
        likely=amount.likely,
        inodes=amount.inodes,
        free=state.f_bavail * state.f_frsize,
        total=state.f_blocks * state.f_frsize,
        free_inodes=state.f_favail if state.f_files else None,
    )


def _space(one: Demand) -> Check:
    numbers = _("{free} free of {total}").format(free=spoken(one.free), total=spoken(one.total))
    data = {"place": str(one.place), "free": one.free, "least": one.least, "likely": one.likely}
    if one.least > one.free:
        status, text = Status.FAIL, _("no room on the disk of {place}: {numbers}, {needed} needed at least")
    elif one.likely > one.free:
        status, text = Status.WARN, _("{place}: {numbers}, about {needed} may be needed")
    else:
        status, text = Status.OK, _("{place}: {numbers}, about {needed} needed")
    needed = one.least if status is Status.FAIL else one.likely
    return Check(
        id="preflight.space",
        status=status,
        severity=Severity.FATAL,
        summary=text.format(place=one.place, numbers=numbers, needed=spoken(needed)),
        hint="" if status is Status.OK else _hint(),
        data=data,
    )


def _inodes(one: Demand) -> Check:
    data = {"place": str(one.place), "free": one.free_inodes, "least": one.inodes}
    if one.free_inodes is None:
        status, text = Status.OK, _("{place}: the file system does not count its files")
    elif one.inodes > one.free_inodes:
        status, text = Status.FAIL, _("no room on the disk of {place}: {free} inodes free, {needed} needed")
    else:
        status, text = Status.OK, _("{place}: {free} inodes free, {needed} needed at least")
    return Check(
        id="preflight.inodes",
        status=status,
        severity=Severity.FATAL,
        summary=text.format(place=one.place, free=one.free_inodes, needed=one.inodes),
        hint=_hint() if status is Status.FAIL else "",
        data=data,
    )


def _hint() -> str:
    return _(
        "free some space (`envkit clean`), or choose another disk: `--prefix`, ENVKIT_HOME, ENVKIT_CACHE"
    )
