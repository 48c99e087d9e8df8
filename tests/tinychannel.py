"""Tiny real conda packages and channels, made on the spot: archives that install, repodata that solves.

Every archive is the same bytes each time it is packed, so that a lock over it is too.
"""

from __future__ import annotations

import bz2
import hashlib
import io
import json
import os
import sys
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import zstandard

from envkit.model import Lock, Package

PLACEHOLDER = "/placeholder_" + "x" * 200
MINOR = f"{sys.version_info.major}.{sys.version_info.minor}"
SITE_PACKAGES = f"lib/python{MINOR}/site-packages"
PLATFORM = f"linux-{'64' if os.uname().machine == 'x86_64' else os.uname().machine}"


@dataclass(frozen=True)
class Link:
    """A symbolic link in a package."""

    target: str


@dataclass(frozen=True)
class Content:
    """A file in a package: `prefix` says that it holds the placeholder ("text" or "binary")."""

    data: bytes
    mode: int = 0o644
    prefix: str | None = None


def script(text: str) -> Content:
    """An executable text file; the word PREFIX in it becomes the place of installation."""
    return Content(text.replace("PREFIX", PLACEHOLDER).encode(), 0o755, "text" if "PREFIX" in text else None)


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", mode: int = 0o644) -> tarfile.TarInfo:
    """A member of an archive that is nothing but its header."""
    found = tarfile.TarInfo(name)
    found.type, found.linkname, found.mode = kind, link, mode
    return found


@dataclass(frozen=True)
class TinyPackage:
    """A real package. What its fields do not say of a usual one:

    `members` are added to the archive as they are, `listed` replaces the files that paths.json names,
    `info` replaces files below info/, and `damaged` the whole archive.
    """

    name: str = "foo"
    version: str = "1.0"
    build: str = "0"
    files: Mapping[str, bytes | str | Link | Content] | None = None
    platform: str = "linux-64"
    noarch: str | None = None
    depends: Sequence[str] = ()
    constrains: Sequence[str] = ()
    entry_points: Sequence[str] = ()
    ending: str = ".conda"
    members: tuple[tarfile.TarInfo, ...] = ()
    listed: Mapping[str, bytes] | None = None
    info: Mapping[str, bytes] | None = None
    damaged: bytes | None = None

    @property
    def subdir(self) -> str:
        return "noarch" if self.noarch else self.platform

    @property
    def stem(self) -> str:
        return f"{self.name}-{self.version}-{self.build}"

    @property
    def file(self) -> str:
        return f"{self.stem}{self.ending}"

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    @property
    def md5(self) -> str:
        return hashlib.md5(self.content).hexdigest()

    @property
    def index(self) -> dict[str, object]:
        """What the package says of itself, in info/index.json."""
        said: dict[str, object] = {
            "name": self.name, "version": self.version, "build": self.build, "build_number": 0,
            "depends": list(self.depends), "constrains": list(self.constrains), "subdir": self.subdir,
            "license": "0BSD",
        }  # fmt: skip
        return said | ({"noarch": self.noarch} if self.noarch else {})

    @property
    def record(self) -> dict[str, object]:
        """What repodata says of it."""
        return self.index | {"sha256": self.sha256, "md5": self.md5, "size": len(self.content)}

    def locked(self, channel: str = "https://conda.anaconda.org/conda-forge", **changes: str) -> Package:
        """What a lock says of it."""
        values: dict[str, Any] = {
            "name": self.name, "version": self.version, "manager": "conda", "platform": self.platform,
            "url": f"{channel}/{self.subdir}/{self.file}", "sha256": self.sha256, "md5": self.md5,
            "depends": {d.split()[0]: "".join(d.split()[1:2]) or "*" for d in self.depends},
        }  # fmt: skip
        return Package(**(values | changes))

    @cached_property
    def content(self) -> bytes:
        """The archive."""
        if self.damaged is not None:
            return self.damaged
        given = {f"share/{self.name}.txt": f"this is {self.name}\n"} if self.files is None else self.files
        files = {path: _plain(each) for path, each in sorted(given.items())}
        info = {name: Content(data) for name, data in (self._about(files) | dict(self.info or {})).items()}
        if self.ending == ".tar.bz2":
            return bz2.compress(_tar({**files, **info}, self.members))
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
            for name, raw in (
                ("metadata.json", b'{"conda_pkg_format_version": 2}'),
                (f"pkg-{self.stem}.tar.zst", zstandard.compress(_tar(files, self.members))),
                (f"info-{self.stem}.tar.zst", zstandard.compress(_tar(info, ()))),
            ):
                archive.writestr(zipfile.ZipInfo(name), raw)  # dated 1980
        return buffer.getvalue()

    def _about(self, files: Mapping[str, Link | Content]) -> dict[str, bytes]:
        listed = files if self.listed is None else {name: Content(raw) for name, raw in self.listed.items()}
        paths = {"paths": [_row(path, file) for path, file in listed.items()], "paths_version": 1}
        about = {
            "info/index.json": _json(self.index),
            "info/paths.json": _json(paths),
            "info/files": "".join(f"{path}\n" for path in files).encode(),
        }
        if self.noarch == "python":
            link = {"type": "python", "entry_points": list(self.entry_points)}
            about["info/link.json"] = _json({"noarch": link, "package_metadata_version": 1})
        return about


def index_of(*packages: TinyPackage, subdir: str) -> bytes:
    """The repodata.json of one subdir."""
    tables: dict[str, dict[str, object]] = {"packages": {}, "packages.conda": {}}
    for package in packages:
        if package.subdir == subdir:
            table = "packages.conda" if package.ending == ".conda" else "packages"
            tables[table][package.file] = package.record
    return _json({"info": {"subdir": subdir}, "repodata_version": 1, **tables})


def channel_files(*packages: TinyPackage, channel: str = "conda-forge") -> dict[str, bytes]:
    """A whole channel, as paths and contents: linux-64, noarch and what the packages need besides."""
    files = {f"{channel}/{package.subdir}/{package.file}": package.content for package in packages}
    for subdir in sorted({"linux-64", "noarch", *(package.subdir for package in packages)}):
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


def write_channel(folder: Path, *packages: TinyPackage) -> Path:
    """A channel as a folder."""
    write_tree(folder.parent, channel_files(*packages, channel=folder.name))
    return folder


class Channel:
    """A folder of packages for this platform that grows with every `add`, and the locks over them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.packages: list[Package] = []

    def add(self, package: TinyPackage) -> Package:
        """Put it there, and return it as a lock would name it."""
        write_tree(self.root, {f"{package.subdir}/{package.file}": package.content})
        self.packages.append(package.locked(self.root.as_uri(), platform=PLATFORM))
        return self.packages[-1]

    def lock(self, *packages: Package, path: Path | None = None) -> Lock:
        """A lock of the given packages (all of them by default), and its bytes on disk."""
        chosen = packages or tuple(self.packages)
        path = path or self.root / "conda-lock.yml"
        path.write_text("".join(f"{p.platform} {p.url}#{p.sha256}\n" for p in chosen))
        return Lock(
            path=path, digest="d" * 64, channels=(self.root.as_uri(),), platforms=(PLATFORM,),
            packages=tuple(chosen),
        )  # fmt: skip


def this_python(version: str = "", build: str = "0") -> TinyPackage:
    """The running interpreter as a package, without 30 MB of standard library.

    Its `python` is a script that starts the running interpreter under its own name, beside a
    `pyvenv.cfg`: so it finds its own prefix and can run pip.
    """
    real = Path(sys.executable).resolve()
    files: dict[str, bytes | str | Link | Content] = {
        "bin/python": script(f'#!/bin/bash\nexec -a "$0" "{real}" "$@"\n'),
        "bin/python3": Link("python"),
        f"bin/python{MINOR}": Link("python"),
        "pyvenv.cfg": f"home = {real.parent}\ninclude-system-site-packages = false\n",
        f"{SITE_PACKAGES}/README.txt": "",
        "bin/where": script('#!PREFIX/bin/python\nprint("PREFIX")\n'),
        "share/text.txt": Content(f"at {PLACEHOLDER}/share\n".encode(), prefix="text"),
        "share/binary": Content(b"\0\1" + PLACEHOLDER.encode() + b"/lib\0\2", prefix="binary"),
    }
    version = version or ".".join(map(str, sys.version_info[:3]))
    return TinyPackage("python", version, build, files, platform=PLATFORM)


def this_pip() -> TinyPackage:
    """The running interpreter's pip as a package."""
    import pip

    root = Path(pip.__file__).parent.parent
    (record,) = root.glob(f"pip-{pip.__version__}.dist-info")
    found = [path for folder in (root / "pip", record) for path in folder.rglob("*") if path.is_file()]
    kept = [path for path in found if path.suffix != ".pyc"]
    files = {f"site-packages/{path.relative_to(root)}": path.read_bytes() for path in kept}
    return TinyPackage("pip", pip.__version__, files=files, noarch="python")


def _plain(file: bytes | str | Link | Content) -> Link | Content:
    if isinstance(file, Link | Content):
        return file
    return Content(file.encode() if isinstance(file, str) else file)


def _row(path: str, file: Link | Content) -> dict[str, object]:
    if isinstance(file, Link):
        return {"_path": path, "path_type": "softlink"}
    row: dict[str, object] = {
        "_path": path, "path_type": "hardlink", "size_in_bytes": len(file.data),
        "sha256": hashlib.sha256(file.data).hexdigest(),
    }  # fmt: skip
    return row | ({"file_mode": file.prefix, "prefix_placeholder": PLACEHOLDER} if file.prefix else {})


def _tar(files: Mapping[str, Link | Content], members: tuple[tarfile.TarInfo, ...]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, file in files.items():
            if isinstance(file, Link):
                archive.addfile(member(name, tarfile.SYMTYPE, file.target))
            else:
                entry = member(name, mode=file.mode)
                entry.size = len(file.data)
                archive.addfile(entry, io.BytesIO(file.data))
        for entry in members:
            archive.addfile(entry)
    return buffer.getvalue()


def _json(document: object) -> bytes:
    return json.dumps(document, sort_keys=True).encode()
