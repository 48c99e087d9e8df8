"""SIGKILL at any moment: the old environment or the new one, a cache to be trusted, and a rerun that ends."""

from __future__ import annotations

import random
import shutil
import subprocess
import time
from dataclasses import dataclass
from typing import Any

import pytest
from kinds import KINDS
from tinychannel import TinyPackage, channel_files, write_tree

from envkit import fetch
from envkit.fetch.store import Store
from envkit.fetch.unpack import unpack
from envkit.model import Lock

POINTS = [4, pytest.param(30, marks=[pytest.mark.slow, pytest.mark.timeout(1500)])]

BULK = tuple(
    TinyPackage(
        f"bulk{letter}",
        files={f"share/{letter}/{n}.bin": random.Random(n).randbytes(9000) for n in range(80)},
        noarch="generic",
    )
    for letter in "abc"
)
PACKAGES = (*KINDS, *BULK)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A server, the locks over its packages, and what an installation of either looks like."""

    server: Any
    old: Lock
    new: Lock


@pytest.fixture
def setting(tmp_path, server):
    server.files |= channel_files(*PACKAGES)
    server.delay = 0.03

    def lock(name, *packages):
        path = tmp_path / name
        path.write_text("".join(f"{package.url}#{package.sha256}\n" for package in packages))
        return Lock(
            path=path, digest="d" * 64, channels=("conda-forge",), platforms=(packages[0].platform,),
            packages=packages,
        )  # fmt: skip

    locked = [package.locked(platform=KINDS[0].platform) for package in PACKAGES]
    return Setting(server=server, old=lock("old.yml", *locked[:2]), new=lock("new.yml", *locked))


def start(command):
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout.readline() == "begin\n"
    return process


def check_cache(cache, folder, tree_hash):
    """Whatever the cache vouches for is, byte for byte, what its archive has."""
    store = Store(cache)
    vouched = [package for package in PACKAGES if store.holds(package.stem, package.sha256)]
    for package in vouched:
        fresh = folder / package.stem
        if not fresh.exists():
            write_tree(folder, {package.file: package.content})
            unpack(folder / package.file, fresh)
        assert tree_hash(store.folder / package.stem) == tree_hash(fresh), package.stem
    return len(vouched)


@pytest.mark.parametrize("points", POINTS)
@pytest.mark.parametrize("kind", ["cold", "warm", "update"])
def test_killed_at_random_points(setting, installer, tree_hash, tmp_path, kind, points):
    installer.cache = tmp_path / "cache"
    routes = fetch.routes(setting.server.url, only=True)
    mirror = setting.server.url
    pristine = tmp_path / "pristine"
    pristine.mkdir()

    old = tree_hash(installer(setting.old, routes=routes).prefix)
    command = installer.command(setting.new, mirror=mirror)
    began = time.monotonic()
    assert start(command).wait() == 0
    whole = time.monotonic() - began
    new = tree_hash(installer.prefix)
    dice = random.Random(points)
    seen = []
    for point in range(points):
        if kind == "cold":
            shutil.rmtree(installer.cache)
        if kind == "update":
            installer(setting.old, routes=routes)
        else:
            shutil.rmtree(installer.prefix)
        process = start(command)
        time.sleep(whole * (point + dice.random()) / points)
        process.kill()
        process.communicate()

        found = tree_hash(installer.prefix) if installer.prefix.exists() else None
        assert found in ({old, new} if kind == "update" else {None, new})
        if found:
            said = subprocess.run([installer.prefix / "bin" / "greet"], capture_output=True, text=True)
            assert said.stdout == "hello from greeting\n"
        seen.append(found)
        whole_packages = check_cache(installer.cache, pristine, tree_hash)
        assert kind == "cold" or whole_packages >= len(KINDS[:2])

        installer(setting.new, routes=routes)
        assert tree_hash(installer.prefix) == new
        assert installer.beside() == []
        assert check_cache(installer.cache, pristine, tree_hash) == len(PACKAGES)
        left = [path.name for path in (installer.cache / "downloads").iterdir()]
        assert not left, "a finished run leaves no half download"
    assert seen[0] in (None, old), "no kill came before the commit"


@pytest.mark.parametrize("points", [2, pytest.param(10, marks=[pytest.mark.slow, pytest.mark.timeout(900)])])
def test_killed_while_pip_works(pip_channel, wheel, installer, tree_hash, points):
    """pip is a child of its own: it must not go on writing into a stage that nobody owns."""
    old_lock = pip_channel.lock(path=pip_channel.root / "old.yml")
    old = tree_hash(installer(old_lock).prefix)
    lock = pip_channel.lock(*pip_channel.packages, wheel)
    command = installer.command(lock)
    began = time.monotonic()
    assert start(command).wait() == 0
    whole = time.monotonic() - began
    new = tree_hash(installer.prefix)
    for point in range(points):
        installer(old_lock)
        process = start(command)
        time.sleep(whole * (0.3 + 0.65 * point / points))
        process.kill()
        process.communicate()
        time.sleep(0.1)
        assert tree_hash(installer.prefix) in (old, new)
        installer(lock)
        assert tree_hash(installer.prefix) == new
        assert installer.beside() == []
