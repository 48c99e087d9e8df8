"""Writes one `.conda` archive in a single pass: what goes in is hashed on its way to the compressor.

The format is a zip, stored, of `metadata.json`, `pkg-*.tar.zst` and `info-*.tar.zst`
(https://docs.conda.io/projects/conda-build/en/stable/resources/package-spec.html). The same members give the
same bytes: names come sorted from the caller, owners are 0, and times are those the caller gives.
"""

from __future__ import annotations

import hashlib
import json
import tarfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import zstandard

__all__ = ["BLOCK", "PREFIX_PLACEHOLDER", "Index", "PackageWriter", "Written", "blocks_of", "python_link"]

BLOCK = 1 << 20
"""How much is read, hashed and compressed at a time, in bytes."""

PREFIX_PLACEHOLDER = "/opt/envkit_placehold_placehold_placehold_placehold"
"""What stands in text files for the prefix, until an installer writes the real one."""

_ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)
_TAR_END = bytes(2 * tarfile.BLOCKSIZE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Index:
    """What `info/index.json` says of a package, and so what the solver sees.

    `noarch` is "python", "generic" or None; `build_number` orders builds of one version.
    """

    name: str
    version: str
    build: str
    subdir: str
    depends: tuple[str, ...]
    build_number: int = 0
    constrains: tuple[str, ...] = ()
    noarch: str | None = None
    license: str | None = None
    extra: Mapping[str, str] = field(default_factory=dict)

    @property
    def stem(self) -> str:
        """The file name without its ending."""
        return f"{self.name}-{self.version}-{self.build}"

    def to_json(self) -> dict[str, Any]:
        """The record, as it stands in `info/index.json` and, with sizes and hashes, in repodata.json."""
        system, _dash, machine = self.subdir.partition("-")
        record: dict[str, Any] = {
            "name": self.name,
            "version": self.version,
            "build": self.build,
            "build_number": self.build_number,
            "depends": list(self.depends),
            "subdir": self.subdir,
            **self.extra,
        }
        if self.constrains:
            record["constrains"] = list(self.constrains)
        if self.noarch:
            record["noarch"] = self.noarch
        else:
            record["platform"] = system
            record["arch"] = {"64": "x86_64"}.get(machine, machine)
        if self.license:
            record["license"] = self.license
        return dict(sorted(record.items()))


@dataclass(frozen=True, kw_only=True, slots=True)
class Written:
    """What became of one file: its sha256 (hex) and size in bytes as packed, before any prefix is written."""

    path: str
    sha256: str
    size: int


class _TarZst:
    """A tar stream, compressed into one member of the zip.

    tarfile's own copy loop moves 16 KiB at a time; here headers come from tarfile and data goes straight on.
    """

    def __init__(self, archive: zipfile.ZipFile, name: str, *, level: int, mtime: int) -> None:
        self._member = archive.open(zipfile.ZipInfo(name, _ZIP_EPOCH), "w", force_zip64=True)
        # One worker thread compresses while this one inflates and hashes; any number gives the same bytes.
        self._stream = zstandard.ZstdCompressor(level=level, threads=1).stream_writer(
            self._member, closefd=True
        )
        self._mtime = mtime

    def file(self, path: str, blocks: Iterable[bytes], size: int, *, executable: bool) -> str:
        """Add a regular file; its sha256 in hex. ValueError where the blocks do not add up to `size`."""
        header = self._header(path)
        header.size = size
        header.mode = 0o755 if executable else 0o644
        self._stream.write(_tobuf(header))
        digest = hashlib.sha256()
        seen = 0
        for block in blocks:
            digest.update(block)
            self._stream.write(block)
            seen += len(block)
        if seen != size:
            raise ValueError(f"{path}: {seen} bytes where {size} were announced")
        self._stream.write(bytes(-size % tarfile.BLOCKSIZE))
        return digest.hexdigest()

    def link(self, path: str, target: str) -> None:
        header = self._header(path)
        header.type = tarfile.SYMTYPE
        header.linkname = target
        header.mode = 0o777
        self._stream.write(_tobuf(header))

    def close(self) -> None:
        self._stream.write(_TAR_END)
        self._stream.close()  # type: ignore[no-untyped-call]

    def abandon(self) -> None:
        self._member.close()

    def _header(self, path: str) -> tarfile.TarInfo:
        header = tarfile.TarInfo(path)
        header.mtime = self._mtime
        return header


def _tobuf(header: tarfile.TarInfo) -> bytes:
    return header.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")


class PackageWriter:
    """One package being written to `path`; a context manager, complete only when left without an exception.

        with PackageWriter(path, index, level=1, mtime=0) as package:
            package.add("bin/tool", [text], len(text), executable=True)

    `level` is zstd's, `mtime` the time in seconds that every file gets.
    """

    def __init__(self, path: Path, index: Index, *, level: int, mtime: int = 0) -> None:
        self.index = index
        self._path = path
        self._level = level
        self._mtime = mtime
        self._entries: list[dict[str, Any]] = []
        self._info: dict[str, bytes] = {}
        self._seen: set[str] = set()

    def __enter__(self) -> PackageWriter:
        self._archive = zipfile.ZipFile(self._path, "w", zipfile.ZIP_STORED)
        metadata = zipfile.ZipInfo("metadata.json", _ZIP_EPOCH)
        self._archive.writestr(metadata, json.dumps({"conda_pkg_format_version": 2}))
        self._payload = self._tar("pkg")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._payload.abandon()
            self._archive.close()
            return
        self._payload.close()
        self._write_info()
        self._archive.close()

    def add(
        self, path: str, blocks: Iterable[bytes], size: int, *, executable: bool = False, prefix: bool = False
    ) -> Written:
        """A file at `path` below the prefix; `prefix` where PREFIX_PLACEHOLDER stands in its text."""
        self._claim(path)
        sha256 = self._payload.file(path, blocks, size, executable=executable)
        entry: dict[str, Any] = {
            "_path": path,
            "path_type": "hardlink",
            "sha256": sha256,
            "size_in_bytes": size,
        }
        if prefix:
            entry |= {"prefix_placeholder": PREFIX_PLACEHOLDER, "file_mode": "text"}
        self._entries.append(entry)
        return Written(path=path, sha256=sha256, size=size)

    def link(self, path: str, target: str) -> None:
        """A symbolic link at `path` to `target`, relative to the link."""
        self._claim(path)
        self._payload.link(path, target)
        self._entries.append(
            {
                "_path": path,
                "path_type": "softlink",
                "sha256": hashlib.sha256(target.encode()).hexdigest(),
                "size_in_bytes": 0,
            }
        )

    def info(self, path: str, content: bytes) -> None:
        """A file about the package, at `info/<path>`."""
        self._info[path] = content

    def _claim(self, path: str) -> None:
        if path in self._seen:
            raise ValueError(f"{path} stands twice in {self.index.stem}")
        self._seen.add(path)

    def _tar(self, kind: str) -> _TarZst:
        return _TarZst(
            self._archive, f"{kind}-{self.index.stem}.tar.zst", level=self._level, mtime=self._mtime
        )

    def _write_info(self) -> None:
        names = "".join(f"{entry['_path']}\n" for entry in self._entries)
        own = {
            "files": names.encode(),
            "index.json": _json(self.index.to_json()),
            "paths.json": _json({"paths": self._entries, "paths_version": 1}),
        }
        tar = self._tar("info")
        for path, content in sorted((self._info | own).items()):
            tar.file(f"info/{path}", [content], len(content), executable=False)
        tar.close()


def python_link(entry_points: Iterable[str]) -> bytes:
    """`info/link.json` of a `noarch: python` package; entry points as `name = module:function`."""
    noarch: dict[str, Any] = {"type": "python"}
    if points := sorted(entry_points):
        noarch["entry_points"] = points
    return _json({"noarch": noarch, "package_metadata_version": 1})


def blocks_of(file: IO[bytes]) -> Iterator[bytes]:
    """The bytes of a file, BLOCK at a time."""
    while block := file.read(BLOCK):
        yield block


def _json(document: object) -> bytes:
    return json.dumps(document, indent=1, sort_keys=True).encode() + b"\n"
