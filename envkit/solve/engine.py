"""The adapter to rattler's solver: repodata files in, solved packages out. Nothing here opens a connection.

rattler is told everything explicitly: the canonical URL of each channel (so that records carry it, whichever
mirror served the file), strict priority, and the virtual packages of the target, never the host's.
"""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cmp_to_key
from typing import TYPE_CHECKING, Any

from envkit.errors import Error, Findings, InputError
from envkit.messages import _
from envkit.model import VirtualPackage
from envkit.solve.reason import readable

if TYPE_CHECKING:
    from rattler import MatchSpec, RepoDataRecord, SparseRepoData

__all__ = ["Index", "Solved", "Unsolvable", "compare_versions", "parts_of"]


class Unsolvable(Findings):
    """There is no set of packages for `platform` that satisfies the specs; `text` is the solver's word."""

    def __init__(self, text: str, platform: str) -> None:
        self.text = text
        self.platform = platform
        super().__init__(readable(text))


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

    `channels` maps the name a spec uses to the canonical URL; `sources` holds two for each channel: that of
    the platform, then noarch. `envkit.solve.shelf` opens them.
    """

    def __init__(self, channels: Mapping[str, str], platform: str, sources: Sequence[SparseRepoData]) -> None:
        self.channels = tuple(channels)
        self.platform = platform
        self._names = {url.rstrip("/"): name for name, url in channels.items()}
        self._sources = tuple(sources)
        self._all: frozenset[str] | None = None

    def solve(
        self,
        specs: Sequence[str],
        virtual_packages: Sequence[VirtualPackage],
        *,
        locked: Sequence[Solved] = (),
        pinned: Sequence[Solved] = (),
        limit: float | None = None,
    ) -> tuple[Solved, ...]:
        """The packages that satisfy `specs`, sorted by name.

        Those in `locked` are kept where they can be; those in `pinned` are the only choice for their names.
        Raises Unsolvable with the solver's words where there is no such set, or none was found within
        `limit` seconds; InputError for a spec that cannot be read.
        """
        from rattler import ChannelPriority, solve_with_sparse_repodata
        from rattler.exceptions import SolverError

        async def run() -> list[RepoDataRecord]:
            return await solve_with_sparse_repodata(
                [_match_spec(spec) for spec in specs],
                self._sources,
                locked_packages=[package.record for package in locked],
                pinned_packages=[package.record for package in pinned],
                virtual_packages=[_generic(package) for package in virtual_packages],
                channel_priority=ChannelPriority.Strict,
                timeout=None if limit is None else timedelta(seconds=limit),
            )

        try:
            records = asyncio.run(run())
        except SolverError as problem:
            raise Unsolvable(str(problem), self.platform) from None
        except OSError as problem:  # rattler reads each record as it comes to it
            raise Error(
                _("the repodata of {channels} holds a record that cannot be read: {reason}").format(
                    channels=", ".join(self.channels), reason=problem
                ),
                _("index the channel again, or choose another mirror"),
            ) from None
        return tuple(sorted((_solved(record) for record in records), key=lambda package: package.name))

    def records(self, name: str) -> dict[str, list[Solved]]:
        """Everything of this name, channel by channel in order of priority; channels without it left out."""
        found = {}
        for channel, pair in self._pairs():
            records = [_solved(record) for source in pair for record in source.load_records(name)]
            if records:
                found[channel] = records
        return found

    def matching(self, spec: str) -> list[Solved]:
        """The records that match `spec` in the channel that strict priority takes its package from."""
        name = spec.partition(" ")[0]
        for _channel, pair in self._pairs():
            if any(source.load_records(name) for source in pair):
                match = [_match_spec(spec)]
                return [_solved(record) for source in pair for record in source.load_matching_records(match)]
        return []

    def find(self, name: str, url: str) -> Solved | None:
        """The record of a package of an earlier lock, by its canonical URL, if the channel still has it."""
        for source in self._sources:
            for record in source.load_records(name):
                if record.url == url:
                    return _solved(record)
        return None

    def versions(self, spec: str) -> frozenset[str]:
        """The versions that match `spec` in the channel that strict priority takes its package from."""
        return frozenset(package.version for package in self.matching(spec))

    def has(self, spec: str, channel: str) -> bool:
        """Whether one channel, looked at alone, has a match."""
        match = [_match_spec(spec)]
        pair = dict(self._pairs())[channel]
        return any(source.load_matching_records(match) for source in pair)

    @property
    def names(self) -> frozenset[str]:
        """The name of every package that any of the channels has."""
        if self._all is None:
            self._all = frozenset(name for source in self._sources for name in source.package_names())
        return self._all

    def alike(self, name: str) -> tuple[str, ...]:
        """Names in the channels that are spelled much like this one, at most three."""
        return tuple(difflib.get_close_matches(name, sorted(self.names), n=3, cutoff=0.75))

    def named(self, url: str) -> str:
        """The channel of a canonical URL, as the spec names it."""
        return self._names.get(url.rstrip("/"), url)

    def _pairs(self) -> Iterator[tuple[str, tuple[SparseRepoData, SparseRepoData]]]:
        return zip(self.channels, zip(self._sources[::2], self._sources[1::2], strict=True), strict=True)


def compare_versions(versions: Sequence[str]) -> list[str]:
    """`versions` in conda's order, highest first."""
    from rattler import Version

    def compare(one: str, other: str) -> int:
        left, right = Version(one), Version(other)
        return (left < right) - (left > right) or (one < other) - (one > other)

    return sorted(versions, key=cmp_to_key(compare))


def parts_of(spec: str) -> tuple[str, str | None, str | None]:
    """The name, version constraint and build of a match spec; None for what it leaves open."""
    parsed = _match_spec(spec)
    version = None if parsed.version in (None, "*") else str(parsed.version)
    build = None if parsed.build in (None, "*") else str(parsed.build)
    return spec.split(" ")[0].split("=")[0], version, build


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
