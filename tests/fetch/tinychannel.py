"""Tiny real conda packages and channels, made on the spot."""

from __future__ import annotations

import bz2
import hashlib
import io
import json
import tarfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import zstandard

from envkit.model import Package


@dataclass(frozen=True, kw_only=True)
class TinyPackage:
    """A real archive of a few files, and the lock's view of it."""

    name: str
    version: str
    build: str
    subdir: str
    ending: str
    content: bytes

    @property
    def file(self) -> str:
        return f"{self.stem}{self.ending}"

    @property
    def stem(self) -> str:
        return f"{self.name}-{self.version}-{self.build}"

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    @property
    def record(self) -> dict[str, object]:
        return {
            "name": self.name,
            "version": self.version,
            "build": self.build,
            "build_number": 0,
            "depends": [],
            "subdir": self.subdir,
            "noarch": "generic" if self.subdir == "noarch" else None,
            "sha256": self.sha256,
            "md5": hashlib.md5(self.content).hexdigest(),
            "size": len(self.content),
        }

    def locked(self, channel: str = "https://conda.anaconda.org/conda-forge", **changes: str) -> Package:
        values = {
            "name": self.name,
            "version": self.version,
            "manager": "conda",
            "platform": "linux-64",
            "url": f"{channel}/{self.subdir}/{self.file}",
            "sha256": self.sha256,
        }
        return Package(**{**values, **changes})  # type: ignore[arg-type]


def tiny_package(
    name: str = "foo",
    version: str = "1.0",
    build: str = "0",
    *,
    subdir: str = "noarch",
    ending: str = ".conda",
    files: Mapping[str, bytes] | None = None,
    members: tuple[tarfile.TarInfo, ...] = (),
    listed: Mapping[str, bytes] | None = None,
    info: Mapping[str, bytes] | None = None,
) -> TinyPackage:
    """A package of `files` and the raw `members`; paths.json lists `listed`, by default the files."""
    files = {f"share/{name}.txt": f"this is {name}\n".encode()} if files is None else files
    index = {
        "name": name,
        "version": version,
        "build": build,
        "build_number": 0,
        "depends": [],
        "subdir": subdir,
        **({"noarch": "generic"} if subdir == "noarch" else {}),
    }
    paths = [
        {
            "_path": path,
            "path_type": "hardlink",
            "sha256": hashlib.sha256(content).hexdigest(),
            "size_in_bytes": len(content),
        }
        for path, content in (files if listed is None else listed).items()
    ]
    about = {
        "info/index.json": json.dumps(index).encode(),
        "info/paths.json": json.dumps({"paths": paths, "paths_version": 1}).encode(),
        **(info or {}),
    }
    stem = f"{name}-{version}-{build}"
    if ending == ".tar.bz2":
        content = bz2.compress(_tar({**files, **about}, members))
    else:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr("metadata.json", '{"conda_pkg_format_version": 2}')
            archive.writestr(f"pkg-{stem}.tar.zst", zstandard.compress(_tar(files, members)))
            archive.writestr(f"info-{stem}.tar.zst", zstandard.compress(_tar(about, ())))
        content = buffer.getvalue()
    return TinyPackage(name=name, version=version, build=build, subdir=subdir, ending=ending, content=content)


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", mode: int = 0o644) -> tarfile.TarInfo:
    """A member of an archive that is nothing but its header."""
    found = tarfile.TarInfo(name)
    found.type, found.linkname, found.mode = kind, link, mode
    return found


def _tar(files: Mapping[str, bytes], members: tuple[tarfile.TarInfo, ...]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
        for entry in members:
            archive.addfile(entry)
    return buffer.getvalue()


def index_of(*packages: TinyPackage, subdir: str) -> bytes:
    """The repodata.json of one subdir."""
    tables: dict[str, dict[str, object]] = {"packages": {}, "packages.conda": {}}
    for package in packages:
        if package.subdir == subdir:
            table = "packages.conda" if package.ending == ".conda" else "packages"
            tables[table][package.file] = package.record
    return json.dumps({"info": {"subdir": subdir}, **tables}).encode()


def channel_files(
    *packages: TinyPackage, subdirs: tuple[str, ...] = ("linux-64", "noarch"), channel: str = "conda-forge"
) -> dict[str, bytes]:
    """A whole channel, as paths and contents."""
    files = {f"{channel}/{package.subdir}/{package.file}": package.content for package in packages}
    for subdir in subdirs:
        index = index_of(*packages, subdir=subdir)
        files[f"{channel}/{subdir}/repodata.json"] = index
        files[f"{channel}/{subdir}/repodata.json.zst"] = zstandard.compress(index)
    return files


def write_tree(root: Path, files: Mapping[str, bytes]) -> Path:
    """Files below a folder."""
    for path, content in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    return root
