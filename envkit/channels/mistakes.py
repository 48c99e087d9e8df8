"""What is wrong in a .condarc, with the line, and what is to be read in its place.

Each of these ends in a 404, a wrong channel or a broken promise of privacy in the middle of an install, far
from the line that caused it. None of them stops a run here: what can be read as what was meant is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from envkit.channels.canonical import canonicalise_url, is_licensed
from envkit.channels.table import table
from envkit.channels.urls import is_url, shown
from envkit.errors import InputError
from envkit.files import line_of
from envkit.messages import _

__all__ = ["OFF", "Mistake", "found_in", "mended", "secured", "unreadable"]

OFF = ("false", "no", "off", "0")
"""How a text can say that certificates are not to be looked at."""

_KINDS: Mapping[str, type] = {
    "channels": list,
    "default_channels": list,
    "custom_channels": dict,
    "proxy_servers": dict,
    "channel_alias": str,
}
_REPOSITORY = re.compile(r"artifactory|/api/conda/|/repository/", re.IGNORECASE)
"""Servers that keep a copy of anaconda.org under a name of their own: there a doubled name can be right."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Mistake:
    """One thing in a .condarc that is not what its writer meant; `id` is stable, `line` counts from 1."""

    path: Path
    line: int | None
    id: str
    text: str
    hint: str = ""

    def __str__(self) -> str:
        where = f"{self.path}:{self.line}" if self.line is not None else str(self.path)
        return f"{where}: {self.text}" + (f" ({self.hint})" if self.hint else "")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Found:
    """A mistake before it is known where its setting stands."""

    id: str
    text: str
    hint: str = ""


def mended(base: str, channel: str | None = None) -> str:
    """The base that a `channel_alias`, or the value of one of `custom_channels`, means.

    No space and no slash around it; without the channel's name at the end, which conda appends; https where
    the table knows the host; with the `/cloud` that most mirrors keep the channels of anaconda.org in.
    """
    base = secured(base.strip().rstrip("/"))
    if channel and _doubles(base, channel):
        base = base.removesuffix(f"/{channel}")
    if (parent := _parent_of(base, channel)) is not None:
        return f"https://{parent}"
    return base


def secured(url: str) -> str:
    """`url` by https, where the table of mirrors knows its host."""
    parts = _split(url)
    if parts is None or parts.scheme != "http" or not _is_known(parts.hostname):
        return url
    return "https" + url.removeprefix("http")


def unreadable(path: Path, problem: InputError) -> Mistake:
    """A file that is no YAML, or cannot be read at all."""
    return Mistake(
        path=path,
        line=problem.line,
        id="unreadable",
        text=problem.message or _("this is no mapping of settings"),
        hint=problem.hint or _("conda cannot use it either; it was passed over"),
    )


def found_in(path: Path, document: Mapping[Any, Any], merged: Mapping[str, Any]) -> Iterator[Mistake]:
    """The mistakes of one file; `merged` is what all files say together."""
    for key, kind in _KINDS.items():
        if document.get(key) is not None and not isinstance(document[key], kind):
            text = _("{key} is not {kind}").format(key=key, kind=_kind_name(kind))
            yield Mistake(path=path, line=line_of(document, key), id="wrong-type", text=text)
    for line, one in (*_in_bases(document), *_in_channels(document, merged), *_in_transport(document)):
        yield Mistake(path=path, line=line, id=one.id, text=one.text, hint=one.hint)


def _kind_name(kind: type) -> str:
    names: Mapping[type, str] = {list: _("a list"), dict: _("a mapping"), str: _("a text")}
    return names[kind]


def _in_bases(document: Mapping[Any, Any]) -> Iterator[tuple[int | None, _Found]]:
    custom = document.get("custom_channels")
    for name, base in custom.items() if isinstance(custom, dict) else ():
        line = line_of(custom, name)
        if not isinstance(base, str) or not is_url(base.strip(), "https", "http", "file"):
            text = _("the place of {channel} is no URL").format(channel=name)
            yield line, _Found(id="wrong-type", text=text)
            continue
        for one in _of_base(base, str(name)):
            yield line, one
    alias = document.get("channel_alias")
    if isinstance(alias, str):
        for one in _of_base(alias, None):
            yield line_of(document, "channel_alias"), one


def _of_base(base: str, channel: str | None) -> Iterator[_Found]:
    right = shown(mended(base, channel))
    write = _("write {base}").format(base=right)
    if base != base.strip():
        text = _("a space stands at the end of {base}, and conda makes it part of the address")
        yield _Found(id="trailing-space", text=text.format(base=shown(base.strip())), hint=write)
    plain = base.strip().rstrip("/")
    if channel and _doubles(plain, channel):
        text = _("conda appends the channel's name: this asks for {url}")
        yield _Found(
            id="doubled-name", text=text.format(url=f"{shown(plain)}/{channel}/linux-64"), hint=write
        )
        plain = plain.removesuffix(f"/{channel}")
    if channel is None and (known := canonicalise_url(plain).channel) is not None:
        text = _("channel_alias ends with the name of a channel, {channel}: conda appends another one")
        yield _Found(
            id="doubled-name",
            text=text.format(channel=known),
            hint=_("write {base}").format(base=shown(plain.removesuffix(f"/{known}"))),
        )
    if _parent_of(secured(plain), channel) is not None:
        text = _("{base} is not where that mirror keeps channels").format(base=shown(plain))
        yield _Found(id="alias-without-cloud", text=text, hint=write)
    if plain.startswith("http://"):
        yield _plain_http(plain)
    if channel is not None:
        yield from _not_carried(mended(base, channel), channel)


def _not_carried(base: str, channel: str) -> Iterator[_Found]:
    found = table().base_of(base)
    mirror = table().mirrors.get(found.row) if found else None
    facts = mirror.channels.get(channel) if mirror else None
    if mirror is not None and facts is not None and facts.carried == "no":
        yield _Found(
            id="not-carried",
            text=_("{mirror} does not carry {channel}").format(mirror=mirror.name, channel=channel),
            hint=_("these do: {mirrors}").format(mirrors=", ".join((*table().carriers(channel), "official"))),
        )


def _in_channels(
    document: Mapping[Any, Any], merged: Mapping[str, Any]
) -> Iterator[tuple[int | None, _Found]]:
    channels = document.get("channels")
    for index, channel in enumerate(channels if isinstance(channels, list) else ()):
        if not isinstance(channel, str):
            continue
        line = line_of(channels, index)
        if channel == "defaults" and (licensed := _licensed(merged)):
            text = _("'defaults' brings in Anaconda's own channels, which need a licence at work: {channels}")
            hint = _("take it out, and set default_channels: []")
            yield line, _Found(id="defaults-leak", text=text.format(channels=licensed), hint=hint)
        elif is_url(channel.strip(), "https", "http"):
            yield from ((line, one) for one in _of_listed(channel))
    listed = document.get("default_channels")
    for index, channel in enumerate(listed if isinstance(listed, list) else ()):
        if isinstance(channel, str) and channel.strip().startswith("http://"):
            yield line_of(listed, index), _plain_http(channel.strip())


def _of_listed(channel: str) -> Iterator[_Found]:
    known = canonicalise_url(channel.strip().rstrip("/"))
    if known.channel is not None and known.host not in ("conda.anaconda.org", "repo.anaconda.com"):
        text = _("a mirror's address stands in the place of a channel: it ends up in every exported file")
        hint = _("write {channel}, and its place under custom_channels").format(channel=known.channel)
        yield _Found(id="mirror-as-channel", text=text, hint=hint)
    if is_licensed(known.channel):
        text = _("{channel} is one of Anaconda's own channels, which need a licence at work")
        yield _Found(id="defaults-leak", text=text.format(channel=known.channel), hint=_("take it out"))
    if channel.strip().startswith("http://"):
        yield _plain_http(channel.strip())


def _licensed(merged: Mapping[str, Any]) -> str:
    """What `defaults` stands for, as far as it is Anaconda's; "" where it stands for nothing of theirs."""
    listed = merged.get("default_channels")
    if listed is None:
        return "pkgs/main, pkgs/r"
    names = (canonicalise_url(str(one).strip().rstrip("/")).channel or str(one) for one in listed or ())
    return ", ".join(name for name in names if is_licensed(name))


def _in_transport(document: Mapping[Any, Any]) -> Iterator[tuple[int | None, _Found]]:
    for key in ("ssl_verify", "verify_ssl"):
        said = document.get(key)
        if said is False or said == 0 or (isinstance(said, str) and said.lower() in OFF):
            text = _(
                "{key} is off: whoever is on the way can change what conda installs; envkit checks anyway"
            )
            hint = _("behind a proxy that opens TLS, name its certificate: ssl_verify: /path/to/ca.pem")
            yield line_of(document, key), _Found(id="ssl-off", text=text.format(key=key), hint=hint)
        elif isinstance(said, str) and "/" in said and not Path(said).expanduser().exists():
            text = _("{path} is not here").format(path=said)
            yield line_of(document, key), _Found(id="ssl-missing", text=text)


def _plain_http(url: str) -> _Found:
    secure = secured(url)
    return _Found(
        id="http",
        text=_("plain http: whoever is on the way can change what {url} says").format(url=shown(url)),
        hint=_("write https://")
        if secure == url
        else _("write https://; envkit asks that host by https alone"),
    )


def _doubles(base: str, channel: str) -> bool:
    return base.endswith(f"/{channel}") and not _REPOSITORY.search(base)


def _parent_of(base: str, channel: str | None) -> str | None:
    """The place of the channels at a known host of whose folders `base` is only the beginning."""
    parts = _split(base)
    if parts is None or table().base_of(base) is not None:
        return None
    place = base.partition("://")[2]
    below = [
        found.place
        for found in table().at_host(parts.hostname or "")
        if found.tree == "cloud" and found.place.startswith(f"{place}/")
    ]
    return min(below, key=len, default=None) if channel is None or not channel.startswith("pkgs/") else None


def _is_known(host: str | None) -> bool:
    return host is not None and bool(table().at_host(host))


def _split(url: str) -> Any:
    try:
        return urlsplit(url)
    except ValueError:
        return None
