"""The adapter to rattler's solver: repodata files in, solved packages out. Nothing here opens a connection.

rattler is told everything explicitly: the canonical URL of each channel (so that records carry it, whichever
mirror served the file), strict priority, and the virtual packages of the target, never the host's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cmp_to_key
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envkit.errors import Error, Findings, InputError
from envkit.messages import _
from envkit.model import VirtualPackage

if TYPE_CHECKING:
    from rattler import MatchSpec, RepoDataRecord

__all__ = ["Index", "Repodata", "Solved", "compare_versions", "readable_reason"]

Repodata = Callable[[str, str], Path]
"""Gives the local, plain repodata.json of a channel (as the spec names it) and a subdir."""

_REASON_LINES = 14
_REASON_WIDTH = 160


@dataclass(frozen=True, kw_only=True, slots=True)
class Solved:
    """A package that the solver chose. Hashes are hex, `size` in bytes, `url` and `channel` canonical.

    `record` is rattler's own object, to be handed back to it.
    """

    name: str
    version: str
    build: str
    build_number: int
    channel: str
    subdir: str
    file_name: str
    url: str
    md5: str | None
    sha256: str | None
    size: int | None
    depends: tuple[str, ...]
    record: RepoDataRecord


class Index:
    """The repodata of some channels for one platform, in order of priority, open for solving.

    `channels` pairs the name a spec uses with the canonical URL. Raises Error where a file is not repodata;
    what `repodata` raises passes through.
    """

    def __init__(self, channels: Sequence[tuple[str, str]], platform: str, repodata: Repodata) -> None:
        from rattler import Channel, SparseRepoData

        self.platform = platform
        self._sources = []
        for name, url in channels:
            for subdir in (platform, "noarch"):
                path = repodata(name, subdir)
                try:
                    self._sources.append(SparseRepoData(Channel(url), subdir, str(path)))
                except Exception as problem:
                    # rattler raises a bare Exception or OSError here, depending on what is wrong.
                    raise Error(
                        _("{path} is not the repodata of {channel}/{subdir}: {reason}").format(
                            path=path, channel=name, subdir=subdir, reason=problem
                        ),
                        _("remove the file, then run the command again"),
                    ) from None

    def solve(
        self,
        specs: Sequence[str],
        virtual_packages: Sequence[VirtualPackage],
        *,
        locked: Sequence[Solved] = (),
    ) -> tuple[Solved, ...]:
        """The packages that satisfy `specs`, sorted by name; those in `locked` are kept where they can be.

        Raises Findings with the solver's reason where there is no such set, InputError for a spec that
        cannot be read.
        """
        from rattler import ChannelPriority, solve_with_sparse_repodata
        from rattler.exceptions import SolverError

        async def run() -> list[RepoDataRecord]:
            return await solve_with_sparse_repodata(
                [_match_spec(spec) for spec in specs],
                self._sources,
                locked_packages=[package.record for package in locked],
                virtual_packages=[_generic(package) for package in virtual_packages],
                channel_priority=ChannelPriority.Strict,
            )

        try:
            records = asyncio.run(run())
        except SolverError as problem:
            raise Findings(readable_reason(str(problem))) from None
        return tuple(sorted((_solved(record) for record in records), key=lambda package: package.name))

    def find(self, name: str, url: str) -> Solved | None:
        """The record of a package of an earlier lock, by its canonical URL, if the channel still has it."""
        for source in self._sources:
            for record in source.load_records(name):
                if record.url == url:
                    return _solved(record)
        return None

    def versions(self, spec: str) -> frozenset[str]:
        """The versions that match `spec` in the channel that strict priority takes its package from."""
        name = spec.partition(" ")[0]
        for first, second in zip(self._sources[::2], self._sources[1::2], strict=True):
            if first.load_records(name) or second.load_records(name):
                match = [_match_spec(spec)]
                records = [*first.load_matching_records(match), *second.load_matching_records(match)]
                return frozenset(str(record.version) for record in records)
        return frozenset()


def compare_versions(versions: Sequence[str]) -> list[str]:
    """`versions` in conda's order, highest first."""
    from rattler import Version

    def compare(one: str, other: str) -> int:
        left, right = Version(one), Version(other)
        return (left < right) - (left > right) or (one < other) - (one > other)

    return sorted(versions, key=cmp_to_key(compare))


def readable_reason(text: str) -> str:
    """The solver's explanation without its repetitions, at most a screenful.

    rattler lists every build of every version: the same line comes dozens of times.
    """
    seen: set[str] = set()
    lines: list[str] = []
    left_out = 0
    for line in text.strip().splitlines():
        content = line.strip(" │├└─")
        if not content or content in seen:
            continue
        seen.add(content)
        if len(lines) < _REASON_LINES:
            lines.append(line.rstrip()[:_REASON_WIDTH])
        else:
            left_out += 1
    if left_out:
        lines.append(_("… and {count} more lines").format(count=left_out))
    return "\n".join(lines)


def _match_spec(spec: str) -> MatchSpec:
    from rattler import MatchSpec
    from rattler.exceptions import InvalidMatchSpecError

    try:
        # conda-lock writes `pytorch 2.1 *cuda*`, which the strict grammar refuses.
        return MatchSpec(spec, strict=False)
    except InvalidMatchSpecError as problem:
        raise InputError(
            _("cannot read the package constraint '{spec}': {reason}").format(spec=spec, reason=problem),
            _("write it as `name`, `name=1.2` or `name=1.2.*=*build*`"),
        ) from None


def _generic(package: VirtualPackage) -> Any:
    from rattler import GenericVirtualPackage, PackageName, Version
    from rattler.package import BuildString

    return GenericVirtualPackage(
        PackageName(package.name), Version(package.version), BuildString(package.build)
    )


def _solved(record: RepoDataRecord) -> Solved:
    return Solved(
        name=record.name.normalized,
        version=str(record.version),
        build=str(record.build),
        build_number=record.build_number,
        channel=record.channel.rstrip("/"),
        subdir=record.subdir,
        file_name=record.file_name,
        url=record.url,
        md5=record.md5.hex() if record.md5 else None,
        sha256=record.sha256.hex() if record.sha256 else None,
        size=record.size,
        depends=tuple(record.depends),
        record=record,
    )
