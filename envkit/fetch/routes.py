"""Which host to ask for which file: a mirror is a transport for a channel, never part of a spec or a lock."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from urllib.parse import quote, urlsplit

from envkit.channels import Mirror, Table, canonical_url, local_path, locate, shown, table
from envkit.errors import InputError
from envkit.fetch.session import Session
from envkit.messages import _

__all__ = ["Routes", "Source", "routes"]

OFFICIAL = "official"
AUTO = "auto"


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """One place where a channel lies: `url` is its folder there, without a trailing slash."""

    url: str
    zst: bool = True

    @property
    def directory(self) -> Path | None:
        """The folder itself, where the channel lies on a file system."""
        return local_path(self.url)

    @property
    def place(self) -> str:
        """How to call it in a message: the host, or the folder."""
        return str(self.directory) if self.directory else urlsplit(shown(self.url)).netloc


class Transport(Protocol):
    """A way to reach channels."""

    @property
    def name(self) -> str:
        """How to call it in a message."""

    def source(self, channel: str, subdir: str | None) -> Source | None:
        """Where it has a channel, by name, or None where it does not carry it."""


@dataclass(frozen=True, slots=True)
class _Site:
    """A row of the table of mirrors."""

    mirror: Mirror
    doubtful: bool
    """Whether to ask for channels of which nobody knows whether the mirror has them."""

    @property
    def name(self) -> str:
        return self.mirror.name

    def source(self, channel: str, subdir: str | None) -> Source | None:
        sure = not self.doubtful or channel.split("/")[0] in table().evidence_needed
        url = self.mirror.url(channel, subdir, sure=sure)
        return Source(url=url, zst=self.mirror.zst) if url else None


@dataclass(frozen=True, slots=True)
class _Upstream:
    """Where every channel comes from."""

    @property
    def name(self) -> str:
        return table().upstream.name

    def source(self, channel: str, subdir: str | None) -> Source | None:
        return Source(url=canonical_url(channel))


@dataclass(frozen=True, slots=True)
class _Server:
    """A server of the user's: `<url>/<channel>/<subdir>/<file>`."""

    url: str

    @property
    def name(self) -> str:
        return shown(self.url)

    def source(self, channel: str, subdir: str | None) -> Source | None:
        return Source(url=f"{self.url}/{channel}")


@dataclass(frozen=True, slots=True)
class _Directory:
    """A directory of channels; `pkgs/main` may stand as `pkgs-main`."""

    root: Path

    @property
    def name(self) -> str:
        return str(self.root)

    def source(self, channel: str, subdir: str | None) -> Source | None:
        for name in (channel, channel.replace("/", "-") if channel.startswith("pkgs/") else channel):
            if (self.root / name).is_dir():
                return Source(url="file://" + quote(str(self.root / name)))
        return None


@dataclass(frozen=True, kw_only=True, slots=True)
class Routes:
    """The transports to ask, in order, and the session that remembers which hosts answered.

    `choice` is what the user wrote. Upstream stands last even where it is not named, unless `only`.
    """

    choice: str
    transports: tuple[Transport, ...]
    only: bool = False
    session: Session = field(default_factory=Session, compare=False, repr=False)

    def sources(self, channel: str, subdir: str | None = None) -> tuple[Source, ...]:
        """Where to ask for a channel (a name or a URL), best first; never empty.

        Raises InputError where only the chosen mirrors may be asked and none carries the channel.
        """
        if "://" in channel:
            return (Source(url=channel.rstrip("/")),)
        asked = self.transports if self.only else (*self.transports, _Upstream())
        found = dict.fromkeys(
            source for transport in asked if (source := transport.source(channel, subdir)) is not None
        )
        if not found:
            raise self._not_carried(channel, subdir)
        return tuple(found)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The mirrors that a user named, in order; none where nobody chose."""
        sites = () if self.choice == AUTO else self.transports
        return tuple(site.mirror.host for site in sites if isinstance(site, _Site))

    def urls(self, canonical: str) -> tuple[str, ...]:
        """The URLs to ask for one file, given its canonical URL, best first."""
        place = locate(canonical)
        return tuple(
            f"{source.url}/{place.subdir}/{place.file}"
            for source in self.sources(place.channel, place.subdir)
        )

    def check(self, channels: Iterable[str], subdirs: Iterable[str] = ()) -> None:
        """Raise InputError now for a channel that no allowed transport carries, before any connection."""
        for channel in channels:
            for subdir in subdirs or (None,):
                self.sources(channel, subdir)

    def describe(self, channels: Iterable[str], subdir: str | None = None) -> tuple[str, ...]:
        """One line for each channel: who is asked for it, in order, and which chosen mirror lacks it."""
        lines = []
        for channel in channels:
            places = _(", then ").join(source.place for source in self.sources(channel, subdir))
            lacking = [
                transport.name
                for transport in self.transports
                if self.choice != AUTO and "://" not in channel and not transport.source(channel, subdir)
            ]
            line = _("{channel}: {places}").format(channel=shown(channel), places=places)
            if lacking:
                line += _(" (not carried by {mirrors})").format(mirrors=", ".join(lacking))
            lines.append(line)
        return tuple(lines)

    def _not_carried(self, channel: str, subdir: str | None) -> InputError:
        carriers = table().carriers(channel)
        return InputError(
            _(
                "the channel '{channel}'{subdir} is not carried by {mirrors}, and nothing else may be asked"
            ).format(
                channel=channel,
                subdir=f" ({subdir})" if subdir else "",
                mirrors=", ".join(transport.name for transport in self.transports),
            ),
            _("add a mirror that carries it ({mirrors}), or allow upstream").format(
                mirrors=", ".join((*carriers, OFFICIAL))
            ),
        )


def routes(choice: str = AUTO, *, condarc: Path | None = None, only: bool = False) -> Routes:
    """The routes for what a user asked: `auto`, `official`, the id of a mirror, the URL of a conda server,
    `file:///directory`, or several of them in order, separated by commas.

    With `only`, nothing but what was named is asked; else upstream comes last. `condarc` is where the
    user's own .condarc will be taken into account; it is not read yet. Raises InputError for an unknown
    mirror or a directory that does not exist.
    """
    facts = table()
    words = [word.strip() for word in choice.split(",") if word.strip()] or [AUTO]
    transports: list[Transport] = []
    for word in words:
        transports += _transports(word, facts)
    return Routes(choice=",".join(words).lower(), transports=tuple(dict.fromkeys(transports)), only=only)


def _transports(word: str, facts: Table) -> list[Transport]:
    if word.startswith("file://"):
        return [_Directory(_existing(word))]
    if word.startswith(("https://", "http://")):
        return [_Server(word.rstrip("/"))]
    key = word.lower()
    if key == AUTO:
        # A place for measuring: today the order is that of the table.
        return [_named(facts.mirrors[name], facts, doubtful=False) for name in facts.auto]
    if key == OFFICIAL:
        return [_Upstream()]
    if key in facts.mirrors:
        return [_named(facts.mirrors[key], facts, doubtful=True)]
    near = difflib.get_close_matches(key, (AUTO, OFFICIAL, *facts.mirrors), n=3, cutoff=0.7)
    raise InputError(
        _("there is no mirror '{word}'").format(word=shown(word)),
        _("choose one of {names}, the URL of a conda server, or file:///a/directory").format(
            names=", ".join(near or (AUTO, OFFICIAL, *facts.mirrors))
        ),
    )


def _named(mirror: Mirror, facts: Table, *, doubtful: bool) -> Transport:
    return _Upstream() if mirror is facts.upstream else _Site(mirror, doubtful)


def _existing(url: str) -> Path:
    path = local_path(url)
    if path is None or not path.is_absolute() or not path.is_dir():
        raise InputError(
            _("{url} is not a directory here").format(url=url),
            _("write three slashes and the full path of a directory of channels: file:///path/to/channels"),
        )
    return path
