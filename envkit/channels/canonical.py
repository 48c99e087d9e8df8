"""Mirror URLs, read as what they are copies of.

A lock or a spec from somewhere else names the hosts that its maker happened to reach. Only the front of a
URL is replaced: the rest (percent-encoding, hash fragment, trailing slash) stays as it was written, and so
does every URL of a host that the table of mirrors does not know.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from urllib.parse import unquote

from envkit.channels.table import Base, Tree, table

__all__ = ["LICENSED", "Canonical", "canonicalise_url", "is_licensed"]

LICENSED = "pkgs/"
"""How the names of Anaconda's own channels begin: `defaults` is made of them, and they cost money at work."""

_COPIES = frozenset({"anaconda", "main", "r", "msys2", "free", "pro"})
"""Channels of anaconda.org that hold the packages of `defaults`: https://anaconda.org/anaconda/repo."""

_URL = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?:(?P<user>[^/?#@]*)@)?(?P<host>[^/?#:@]+)(?::(?P<port>\d+))?(?P<rest>/.*)?",
    re.DOTALL,
)
_PORTS = {"https": ("", "443"), "http": ("", "80"), "oci": ("",)}
_SUBDIR = re.compile(r"noarch|(?:linux|osx|win|freebsd|zos|emscripten|wasi)-[a-z0-9]+")
_TOKEN = "/t/"


@dataclass(frozen=True, kw_only=True, slots=True)
class Canonical:
    """A URL in its canonical spelling.

    `known` says that its host and folder are in the table of mirrors, upstream included. `channel` is the
    name of the conda channel, None for anything else. `tree` is what the URL belongs to. `host` is the one
    of the URL as written ("" for a local file).
    """

    url: str
    known: bool
    host: str
    channel: str | None = None
    tree: Tree | None = None


def canonicalise_url(url: str, *, also: Mapping[str, str] | None = None) -> Canonical:
    """The canonical spelling of the URL of a channel or an archive, of a Python index or one of its files.

    `also` maps further bases ("https://conda.corp.example/proxy") to canonical ones, both
    without a trailing slash: what a .condarc says of `custom_channels` and `channel_alias`
    (`condarc_bases`). Never raises; an unknown URL comes back as
    it is. Doing it twice changes nothing more.
    """
    for own, canonical in (also or {}).items():
        if url == own or url.startswith(f"{own}/"):
            url = canonical + url[len(own) :]
            break
    match = _URL.fullmatch(url)
    if match is None:
        return Canonical(url=url, known=False, host="")
    scheme, host, rest = match["scheme"].lower(), match["host"].lower(), match["rest"] or ""
    unknown = Canonical(url=url, known=False, host="" if scheme == "file" else host)
    if (match["port"] or "") not in _PORTS.get(scheme, ()) or _wanders(rest):
        return unknown
    place = host + rest
    base = _base_of(host, place)
    if base is None:
        return unknown
    below = "/" + place[len(base.place) :].lstrip("/")
    front = table().canonical(base.tree)
    if front is None:
        return unknown
    channel = _channel(base.tree, below) if base.tree in ("cloud", "pkgs") else None
    if base.tree in ("cloud", "pkgs") and (channel is None or below.startswith(_TOKEN)):
        # A folder of channels names none of them, and what needs a token is no public copy.
        return unknown
    if base.only is not None and (channel or "").partition("/")[0] not in base.only:
        return unknown
    result = front if below == "/" and not rest.endswith("/") else front + below
    if match["user"] and _place_of(front) == base.place:
        # A user name for upstream itself is part of how it is reached; one for a mirror goes with the mirror.
        result = f"https://{match['user']}@{result.removeprefix('https://')}"
    return Canonical(url=result, known=True, host=host, channel=channel, tree=base.tree)


def is_licensed(channel: str | None) -> bool:
    """Whether a channel, by its canonical name, holds Anaconda's own packages, whoever serves it.

    Labels of a channel are the channel.
    """
    if channel is None:
        return False
    return channel == "defaults" or channel.startswith(LICENSED) or channel.partition("/")[0] in _COPIES


def _base_of(host: str, place: str) -> Base | None:
    for base in _bases_by_host().get(host, ()):
        if place == base.place or place.startswith(f"{base.place}/"):
            return base
    return None


@cache
def _bases_by_host() -> Mapping[str, tuple[Base, ...]]:
    found: dict[str, list[Base]] = {}
    for base in table().bases:
        found.setdefault(base.place.partition("/")[0], []).append(base)
    return {host: tuple(bases) for host, bases in found.items()}


def _channel(tree: Tree, below: str) -> str | None:
    """The name of the channel in what stands below its base: up to the subdir, or all of it."""
    parts: list[str] = []
    for part in re.split(r"[?#]", below, maxsplit=1)[0].strip("/").split("/"):
        if _SUBDIR.fullmatch(part) and parts:
            break
        parts.append(part)
    name = unquote("/".join(parts))
    if not name:
        return None
    return f"{LICENSED}{name}" if tree == "pkgs" else name


def _wanders(path: str) -> bool:
    return any(part in (".", "..") for part in unquote(path).split("/"))


def _place_of(url: str) -> str:
    return url.partition("://")[2]
