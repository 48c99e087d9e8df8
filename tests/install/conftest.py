"""A conda channel made on the spot: real `.conda` archives, small enough that an install takes a blink.

The `python` in it is a script that starts the running interpreter under its own name, beside a
`pyvenv.cfg`: so it finds its own prefix and can run pip, without 30 MB of standard library.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import sys
import tarfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import zstandard

from envkit import fetch
from envkit.install import install
from envkit.model import Environment, Lock, Package
from envkit.progress import Observer

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


@dataclass
class Channel:
    """A folder of packages that grows with every `add`, and the locks over them."""

    root: Path
    packages: list[Package] = field(default_factory=list)

    def add(
        self,
        name: str,
        files: Mapping[str, bytes | str | Link | Content],
        *,
        version: str = "1.0",
        build: str = "0",
        subdir: str = PLATFORM,
        noarch: str | None = None,
        depends: Sequence[str] = (),
        entry_points: Sequence[str] = (),
    ) -> Package:
        """Pack, write to the channel, and return the package as a lock would name it."""
        subdir = "noarch" if noarch else subdir
        index: dict[str, object] = {
            "arch": None, "build": build, "build_number": 0, "depends": list(depends),
            "license": "0BSD", "name": name, "platform": None, "subdir": subdir, "version": version,
        }  # fmt: skip
        if noarch:
            index["noarch"] = noarch
        wanted = {path: Content(f.encode()) if isinstance(f, str) else f for path, f in files.items()}
        payload, paths = _payload(wanted)
        info: dict[str, bytes] = {
            "info/index.json": _json(index),
            "info/paths.json": _json({"paths": paths, "paths_version": 1}),
            "info/files": "".join(f"{path}\n" for path in sorted(wanted)).encode(),
        }
        if noarch == "python":
            link = {"type": "python", "entry_points": list(entry_points)}
            info["info/link.json"] = _json({"noarch": link, "package_metadata_version": 1})
        stem = f"{name}-{version}-{build}"
        file = self.root / subdir / f"{stem}.conda"
        file.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            for member, raw in (
                ("metadata.json", b'{"conda_pkg_format_version": 2}'),
                (f"pkg-{stem}.tar.zst", _zst(payload)),
                (f"info-{stem}.tar.zst", _zst(_tar(info))),
            ):
                archive.writestr(zipfile.ZipInfo(member), raw)  # dated 1980: the same bytes every time
        raw = file.read_bytes()
        package = Package(
            name=name, version=version, manager="conda", platform=PLATFORM, url=file.as_uri(),
            sha256=hashlib.sha256(raw).hexdigest(), md5=hashlib.md5(raw).hexdigest(),
            depends={d.split()[0]: "".join(d.split()[1:2]) or "*" for d in depends},
        )  # fmt: skip
        self.packages.append(package)
        return package

    def lock(self, *packages: Package, path: Path | None = None) -> Lock:
        """A lock of the given packages (all of the channel's by default), and its bytes on disk."""
        chosen = packages or tuple(self.packages)
        path = path or self.root / "conda-lock.yml"
        path.write_text("".join(f"{p.platform} {p.url}#{p.sha256}\n" for p in chosen))
        return Lock(
            path=path, digest="d" * 64, channels=(self.root.as_uri(),), platforms=(PLATFORM,),
            packages=tuple(chosen),
        )  # fmt: skip


def _json(document: object) -> bytes:
    return json.dumps(document, sort_keys=True).encode()


def _payload(files: Mapping[str, bytes | Link | Content]) -> tuple[bytes, list[dict[str, object]]]:
    paths: list[dict[str, object]] = []
    for name, file in sorted(files.items()):
        row: dict[str, object] = {"_path": name, "path_type": "hardlink"}
        if isinstance(file, Link):
            row["path_type"] = "softlink"
        else:
            content = Content(file) if isinstance(file, bytes) else file
            row |= {"sha256": hashlib.sha256(content.data).hexdigest(), "size_in_bytes": len(content.data)}
            if content.prefix:
                row |= {"file_mode": content.prefix, "prefix_placeholder": PLACEHOLDER}
        paths.append(row)
    return _tar(files), paths


def _tar(files: Mapping[str, bytes | Link | Content]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, file in sorted(files.items()):
            member = tarfile.TarInfo(name)
            if isinstance(file, Link):
                member.type, member.linkname = tarfile.SYMTYPE, file.target
                archive.addfile(member)
            else:
                content = Content(file) if isinstance(file, bytes) else file
                member.size, member.mode = len(content.data), content.mode
                archive.addfile(member, io.BytesIO(content.data))
    return buffer.getvalue()


def _zst(raw: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=1).compress(raw)


def add_python(channel: Channel) -> Package:
    """The running interpreter as a package, with an activation script and variables."""
    real = Path(sys.executable).resolve()
    return channel.add(
        "python",
        {
            "bin/python": script(f'#!/bin/bash\nexec -a "$0" "{real}" "$@"\n'),
            "bin/python3": Link("python"),
            f"bin/python{MINOR}": Link("python"),
            "pyvenv.cfg": f"home = {real.parent}\ninclude-system-site-packages = false\n",
            f"{SITE_PACKAGES}/README.txt": "",
            "bin/where": script('#!PREFIX/bin/python\nprint("PREFIX")\n'),
            "share/text.txt": Content(f"at {PLACEHOLDER}/share\n".encode(), prefix="text"),
            "share/binary": Content(b"\0\1" + PLACEHOLDER.encode() + b"/lib\0\2", prefix="binary"),
        },
        version=".".join(map(str, sys.version_info[:3])),
    )


def add_rest(channel: Channel) -> None:
    """Packages of every kind that an install treats in its own way."""
    channel.add(
        "greeting",
        {"site-packages/greeting.py": "def main():\n    print('hello from greeting')\n"},
        noarch="python",
        depends=[f"python >={MINOR}"],
        entry_points=["greet = greeting:main"],
    )
    channel.add(
        "hooks",
        {
            "etc/conda/activate.d/hooks.sh": 'export HOOK_PREFIX="$CONDA_PREFIX" HOOK_TEXT="two\nlines"\n',
            "etc/conda/deactivate.d/hooks.sh": "unset HOOK_PREFIX HOOK_TEXT\n",
            "etc/conda/env_vars.d/hooks.json": '{"HOOK_VARIABLE": "set by a package"}',
        },
    )
    channel.add(
        "data",
        {f"share/data/{number}.bin": b"%d" % number for number in range(60)},
        noarch="generic",
    )


@pytest.fixture
def channel(tmp_path: Path) -> Channel:
    """A channel with python, a noarch package with an entry point, activation scripts and data."""
    made = Channel(tmp_path / "channel")
    add_python(made)
    add_rest(made)
    return made


class Installer:
    """`install` with the arguments that most tests do not care about."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self.cache = cache
        self.prefix = folder / "envs" / "tiny"
        self.notes: list[str] = []

    def __call__(self, lock: Lock, prefix: Path | None = None, **changes: Any) -> Environment:
        arguments: dict[str, Any] = {
            "name": "tiny", "variant": None, "routes": fetch.routes("official"), "cache": self.cache,
            "observer": _Listener(self.notes),
        }  # fmt: skip
        return install(lock, prefix or self.prefix, **(arguments | changes))

    def command(self, lock: Lock, prefix: Path | None = None) -> list[str]:
        """The same in a process of its own."""
        order = lock.path.with_suffix(".order")
        order.write_bytes(pickle.dumps((lock, prefix or self.prefix, self.cache)))
        return [sys.executable, str(Path(__file__).with_name("install_in_child.py")), str(order)]

    def beside(self) -> list[str]:
        """What lies beside the environment: nothing, when all went well."""
        folder = self.prefix.parent
        names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
        return sorted(names - {self.prefix.name})


class _Listener(Observer):
    def __init__(self, notes: list[str]) -> None:
        self._notes = notes

    def note(self, text: str) -> None:
        self._notes.append(text)


def _tree_hash(prefix: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(prefix.rglob("*")):
        mode = path.lstat().st_mode
        digest.update(f"{path.relative_to(prefix)} {mode:o} ".encode())
        if path.is_symlink():
            digest.update(str(path.readlink()).encode())
        elif path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()


@pytest.fixture
def tree_hash() -> Callable[[Path], str]:
    """A digest of every name, mode, link and byte below a folder."""
    return _tree_hash


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache for all tests: the packages are the same bytes in each."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def installer(tmp_path: Path, shared_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Installer:
    """An installer into `<tmp_path>/envs/tiny`, with a home of its own."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ENVKIT_HOME", str(tmp_path))
    monkeypatch.delenv("ENVKIT_CACHE", raising=False)
    return Installer(tmp_path, shared_cache)


@pytest.fixture
def environment(channel: Channel, installer: Installer) -> Environment:
    """The whole channel, installed."""
    return installer(channel.lock())


@pytest.fixture(scope="session")
def pip_channel(tmp_path_factory: pytest.TempPathFactory) -> Channel:
    """A channel with python and the running interpreter's pip."""
    import pip

    made = Channel(tmp_path_factory.mktemp("pip-channel"))
    add_python(made)
    root = Path(pip.__file__).parent.parent
    (record,) = root.glob(f"pip-{pip.__version__}.dist-info")
    found = [path for folder in (root / "pip", record) for path in folder.rglob("*") if path.is_file()]
    files = [path for path in found if path.suffix != ".pyc"]
    made.add(
        "pip",
        {f"site-packages/{path.relative_to(root)}": path.read_bytes() for path in files},
        version=pip.__version__,
        noarch="python",
    )
    return made


@pytest.fixture
def wheel(tmp_path: Path) -> Package:
    """A wheel with a console script, as the pip section of a lock names it."""
    info = "Tiny_Wheel-1.0.dist-info"
    files = {
        "tiny_wheel.py": "def main():\n    print('hello from a wheel')\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: Tiny_Wheel\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "[console_scripts]\ntiny-wheel = tiny_wheel:main\n",
    }
    record = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    file = tmp_path / "Tiny_Wheel-1.0-py3-none-any.whl"
    with zipfile.ZipFile(file, "w") as archive:
        for name, text in [*files.items(), (f"{info}/RECORD", record)]:
            archive.writestr(name, text)
    return Package(
        name="tiny-wheel", version="1.0", manager="pip", platform=PLATFORM, url=file.as_uri(),
        sha256=hashlib.sha256(file.read_bytes()).hexdigest(),
    )  # fmt: skip
