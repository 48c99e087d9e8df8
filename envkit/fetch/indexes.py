"""The cache of channel indexes: plain JSON files, each with a note of where it came from."""

from __future__ import annotations

import hashlib
import json
import mmap
import re
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from envkit.channels import shown
from envkit.fetch.disk import read_note, writing
from envkit.fetch.wanted import Rejected
from envkit.files import parse_json, write_atomically
from envkit.messages import _

__all__ = ["LARGEST", "CachedIndex", "check_index", "decompress"]

_SCHEMA = 1
LARGEST = 4 << 30
"""Bytes that no channel's index has; conda-forge's are a quarter of a gigabyte."""

_BLOCK = 1 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class _Origin:
    """Which version of which URL a cached index is; `checked` in seconds since the epoch, `size` in bytes."""

    url: str
    etag: str
    last_modified: str
    checked: float
    size: int
    schema: int = _SCHEMA


@dataclass(frozen=True, kw_only=True, slots=True)
class CachedIndex:
    """The place in the cache of one subdir of a channel at one host."""

    path: Path

    @classmethod
    def of(cls, folder: Path, url: str) -> CachedIndex:
        """The place for the index in the folder `url` of a server or a file system."""
        readable = re.sub(r"[^A-Za-z0-9.]+", "-", shown(url).partition("://")[2]).strip("-")[-80:]
        return cls(path=folder / f"{readable}-{hashlib.sha256(url.encode()).hexdigest()[:12]}.json")

    @property
    def age(self) -> float | None:
        """Seconds since its host last vouched for it; None where there is no whole index."""
        origin = self._origin()
        return None if origin is None else time.time() - origin.checked

    def conditions(self, url: str) -> dict[str, str]:
        """The request headers by which `url` can answer that nothing has changed."""
        origin = self._origin()
        if origin is None or origin.url != shown(url):
            return {}
        headers = {"If-None-Match": origin.etag, "If-Modified-Since": origin.last_modified}
        return {name: value for name, value in headers.items() if value}

    def put(self, plain: Path, url: str, *, etag: str = "", last_modified: str = "") -> None:
        """Take `plain` (of the same file system) into the cache."""
        with writing(self.path.parent):
            self._note.unlink(missing_ok=True)  # no note may ever stand beside another version
            size = plain.stat().st_size
            plain.replace(self.path)
        self._write(
            _Origin(url=shown(url), etag=etag, last_modified=last_modified, checked=time.time(), size=size)
        )

    def vouched(self) -> None:
        """Its host says that it is still the newest."""
        if (origin := self._origin()) is not None:
            self._write(_Origin(**{**asdict(origin), "checked": time.time()}))

    @property
    def _note(self) -> Path:
        return self.path.with_suffix(".origin")

    def _write(self, origin: _Origin) -> None:
        with writing(self.path.parent):
            write_atomically(self._note, json.dumps(asdict(origin), sort_keys=True) + "\n")

    def _origin(self) -> _Origin | None:
        try:
            noted = parse_json(read_note(self._note))
            origin = _Origin(**noted)
            whole = origin.schema == _SCHEMA and self.path.lstat().st_size == origin.size
        except (OSError, ValueError, TypeError):
            return None
        return origin if whole else None


def decompress(packed: Path, plain: Path) -> None:
    """Unpack a repodata.json.zst. Raises Rejected where it is damaged or of an absurd size."""
    import zstandard

    written = 0
    with packed.open("rb") as source, writing(plain.parent), plain.open("wb") as target:
        try:
            reader = zstandard.ZstdDecompressor().stream_reader(source, read_across_frames=True)
            while block := reader.read(_BLOCK):
                target.write(block)
                written += len(block)
                if written > LARGEST:
                    raise Rejected(_("larger than any channel's index"))
        except zstandard.ZstdError as problem:
            raise Rejected(_("damaged: {reason}").format(reason=problem)) from None


def check_index(plain: Path) -> None:
    """Raise Rejected for a file that is no whole channel index.

    The ends and the tables are looked at, not every record: conda-forge's index is a quarter of a gigabyte.
    """
    with plain.open("rb") as file:
        if plain.stat().st_size == 0:
            raise Rejected(_("an empty file"))
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
            if not text[:64].lstrip().startswith(b"{") or not text[-64:].rstrip().endswith(b"}"):
                raise Rejected(_("not a whole JSON document"))
            if text.find(b'"packages"') < 0 and text.find(b'"packages.conda"') < 0:
                raise Rejected(_("not the index of a channel: it lists no packages"))
