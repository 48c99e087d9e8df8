"""Which host to ask for which file: a mirror is a transport for a channel, never part of a spec or a lock."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from envkit import paths
from envkit.channels import Condarc, Mirror, Table, hostname, local_path, locate, shown, table
from envkit.errors import InputError
from envkit.fetch.access import Access
from envkit.fetch.measure import targets
from envkit.fetch.measured import Memory, Ranking, network
from envkit.fetch.session import Session
from envkit.fetch.transports import Directory, Own, PipFile, Server, Site, Source, Transport, Upstream
from envkit.fetch.trust import Trust
from envkit.messages import _

__all__ = ["AUTO", "OFFICIAL", "Routes", "Source", "routes"]

OFFICIAL = "official"
AUTO = "auto"
_ARCHIVES = (".conda", ".tar.bz2")


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
            folders = [transport for transport in self.transports if isinstance(transport, Directory)]
            here = (source for folder in folders for source in folder.sources(channel, subdir))
            return (*here, Source(url=channel.rstrip("/")))
        found: dict[str, Source] = {}
        for transport in self._asked:
            for source in transport.sources(channel, subdir):
                found.setdefault(source.url, source)
        if not found:
            raise self._not_carried(channel, subdir)
        return self._arranged(tuple(found.values()))

    @property
    def hosts(self) -> tuple[str, ...]:
        """The mirrors of the table that a user named, in order; none where nobody chose."""
        return tuple(site.mirror.host for site in self._sites if site.named)

    def urls(self, canonical: str) -> tuple[str, ...]:
        """The URLs to ask for one file, given its canonical URL, best first.

        Files that pip installs are asked for at the mirrors' copies of the Python index's files and of
        PyTorch's wheels, and in a tree of channels under `pip`. Raises InputError as `sources` does.
        """
        if not canonical.split("#", 1)[0].endswith(_ARCHIVES):
            return self._wheel_urls(PipFile.at(canonical))
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
            places = _(", then ").join(map(_described, self.sources(channel, subdir)))
            lacking = [
                site.name
                for site in self._sites
                if site.named and "://" not in channel and not site.sources(channel, subdir)
            ]
            line = _("{channel}: {places}").format(channel=shown(channel), places=places)
            if lacking:
                line += _(" (not carried by {mirrors})").format(mirrors=", ".join(lacking))
            lines.append(line)
        return tuple(lines)

    @property
    def _asked(self) -> tuple[Transport, ...]:
        return self.transports if self.only else (*self.transports, Upstream())

    @property
    def _sites(self) -> tuple[Site, ...]:
        return tuple(site for site in self.transports if isinstance(site, Site))

    def _arranged(self, sources: tuple[Source, ...]) -> tuple[Source, ...]:
        """In the order of their speed, as far as that is known already: nothing is asked here."""
        ranking = self.session.ranking
        if ranking is None:
            return sources
        order = ranking.arrange([source.place for source in sources])
        return tuple(sources[place] for place in order)

    def _wheel_urls(self, file: PipFile) -> tuple[str, ...]:
        found = dict.fromkeys(url for transport in self._asked if (url := transport.wheel(file)) is not None)
        if not found:
            raise InputError(
                _("{file} is not carried by {mirrors}, and nothing else may be asked").format(
                    file=file.name, mirrors=self._names
                ),
                _("allow upstream: leave out --only-mirrors, or add `official` to --mirror"),
            )
        return tuple(found)

    @property
    def _names(self) -> str:
        return ", ".join(transport.name for transport in self.transports)

    def _not_carried(self, channel: str, subdir: str | None) -> InputError:
        carriers = table().carriers(channel)
        return InputError(
            _(
                "the channel '{channel}'{subdir} is not carried by {mirrors}, and nothing else may be asked"
            ).format(channel=channel, subdir=f" ({subdir})" if subdir else "", mirrors=self._names),
            _("add a mirror that carries it ({mirrors}), or allow upstream").format(
                mirrors=", ".join((*carriers, OFFICIAL))
            ),
        )


def routes(
    choice: str = AUTO,
    *,
    only: bool = False,
    offline: bool = False,
    allow_hosts: Collection[str] = (),
    condarc: Condarc | None = None,
    facts: Table | None = None,
    memory: Path | None = None,
) -> Routes:
    """The routes for what a user asked: `auto`, `official`, the id of a mirror, the URL of a conda server,
    `file:///directory`, or several of them in order, separated by commas.

    `auto` asks the user's own places (`condarc`) first, each for its channels, then upstream and the
    mirrors of the table in the order of their speed here. What is named comes before those places; behind
    a named mirror of the table stand those that are independent of it, and upstream is last. With `only`,
    nothing but what was named is asked (with `auto`: nothing but mirrors). `offline` forbids every
    connection; `allow_hosts` are trusted besides. The mistakes in the .condarc are told before the first
    file is asked for. `facts` is the table of mirrors, `memory` the file of earlier measurements; both
    envkit's own unless given. Raises InputError for an unknown mirror or a directory that does not exist.
    """
    facts = facts or table()
    words = [word.strip() for word in choice.split(",") if word.strip()] or [AUTO]
    own = () if condarc is None or not condarc.settings else (Own(condarc),)
    transports: list[Transport] = []
    for word in words:
        transports += (*own, *_auto(facts, only)) if word.lower() == AUTO else _named(word, facts)
    if not only and AUTO not in map(str.lower, words):
        transports += _behind(transports, own, facts)
    chosen = {word for word in words if "://" in word} | set(allow_hosts)
    access = Access.of(condarc)
    return Routes(
        choice=",".join(map(shown, words)).lower(),
        transports=tuple(dict.fromkeys(transports)),
        only=only,
        session=Session(
            trust=Trust(hosts=frozenset(chosen | (condarc.hosts if condarc is not None else frozenset()))),
            offline=offline,
            access=access,
            notices=map(str, condarc.mistakes if condarc is not None else ()),
            ranking=_ranking(transports, facts, access, memory) if AUTO in map(str.lower, words) else None,
        ),
    )


def _auto(facts: Table, only: bool) -> Iterator[Transport]:
    for name in facts.auto:
        if facts.mirrors[name] is not facts.upstream:
            yield Site(facts.mirrors[name], named=False)
        elif not only:
            yield Upstream()


def _named(word: str, facts: Table) -> list[Transport]:
    if word.startswith("file://"):
        return [Directory(_existing(word))]
    if word.startswith(("https://", "http://")):
        mirror = _mirror_at(word, facts)
        return [Server(word.rstrip("/")) if mirror is None else _site(mirror, facts)]
    key = word.lower()
    if key == OFFICIAL:
        return [Upstream()]
    if key in facts.mirrors:
        return [_site(facts.mirrors[key], facts)]
    names = (AUTO, OFFICIAL, *facts.mirrors)
    near = difflib.get_close_matches(key, names, n=1, cutoff=0.7)
    hint = _("choose one of {names}, the URL of a conda server, or file:///a/directory").format(
        names=", ".join(names)
    )
    raise InputError(
        _("there is no mirror '{word}'").format(word=shown(word)),
        _("did you mean {name}? Else {hint}").format(name=near[0], hint=hint) if near else hint,
    )


def _site(mirror: Mirror, facts: Table) -> Transport:
    return Upstream() if mirror is facts.upstream else Site(mirror, named=True)


def _mirror_at(url: str, facts: Table) -> Mirror | None:
    """The mirror of the table that a URL without a name and a password means: it knows what it carries."""
    if shown(url).rstrip("/") != url.rstrip("/"):
        return None
    place = url.partition("://")[2].rstrip("/")
    for base in facts.at_host(hostname(url) or ""):
        if base.tree in ("cloud", "pkgs") and f"{base.place}/".startswith(f"{place}/"):
            return facts.mirrors.get(base.row)
    return None


def _behind(named: Collection[Transport], own: Collection[Own], facts: Table) -> Iterator[Transport]:
    """What follows the transports that a user named: the user's own places, and independent mirrors."""
    if all(isinstance(transport, Upstream) for transport in named):
        return
    yield from own
    sites = [transport.mirror for transport in named if isinstance(transport, Site)]
    dependent = {mirror.redirects for mirror in sites}
    for name in facts.auto if sites else ():
        mirror = facts.mirrors[name]
        if mirror is not facts.upstream and mirror not in sites and name not in dependent:
            yield Site(mirror, named=False)


def _ranking(
    transports: Iterable[Transport], facts: Table, access: Access, memory: Path | None
) -> Ranking | None:
    """The order of the mirrors that nobody chose; None where there are no two of them."""
    # What a .condarc or the command line names keeps its place, whatever its speed.
    kept = {
        transport.mirror.id for transport in transports if isinstance(transport, Site) and transport.named
    }
    kept |= {
        base.row
        for transport in transports
        if isinstance(transport, Own)
        for url in transport.condarc.urls
        if (base := facts.base_of(url)) is not None
    }
    mirrors = dict.fromkeys(
        facts.upstream if isinstance(transport, Upstream) else transport.mirror
        for transport in transports
        if isinstance(transport, Upstream | Site)
    )
    wanted = targets(mirror for mirror in mirrors if mirror.id not in kept)
    if len(wanted) < 2:
        return None
    try:
        remembered = Memory(path=memory or paths.state() / "mirrors.json", network=network(access))
    except OSError:  # nobody knows whose home this is
        remembered = None
    ids = {base.place.partition("/")[0]: base.row for base in facts.bases}
    ids[hostname(facts.pytorch) or ""] = facts.upstream.id
    ids |= {target.host: target.id for target in wanted}
    known = {target.id for target in wanted}
    return Ranking(
        wanted=wanted, ids={host: name for host, name in ids.items() if name in known}, memory=remembered
    )


def _described(source: Source) -> str:
    return f"{source.place} ({source.remark})" if source.remark else source.place


def _existing(url: str) -> Path:
    path = local_path(url)
    if path is None or not path.is_absolute() or not path.is_dir():
        raise InputError(
            _("{url} is not a directory here").format(url=url),
            _("write three slashes and the full path of a directory of channels: file:///path/to/channels"),
        )
    return path
