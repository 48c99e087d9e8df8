"""A channel of a few small packages, and `install` with the arguments that most tests do not care about."""

from __future__ import annotations

import hashlib
import pickle
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kinds import KINDS
from tinychannel import PLATFORM, Channel, this_pip, this_python

from envkit import fetch
from envkit.install import install
from envkit.model import Environment, Lock, Package
from envkit.progress import Observer


@pytest.fixture
def server() -> Iterator[Any]:
    """The web server of the tests of fetch, on loopback."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "fetch"))
    from faultyserver import Server

    made = Server()
    yield made
    made.close()


@pytest.fixture
def channel(tmp_path: Path) -> Channel:
    """A channel with python, a noarch package with an entry point, activation scripts and data."""
    made = Channel(tmp_path / "channel")
    for package in KINDS:
        made.add(package)
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

    def command(self, lock: Lock, prefix: Path | None = None, mirror: str = "official") -> list[str]:
        """The same in a process of its own; from one mirror alone where one is given."""
        order = lock.path.with_suffix(".order")
        order.write_bytes(pickle.dumps((lock, prefix or self.prefix, self.cache, mirror)))
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
    made = Channel(tmp_path_factory.mktemp("pip-channel"))
    made.add(this_python())
    made.add(this_pip())
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
