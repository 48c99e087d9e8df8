"""Small real conda channels, built on the spot: archives that install, repodata that solves."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import zstandard

from envkit.model import Source, Spec, Variant, VirtualPackage


@dataclass(frozen=True, kw_only=True)
class Built:
    """One package to build: `files` maps paths inside it to their text."""

    name: str
    version: str = "1.0"
    build: str = "0"
    subdir: str = "linux-64"
    depends: Sequence[str] = ()
    constrains: Sequence[str] = ()
    noarch: str | None = None
    files: Mapping[str, str] = field(default_factory=dict)


def build_channel(folder: Path, packages: Sequence[Built]) -> Path:
    """A channel in `folder`: one .conda archive a package, repodata in each subdir, noarch always."""
    repodata: dict[str, dict[str, Any]] = {"noarch": {}, "linux-64": {}}
    for package in packages:
        raw = archive(package)
        name = f"{package.name}-{package.version}-{package.build}.conda"
        path = folder / package.subdir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(raw)
        repodata.setdefault(package.subdir, {})[name] = index(package) | {
            "md5": hashlib.md5(raw).hexdigest(),
            "sha256": hashlib.sha256(raw).hexdigest(),
            "size": len(raw),
        }
    for subdir, records in repodata.items():
        (folder / subdir).mkdir(parents=True, exist_ok=True)
        content = {
            "info": {"subdir": subdir},
            "packages": {},
            "packages.conda": records,
            "repodata_version": 1,
        }
        (folder / subdir / "repodata.json").write_text(json.dumps(content))
    return folder


def index(package: Built) -> dict[str, Any]:
    record: dict[str, Any] = {
        "name": package.name,
        "version": package.version,
        "build": package.build,
        "build_number": 0,
        "depends": list(package.depends),
        "constrains": list(package.constrains),
        "subdir": package.subdir,
    }
    return record | ({"noarch": package.noarch} if package.noarch else {})


def archive(package: Built) -> bytes:
    """A .conda archive: a stored zip of two zstandard tars."""
    paths = [
        {
            "_path": path,
            "path_type": "hardlink",
            "sha256": hashlib.sha256(text.encode()).hexdigest(),
            "size_in_bytes": len(text.encode()),
        }
        for path, text in package.files.items()
    ]
    info = {
        "info/index.json": json.dumps(index(package)),
        "info/paths.json": json.dumps({"paths": paths, "paths_version": 1}),
        "info/files": "".join(f"{path}\n" for path in package.files),
    }
    if package.noarch == "python":
        info["info/link.json"] = json.dumps({"noarch": {"type": "python"}, "package_metadata_version": 1})
    stem = f"{package.name}-{package.version}-{package.build}"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as bundle:
        bundle.writestr("metadata.json", json.dumps({"conda_pkg_format_version": 2}))
        bundle.writestr(f"pkg-{stem}.tar.zst", tarred(package.files))
        bundle.writestr(f"info-{stem}.tar.zst", tarred(info))
    return buffer.getvalue()


def tarred(files: Mapping[str, str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as bundle:
        for path, text in files.items():
            member = tarfile.TarInfo(path)
            member.size = len(text.encode())
            member.mode = 0o755 if path.startswith("bin/") else 0o644
            bundle.addfile(member, io.BytesIO(text.encode()))
    return zstandard.compress(buffer.getvalue())


PYTHON = Built(
    name="python",
    version="3.11.9",
    build="h1_0_cpython",
    files={"bin/python3.11": "#!/bin/sh\necho 3.11.9\n"},
)
HELLO = Built(
    name="hello",
    version="2.0",
    build="py_0",
    subdir="noarch",
    noarch="python",
    depends=["python >=3.11", "libhello 1.* hb_*"],
    files={"site-packages/hello.py": "print('hello')\n"},
)
LIBHELLO = Built(
    name="libhello",
    version="1.5",
    build="hb_0",
    depends=["__glibc >=2.17"],
    files={"lib/libhello.txt": "lib\n"},
)
OLD_LIBHELLO = Built(
    name="libhello",
    version="1.4",
    build="hb_0",
    depends=["__glibc >=2.17"],
    files={"lib/libhello.txt": "old\n"},
)


VIRTUAL: Mapping[str, tuple[VirtualPackage, ...]] = {
    "linux-64": (
        VirtualPackage(name="__unix", version="0"),
        VirtualPackage(name="__linux", version="4.18"),
        VirtualPackage(name="__glibc", version="2.28"),
        VirtualPackage(name="__archspec", version="1", build="x86_64"),
    ),
    "linux-aarch64": (
        VirtualPackage(name="__unix", version="0"),
        VirtualPackage(name="__linux", version="4.18"),
        VirtualPackage(name="__glibc", version="2.28"),
        VirtualPackage(name="__archspec", version="1", build="aarch64"),
    ),
    "osx-arm64": (VirtualPackage(name="__unix", version="0"), VirtualPackage(name="__osx", version="14.0")),
    "win-64": (VirtualPackage(name="__win", version="10"),),
}


def make_spec(
    *dependencies: str,
    channels: Sequence[str] = ("conda-forge",),
    platforms: Sequence[str] = ("linux-64",),
    cuda: str | None = None,
    name: str = "py311-test",
    text: str | None = None,
    source: Source = "conda-forge",
) -> Spec:
    """A Spec from dependency lines, as `envkit render` would make it."""
    lines = "".join(f"  - {one}\n" for one in channels)
    listed = "".join(f"  - {one}\n" for one in platforms)
    rendered = (
        f"name: {name}\nchannels:\n{lines}  - nodefaults\nplatforms:\n{listed}dependencies:\n"
        + "".join(f"  - {one}\n" for one in dependencies)
    )
    virtual = {
        platform: (*VIRTUAL[platform], *((VirtualPackage(name="__cuda", version=cuda),) if cuda else ()))
        for platform in platforms
    }
    return Spec(
        variant=Variant(
            name=name,
            python="3.11",
            accelerator=cuda or "cpu",
            torch="*",
            source=source,
            platforms=tuple(platforms),
        ),
        text=rendered if text is None else text,
        channels=tuple(channels),
        virtual_packages=virtual,
        digest=hashlib.sha256(rendered.encode()).hexdigest(),
    )


def repodata_of(root: Path) -> Callable[[str, str], Path]:
    """Repodata from a directory of channels, as `fetch.repodata` gives it."""
    return lambda channel, subdir: root / channel / subdir / "repodata.json"


def canonical(channel: str) -> str:
    return channel if "://" in channel else f"https://conda.anaconda.org/{channel}"
