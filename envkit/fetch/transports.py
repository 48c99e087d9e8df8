"""The ways to reach channels and wheels: a mirror of the table, upstream, a server, a folder, .condarc's."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import quote, unquote, urlsplit

from envkit.channels import (
    Condarc,
    Mirror,
    Tree,
    canonical_url,
    canonicalise_url,
    local_path,
    shown,
    table,
)
from envkit.messages import _

__all__ = ["Directory", "Own", "PipFile", "Server", "Site", "Source", "Transport", "Upstream", "folder_name"]

PIP = "pip"
"""The folder of a tree of channels that has the files of pip sections."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """One place where a channel lies: `url` is its folder there, without a trailing slash.

    `remark` says in words what else is to be known of it.
    """

    url: str
    zst: bool = True
    remark: str = ""

    @property
    def directory(self) -> Path | None:
        """The folder itself, where the channel lies on a file system."""
        return local_path(self.url)

    @property
    def place(self) -> str:
        """How to call it in a message: the host, or the folder."""
        return str(self.directory) if self.directory else urlsplit(shown(self.url)).netloc


@dataclass(frozen=True, kw_only=True, slots=True)
class PipFile:
    """A file that pip installs: its canonical URL, and which tree it is of (None for anybody's server)."""

    url: str
    tree: Tree | None

    @staticmethod
    def at(url: str) -> PipFile:
        """The file that a URL means, a mirror's URL included."""
        found = canonicalise_url(url)
        return PipFile(url=found.url, tree=found.tree if found.tree in ("files", "pytorch") else None)

    @property
    def below(self) -> str:
        """What stands behind the base of its tree, with the slash."""
        base = table().canonical(self.tree) if self.tree is not None else None
        return self.url.removeprefix(base or "")

    @property
    def name(self) -> str:
        """As in the URL, still percent-encoded."""
        return self.url.partition("#")[0].rpartition("/")[2]


class Transport(Protocol):
    """A way to reach channels, and perhaps wheels."""

    @property
    def name(self) -> str:
        """How to call it in a message."""

    def sources(self, channel: str, subdir: str | None) -> Sequence[Source]:
        """Where it has a channel, by name; nowhere where it does not carry it."""

    def wheel(self, file: PipFile) -> str | None:
        """The URL under which it has a file for pip, or None."""


@dataclass(frozen=True, slots=True)
class Site:
    """A row of the table of mirrors. One that the user `named` is also asked where nobody knows."""

    mirror: Mirror
    named: bool

    @property
    def name(self) -> str:
        return self.mirror.name

    def sources(self, channel: str, subdir: str | None) -> Sequence[Source]:
        sure = not self.named or channel.split("/")[0] in table().evidence_needed
        url = self.mirror.url(channel, subdir, sure=sure)
        return (Source(url=url, zst=self.mirror.zst, remark=self._remark(channel)),) if url else ()

    def wheel(self, file: PipFile) -> str | None:
        base = {"files": self.mirror.files, "pytorch": self.mirror.wheels}.get(file.tree or "")
        return f"{base}{file.below}" if base else None

    def _remark(self, channel: str) -> str:
        other = table().mirrors.get(self.mirror.redirects or "")
        if other is None:
            return ""
        facts = self.mirror.channels[channel.partition("/label/")[0]]
        if facts.carried == "redirect":
            return _("redirects to {mirror}").format(mirror=other.name)
        return _("redirects to {mirror} what it lacks").format(mirror=other.name)


@dataclass(frozen=True, slots=True)
class Upstream:
    """Where every channel and every wheel comes from."""

    @property
    def name(self) -> str:
        return table().upstream.name

    def sources(self, channel: str, subdir: str | None) -> Sequence[Source]:
        return (Source(url=canonical_url(channel)),)

    def wheel(self, file: PipFile) -> str | None:
        return file.url


@dataclass(frozen=True, slots=True)
class Server:
    """A server of the user's: `<url>/<channel>/<subdir>/<file>`, `<url>/pip/<file>`."""

    url: str

    @property
    def name(self) -> str:
        return shown(self.url)

    def sources(self, channel: str, subdir: str | None) -> Sequence[Source]:
        return (Source(url=f"{self.url}/{channel}"),)

    def wheel(self, file: PipFile) -> str | None:
        return f"{self.url}/{PIP}/{file.name}"


@dataclass(frozen=True, slots=True)
class Directory:
    """A directory of channels; `pkgs/main` may stand as `pkgs-main`, and files for pip under `pip`.

    A channel that has a URL and no name lies under its `folder_name`.
    """

    root: Path

    @property
    def name(self) -> str:
        return str(self.root)

    def sources(self, channel: str, subdir: str | None) -> Sequence[Source]:
        folder = folder_name(channel)
        for name in (folder, folder.replace("/", "-") if folder.startswith("pkgs/") else folder):
            if (self.root / name).is_dir():
                return (Source(url=_file_url(self.root / name)),)
        return ()

    def wheel(self, file: PipFile) -> str | None:
        for name in (unquote(file.name), file.name):
            path = self.root / PIP / name
            if "/" not in name and path.is_file():
                return _file_url(path)
        return None


@dataclass(frozen=True, slots=True, eq=False)
class Own:
    """The places that the user's own .condarc names, each for its channels."""

    condarc: Condarc

    @property
    def name(self) -> str:
        return ".condarc"

    def sources(self, channel: str, subdir: str | None) -> Sequence[Source]:
        return [
            Source(url=url, zst=_has_zst(url), remark=_("from .condarc"))
            for url in self.condarc.places(channel, subdir)
        ]

    def wheel(self, file: PipFile) -> str | None:
        return None


def folder_name(channel: str) -> str:
    """The folder of a channel in a directory of channels: its name, or one made from its URL."""
    if "://" not in channel:
        return channel
    last = re.sub(r"[^A-Za-z0-9.-]+", "-", shown(channel).rstrip("/").rpartition("/")[2]).strip("-.")
    return f"{last[:40] or 'channel'}-{hashlib.sha256(channel.rstrip('/').encode()).hexdigest()[:12]}"


def _has_zst(url: str) -> bool:
    base = table().base_of(url)
    mirror = table().mirrors.get(base.row) if base is not None else None
    return mirror is None or mirror.zst


def _file_url(path: Path) -> str:
    return "file://" + quote(str(path))
