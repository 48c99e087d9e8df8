"""The index of a bundle's channels, from what its archives say of themselves."""

from __future__ import annotations

import bz2
import io
import json
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, cast

import zstandard

from envkit.errors import Error
from envkit.files import parse_json
from envkit.messages import _
from envkit.model import Package

__all__ = ["index", "record"]

_INDEX = "info/index.json"
_LARGEST_INDEX = 4 << 20
_LARGEST_BEFORE = {".conda": 1 << 28, ".tar.bz2": 1 << 34}
"""Bytes of an index.json, and of what may stand before it in an archive, unpacked."""

_DAMAGE = (ValueError, EOFError, KeyError, OSError, tarfile.TarError, zipfile.BadZipFile, zstandard.ZstdError)


def record(archive: Path, package: Package) -> dict[str, Any]:
    """What repodata says of the archive of `package`. Raises Error for one that does not say what it is."""
    ending = next(known for known in _LARGEST_BEFORE if package.file_name.endswith(known))
    try:
        said = parse_json(_index_json(archive, ending))
        if not isinstance(said, dict) or said.get("name") != package.name:
            raise ValueError(_("it says that it is another package"))
    except _DAMAGE as problem:
        raise Error(
            _("{file} does not say what it is ({index}): {reason}").format(
                file=package.file_name, index=_INDEX, reason=problem
            ),
            _("the archive is what the lock names: ask who made the lock or the package"),
        ) from None
    said |= {"sha256": package.sha256, "size": archive.stat().st_size, "subdir": package.subdir}
    return said | ({"md5": package.md5} if package.md5 else {})


def index(subdir: str, records: Mapping[str, Mapping[str, Any]]) -> bytes:
    """A repodata.json of `records`, by the names of their archives."""
    tables: dict[str, dict[str, Mapping[str, Any]]] = {"packages": {}, "packages.conda": {}}
    for name, said in records.items():
        tables["packages.conda" if name.endswith(".conda") else "packages"][name] = said
    document = {"info": {"subdir": subdir}, "repodata_version": 1, **tables}
    return json.dumps(document, sort_keys=True, ensure_ascii=False, indent=0).encode() + b"\n"


def _index_json(archive: Path, ending: str) -> bytes:
    largest = _LARGEST_BEFORE[ending]
    if ending == ".tar.bz2":
        with bz2.open(archive) as unpacked:
            return _member(_Bounded(unpacked, largest))
    with zipfile.ZipFile(archive) as whole:
        (name,) = (
            name for name in whole.namelist() if name.startswith("info-") and name.endswith(".tar.zst")
        )
        with whole.open(name) as packed, zstandard.ZstdDecompressor().stream_reader(packed) as reader:
            return _member(_Bounded(reader, largest))


def _member(unpacked: io.RawIOBase) -> bytes:
    with tarfile.open(fileobj=cast(IO[bytes], unpacked), mode="r|") as members:
        for member in members:
            if member.name.removeprefix("./") != _INDEX or not member.isreg():
                continue
            if member.size > _LARGEST_INDEX:
                raise ValueError(_("larger than {size} MB").format(size=_LARGEST_INDEX >> 20))
            file = members.extractfile(member)
            assert file is not None
            return file.read()
    raise ValueError(_("it is not there"))


class _Bounded(io.RawIOBase):
    """A stream that may not be longer than it can be meant to be: a small archive can unpack to anything."""

    def __init__(self, stream: Any, most: int) -> None:
        self._stream, self._left = stream, most

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        block = cast(bytes, self._stream.read(size))
        self._left -= len(block)
        if self._left < 0:
            raise ValueError(_("it unpacks without end"))
        return block
