"""Canonical URLs: the one spelling of a channel and of a package that specs and locks use."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote

from envkit.channels.canonical import canonicalise_url
from envkit.channels.table import table
from envkit.channels.urls import is_url
from envkit.errors import InputError
from envkit.messages import _

__all__ = ["Location", "canonical_url", "channel_name", "locate"]

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*(/[A-Za-z0-9_][A-Za-z0-9_.+-]*)*")
_SCHEMES = ("https", "http", "file")


@dataclass(frozen=True, kw_only=True, slots=True)
class Location:
    """A canonical file URL in its parts; `channel` is a name, or a URL where it has no name."""

    channel: str
    subdir: str
    file: str


def canonical_url(channel: str) -> str:
    """The URL that records and locks use for a channel, without a trailing slash.

    "pytorch" -> "https://conda.anaconda.org/pytorch", "pkgs/main" -> "https://repo.anaconda.com/pkgs/main".
    A `file://` channel and another server's URL are kept; a mirror's URL becomes upstream's. Raises
    InputError for "defaults" and "nodefaults", which name no channel, and for anything else that cannot
    be one.
    """
    if "://" in channel:
        if not is_url(channel, *_SCHEMES):
            raise InputError(
                _("'{channel}' is no channel: only https, http and file URLs are").format(channel=channel)
            )
        return _known_spelling(channel.rstrip("/"))
    if channel in ("defaults", "nodefaults"):
        raise InputError(
            _("'{channel}' names no channel of its own").format(channel=channel),
            _("name the channels themselves, such as conda-forge or pkgs/main"),
        )
    if not _NAME.fullmatch(channel):
        raise InputError(_("'{channel}' is not the name of a channel").format(channel=channel))
    if channel.startswith("pkgs/"):
        return f"{table().pkgs}/{channel.removeprefix('pkgs/')}"
    return f"{table().cloud}/{channel}"


def channel_name(url: str) -> str | None:
    """The name of the channel with this canonical URL, the opposite of `canonical_url`; None without one."""
    facts = table()
    if url.startswith(f"{facts.pkgs}/"):
        return "pkgs" + url.removeprefix(facts.pkgs)
    if url.startswith(f"{facts.cloud}/"):
        name = url.removeprefix(f"{facts.cloud}/")
        return None if name.startswith("t/") else name  # a token is part of an address, never of a name
    return None


def locate(url: str) -> Location:
    """The channel, subdir and file of a package's URL. Raises InputError for a URL that is none."""
    parts = _known_spelling(url.split("#", 1)[0]).rsplit("/", 2)
    if (
        len(parts) != 3
        or "://" not in parts[0]
        or not is_url(url, *_SCHEMES)
        or any(part in ("", ".", "..") or "/" in unquote(part) or "\\" in part for part in parts[1:])
        or ".." in unquote(parts[0]).split("/")
    ):
        raise InputError(_("'{url}' is not the URL of a conda package").format(url=url))
    channel, subdir, file = parts
    return Location(channel=channel_name(channel) or channel, subdir=subdir, file=file)


def _known_spelling(url: str) -> str:
    return canonicalise_url(url).url
