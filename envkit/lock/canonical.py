"""A stranger's lock with canonical URLs, and otherwise byte for byte as it was."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from envkit.channels import (
    Canonical,
    canonicalise_url,
    channel_name,
    has_token,
    has_user,
    hostname,
    shown,
)
from envkit.errors import InputError
from envkit.lock.formats.detect import kind_of
from envkit.lock.formats.foreign import Note
from envkit.lock.formats.source import Source, read_source
from envkit.messages import _

__all__ = ["canonicalise"]

_LOCKS = ("conda-lock", "pixi", "explicit")
_URL_IN_LINE = re.compile(r"^(?:#\s*pip\s+\S+\s*@\s*)?(?P<url>[a-z]+://\S+)", re.MULTILINE)
_FILE = "file"
_CHANNEL_URL = re.compile(r"(https?|oci|file)://")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Place:
    """A URL and where it stands in the text; `named` where a channel's name may stand in its place."""

    start: int
    end: int
    url: str
    line: int
    named: bool = False


@dataclass(slots=True)
class _Tally:
    """How often something was seen, and where first."""

    line: int
    count: int = 0


@dataclass(slots=True)
class _Ledger:
    changed: dict[tuple[str, str], _Tally] = field(default_factory=dict)
    unknown: dict[str, _Tally] = field(default_factory=dict)
    secret: dict[str, _Tally] = field(default_factory=dict)

    def notes(self) -> Iterator[Note]:
        for (host, target), tally in self.changed.items():
            yield Note(
                text=_("{count} × {host} is now {target}").format(
                    count=tally.count, host=host, target=target
                ),
                line=tally.line,
            )
        for host, tally in self.unknown.items():
            text = {
                _FILE: _("{count} × a file of one machine; kept as it is"),
                "": _("{count} × no URL that can be read; kept as it is"),
            }.get(host, _("{count} × {host} is no host that envkit knows; kept as it is"))
            yield Note(text=text.format(count=tally.count, host=host), line=tally.line, warning=True)
        for host, tally in self.secret.items():
            text = _("{count} × a user name, a password or a token for {host}; kept as it is")
            yield Note(text=text.format(count=tally.count, host=host), line=tally.line, warning=True)


def canonicalise(path: Path, *, also: Mapping[str, str] | None = None) -> tuple[str, tuple[Note, ...]]:
    """The text of a foreign lock with canonical URLs and channels, and what was changed or not known.

    conda-lock.yml, pixi.lock and explicit files. Only URLs and entries of `channels:` differ from the file:
    hashes, comments, order and line ends stay. An unknown host is kept and named in a warning. `also` are
    further bases, as of `channels.condarc_bases`. Doing it twice changes nothing more. Raises InputError for
    a file that is no lock.
    """
    source = read_source(path)
    kind = kind_of(source)
    if kind not in _LOCKS:
        raise source.refusal(
            _("this is no lock, so there is nothing to make canonical"),
            _("lock it with `envkit lock --file {path}`").format(path=path),
        )
    text = _raw_text(path)
    places = _in_lines(text) if kind == "explicit" else _in_yaml(source, text)
    ledger = _Ledger()
    pieces: list[str] = []
    done = 0
    for place in sorted(places, key=lambda place: place.start):
        found = canonicalise_url(place.url, also=also)
        new = _spelled(found, place)
        pieces += [text[done : place.start], text[place.start : place.end].replace(place.url, new)]
        done = place.end
        _record(ledger, found, place, new)
    return "".join([*pieces, text[done:]]), tuple(ledger.notes())


def _spelled(found: Canonical, place: _Place) -> str:
    if place.named and found.known:
        return channel_name(found.url.rstrip("/")) or found.url
    return found.url


def _record(ledger: _Ledger, found: Canonical, place: _Place, new: str) -> None:
    if has_user(new) or has_token(new):
        ledger.secret.setdefault(hostname(new) or "?", _Tally(line=place.line)).count += 1
    if not found.known:
        host = _FILE if new.startswith("file:") else found.host
        ledger.unknown.setdefault(host, _Tally(line=place.line)).count += 1
    elif new != place.url:
        target = found.channel or new.partition("://")[2].partition("/")[0]
        host = found.host or shown(place.url)
        ledger.changed.setdefault((host, target), _Tally(line=place.line)).count += 1


def _raw_text(path: Path) -> str:
    """The text with its own line ends and mark, which a rewritten file keeps."""
    raw = path.read_bytes()
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise InputError(_("not UTF-8"), _("save the file as UTF-8"), path=path) from None


def _in_lines(text: str) -> Iterator[_Place]:
    for match in _URL_IN_LINE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        yield _Place(start=match.start("url"), end=match.end("url"), url=match["url"], line=line)


def _in_yaml(source: Source, text: str) -> Iterator[_Place]:
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    # Node positions are those of the text as it lies on disk, so its own line ends are parsed.
    root = Source(path=source.path, text=text[len(mark) :]).nodes()
    for node, keys in _scalars(root, ()):
        in_metadata = keys[:1] == ("metadata",)
        if (in_metadata and keys[1:2] != ("channels",)) or not _CHANNEL_URL.match(node.value):
            continue
        start, end = node.start_mark.index + len(mark), node.end_mark.index + len(mark)
        if node.value not in text[start:end]:
            continue  # written with escapes or over two lines: no lock writer does so
        yield _Place(start=start, end=end, url=node.value, line=node.start_mark.line + 1, named=in_metadata)


def _scalars(node: yaml.Node, keys: tuple[str, ...]) -> Iterator[tuple[yaml.ScalarNode, tuple[str, ...]]]:
    """All plain values with the keys that lead to them. Each place once, however often an alias names it."""
    stack: list[tuple[yaml.Node, tuple[str, ...]]] = [(node, keys)]
    seen: set[int] = set()
    while stack:
        node, keys = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.ScalarNode):
            yield node, keys
        elif isinstance(node, yaml.SequenceNode):
            stack += [(item, keys) for item in node.value]
        elif isinstance(node, yaml.MappingNode):
            stack += [(value, (*keys, str(key.value))) for key, value in node.value]
