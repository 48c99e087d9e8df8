"""The user's own .condarc: where conda reads it, what it says of channels and proxies, and its mistakes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from envkit.channels.canonical import canonicalise_url
from envkit.channels.mistakes import OFF, Mistake, found_in, mended, secured, unreadable
from envkit.channels.names import canonical_url
from envkit.channels.table import table
from envkit.channels.urls import hostname, is_url, local_path
from envkit.errors import InputError
from envkit.files import read_text, read_yaml

__all__ = ["Condarc", "condarc_bases", "read_condarc"]

_SYSTEM = ("/etc/conda", "/var/lib/conda")
_USER = ("$XDG_CONFIG_HOME/conda", "~/.config/conda", "~/.conda")
_NAMES = (".condarc", "condarc", "condarc.d")
_ALIASES = {"verify_ssl": "ssl_verify"}
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_SYSTEM_STORE = ("true", "yes", "on", "truststore", "<truststore>")


@dataclass(frozen=True, kw_only=True, slots=True)
class Condarc:
    """What the .condarc files of one user say together, in conda's own words.

    `settings` are the merged documents of `paths`, of which the first has the last word. `mistakes` are
    those of all files; none of them stops anything.
    """

    paths: tuple[Path, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    mistakes: tuple[Mistake, ...] = ()

    def places(self, channel: str, subdir: str | None = None) -> tuple[str, ...]:
        """The user's own folders of a channel, by its name: URLs without a trailing slash, best first.

        A place that the table of mirrors knows to lack the channel, its label or the subdir is left out;
        plain http at a host of the table becomes https; the mistakes that can be read as what they mean
        (see `mistakes`) are.
        """
        found = (_at(url, channel, subdir) for url in self._places(channel))
        return tuple(dict.fromkeys(url for url in found if url is not None))

    def _places(self, channel: str) -> Iterator[str]:
        custom = self._custom()
        own = next((name for name in _beginnings(channel) if name in custom), None)
        if own is not None:
            yield f"{custom[own]}/{channel}"
        for url in self._urls("default_channels", "channels"):
            if channel == (canonicalise_url(url).channel or _licensed_name(url)):
                yield secured(url)
        if own is None and (alias := self._alias()) is not None and not channel.startswith("pkgs/"):
            yield f"{alias}/{channel}"

    @property
    def urls(self) -> frozenset[str]:
        """The URLs of all places, without the names of the channels that a base is for."""
        urls = {*self._custom().values(), *map(secured, self._urls("default_channels", "channels"))}
        if (alias := self._alias()) is not None:
            urls.add(alias)
        return frozenset(urls)

    @property
    def hosts(self) -> frozenset[str]:
        """The URLs of all places at hosts that the table does not know: whom the user chose to trust."""
        return frozenset(
            url
            for url in self.urls
            if is_url(url, "https", "http") and not table().at_host(hostname(url) or "")
        )

    @property
    def proxies(self) -> Mapping[str, str]:
        """`proxy_servers`: proxy URLs by "http", "https", "all", or one of them with a host ("https://h")."""
        said = self.settings.get("proxy_servers")
        return {
            str(key).rstrip("/"): value if "://" in value else f"http://{value}"
            for key, value in (said.items() if isinstance(said, dict) else ())
            if isinstance(value, str) and value
        }

    @property
    def certificates(self) -> Path | None:
        """The file or folder of certificates that `ssl_verify` names."""
        said = self.settings.get("ssl_verify")
        if not isinstance(said, str) or said.lower() in (*_SYSTEM_STORE, *OFF):
            return None
        path = Path(said).expanduser()
        return path if path.exists() else None

    def _alias(self) -> str | None:
        alias = self.settings.get("channel_alias")
        return mended(alias) if isinstance(alias, str) and is_url(alias.strip(), "https", "http") else None

    def _custom(self) -> dict[str, str]:
        custom = self.settings.get("custom_channels")
        return {
            str(name): mended(base, str(name))
            for name, base in (custom.items() if isinstance(custom, dict) else ())
            if isinstance(base, str) and is_url(base.strip(), "https", "http", "file")
        }

    def _urls(self, *keys: str) -> Iterator[str]:
        for key in keys:
            said = self.settings.get(key)
            for url in said if isinstance(said, list) else ():
                if isinstance(url, str) and is_url(url.strip(), "https", "http"):
                    yield url.strip().rstrip("/")


def read_condarc(environ: Mapping[str, str] = os.environ, files: Sequence[Path] | None = None) -> Condarc:
    """What conda would read: `$CONDARC` first, then the active environment's, the user's, the system's files.

    `files` names the files themselves instead, the one with the last word first. A file that cannot be
    read is a mistake like any other and is passed over. Environment variables in values are expanded.
    """
    settings: dict[str, Any] = {}
    mistakes: list[Mistake] = []
    paths: list[Path] = []
    documents: list[tuple[Path, dict[Any, Any]]] = []
    for path in _search(environ) if files is None else files:
        try:
            document = {} if _says_nothing(path) else read_yaml(path)
            if not isinstance(document, dict):
                raise InputError("", path=path, line=1)
        except InputError as problem:
            mistakes.append(unreadable(path, problem))
            continue
        paths.append(path)
        documents.append((path, _expanded(document, environ)))
    for _path, document in documents:
        _merge(settings, document)
    for path, document in documents:
        mistakes += sorted(found_in(path, document, settings), key=lambda mistake: mistake.line or 0)
    return Condarc(paths=tuple(paths), settings=settings, mistakes=tuple(mistakes))


def _beginnings(channel: str) -> Iterator[str]:
    """`a/label/b`, `a/label`, `a`: the names under which a channel may have a place of its own."""
    while channel:
        yield channel
        channel = channel.rpartition("/")[0]


def _licensed_name(url: str) -> str | None:
    """The name that one of `default_channels` stands for on a server that nobody knows."""
    tail = "/".join(url.split("/")[-2:])
    return tail if tail.startswith("pkgs/") else None


def _at(url: str, channel: str, subdir: str | None) -> str | None:
    """`url` as the place of a channel, or None where it is known that it cannot be one."""
    if (directory := local_path(url)) is not None:
        return url if directory.is_dir() else None
    base = table().base_of(url)
    mirror = table().mirrors.get(base.row) if base is not None else None
    if mirror is None or mirror is table().upstream:
        return url
    name = channel.partition("/label/")[0]
    needs_evidence = name.split("/")[0] in table().evidence_needed
    if name not in mirror.channels:
        return None if needs_evidence or "/label/" in channel else url
    found = mirror.url(channel, subdir, sure=needs_evidence)
    # The row knows the folder best; another name of the host (IPv6 alone) is the user's choice.
    return found if found is None or hostname(url) == mirror.host else url


def _search(environ: Mapping[str, str]) -> Iterator[Path]:
    """The files that conda reads, the one with the last word first (conda's SEARCH_PATH, backwards)."""
    if chosen := environ.get("CONDARC"):
        yield from _files_at(_placed(chosen, environ))
    yield from _in_folders(("$CONDA_PREFIX",), environ)
    yield from _files_at(_placed("~/.condarc", environ))
    yield from _in_folders(tuple(reversed(_USER)), environ)
    if conda := environ.get("CONDA_EXE"):
        yield from _in_folders((str(Path(conda).absolute().parents[1]),), environ)
    yield from _in_folders(tuple(reversed(_SYSTEM)), environ)


def _in_folders(folders: Sequence[str], environ: Mapping[str, str]) -> Iterator[Path]:
    for folder in folders:
        place = _placed(folder, environ)
        for name in reversed(_NAMES):
            yield from _files_at(place / name if place else None)


def _placed(text: str, environ: Mapping[str, str]) -> Path | None:
    """A path with its variable or `~`; None where that has no value."""
    if text.startswith("~"):
        home = environ.get("HOME")
        return Path(home + text[1:]) if home else None
    path = _expand(text, environ)
    return None if "$" in path else Path(path)


def _files_at(path: Path | None) -> Iterator[Path]:
    try:
        if path is None:
            return
        if path.is_dir():
            yield from sorted((each for each in path.iterdir() if _is_yaml(each)), reverse=True)
        elif path.is_file():
            yield path
    except OSError:
        return  # nobody's to read: conda passes it over as well


def _is_yaml(path: Path) -> bool:
    return path.suffix in (".yml", ".yaml") and path.is_file()


def _says_nothing(path: Path) -> bool:
    lines = (line.strip() for line in read_text(path).splitlines())
    return all(not line or line.startswith("#") or line == "---" for line in lines)


def _merge(settings: dict[str, Any], document: Mapping[Any, Any]) -> None:
    """Take over what `settings` does not say yet: keys of mappings, entries of lists, whole values."""
    for key, value in document.items():
        key = _ALIASES.get(str(key), str(key))
        known = settings.get(key)
        if isinstance(known, dict) and isinstance(value, dict):
            settings[key] = {**value, **known}
        elif isinstance(known, list) and isinstance(value, list):
            settings[key] = [*known, *(entry for entry in value if entry not in known)]
        elif key not in settings:
            settings[key] = value


def _expanded(document: dict[Any, Any], environ: Mapping[str, str]) -> dict[Any, Any]:
    """The same document, changed in place: it knows its lines."""

    def expand(value: Any) -> Any:
        if isinstance(value, str):
            return _expand(value, environ)
        if isinstance(value, list | dict):
            for key in range(len(value)) if isinstance(value, list) else tuple(value):
                value[key] = expand(value[key])
        return value

    expand(document)
    return document


def _expand(text: str, environ: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda found: environ.get(found[1] or found[2], found[0]), text)


def condarc_bases(settings: Mapping[str, Any]) -> dict[str, str]:
    """The bases of a .condarc that are copies of channels, for `canonicalise_url(…, also=…)`.

    `custom_channels: {nvidia: https://m.example/cloud}` puts nvidia at https://m.example/cloud/nvidia, with
    its labels; `channel_alias: https://m.example/conda` puts every channel without a place of its own there.
    The longest base comes first. What is no such setting is passed over.
    """
    found: dict[str, str] = {}
    custom = settings.get("custom_channels")
    for name, base in custom.items() if isinstance(custom, dict) else ():
        if isinstance(name, str) and isinstance(base, str) and base.startswith(("https://", "http://")):
            try:
                found[f"{base.rstrip('/')}/{name}"] = canonical_url(name)
            except InputError:
                continue
    alias = settings.get("channel_alias")
    if isinstance(alias, str) and alias.startswith(("https://", "http://")):
        found[alias.rstrip("/")] = table().cloud
    unknown = {base: url for base, url in found.items() if not canonicalise_url(f"{base}/x").known}
    return dict(sorted(unknown.items(), key=lambda item: -len(item[0])))
