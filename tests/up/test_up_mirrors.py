"""A mirror is a transport: lock and environment are the same bytes whichever served; a cache needs none."""

from __future__ import annotations

import functools
import http.server
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from small_project import VARIANT, Project


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_args: object) -> None:
        pass


def served(folder: Path, prefix: str) -> tuple[http.server.ThreadingHTTPServer, str]:
    """A static web server that has a directory of channels below a path."""
    folder.mkdir(parents=True, exist_ok=True)
    handler = functools.partial(_Quiet, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_address[1]}{prefix}"


@pytest.fixture
def three(mirror: str, tmp_path: Path) -> Iterator[tuple[str, str, str]]:
    """A directory of channels, and two web servers with it, one below a path."""
    tree = Path(unquote(urlsplit(mirror).path))
    shutil.copytree(tree, tmp_path / "web" / "anaconda" / "cloud")
    one, first = served(tree, "")
    two, second = served(tmp_path / "web", "/anaconda/cloud")
    yield mirror, first, second
    for server in (one, two):
        server.shutdown()
        server.server_close()


def contents(prefix: Path) -> dict[str, tuple[int, bytes]]:
    """Mode and bytes of all that is in an environment, its record of packages and its history included."""
    return {
        str(path.relative_to(prefix)): (
            path.lstat().st_mode,
            bytes(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else b"",
        )
        for path in prefix.rglob("*")
    }


def test_three_mirrors_one_lock_one_environment(bare: Project, three: tuple[str, str, str]) -> None:
    locks, environments = [], []
    for address in three:
        bare.environ["ENVKIT_MIRROR"] = address
        bare.ok("lock", VARIANT, "--only-mirrors")
        locks.append(bare.lock.read_bytes())
        bare.ok("install", VARIANT, "--only-mirrors")
        environments.append(contents(bare.prefix()))
        shutil.rmtree(bare.home)
        shutil.rmtree(bare.lock.parent)
    assert locks[0] == locks[1] == locks[2]
    assert b"127.0.0.1" not in locks[0]
    first = environments[0]
    assert len(first) > 20
    assert "conda-meta/envkit-lock.yml" in first
    assert any(name.startswith("conda-meta/pytorch-2.4.1") for name in first)
    for other in environments[1:]:
        assert sorted(other) == sorted(first)
        assert [name for name in first if first[name] != other[name]] == []


def test_the_same_bytes_in_another_cache(project: Project, tmp_path: Path) -> None:
    project.ok("install", VARIANT)
    first = contents(project.prefix())
    shutil.rmtree(project.prefix())
    project.environ["ENVKIT_CACHE"] = str(tmp_path / "elsewhere")
    project.ok("install", VARIANT)
    assert contents(project.prefix()) == first


def _may_unshare() -> bool:
    command = ["unshare", "-rn", "true"]
    return bool(shutil.which("unshare")) and subprocess.run(command, capture_output=True).returncode == 0


unshared = pytest.mark.skipif(not _may_unshare(), reason="no network namespaces here")
NO_NETWORK = ("unshare", "-rn")


@unshared
def test_offline_from_a_warm_cache(project: Project, three: tuple[str, str, str]) -> None:
    project.environ["ENVKIT_MIRROR"] = three[1]
    project.ok("install", VARIANT, "--only-mirrors")
    first = contents(project.prefix())
    shutil.rmtree(project.prefix())
    assert project.ok("install", VARIANT, "--offline", within=NO_NETWORK)["installed"]
    assert contents(project.prefix()) == first
    shutil.rmtree(project.prefix())
    project.environ["ENVKIT_MIRROR"] = "auto"  # and whichever mirror is named, nobody is asked
    told = project.ok("install", VARIANT, "--offline", "--dry-run", within=NO_NETWORK)
    assert told["fetch"] == []
    assert project.ok("install", VARIANT, "--offline", within=NO_NETWORK)["installed"]
    assert contents(project.prefix()) == first


@unshared
def test_offline_from_an_empty_cache_names_what_is_missing(project: Project) -> None:
    project.environ["ENVKIT_MIRROR"] = "http://127.0.0.1:9"
    error = project.fails("install", VARIANT, "--offline", code=3, within=NO_NETWORK)
    assert "pytorch-2.4.1" in error["message"] or "python" in error["message"]
    error = project.fails("up", "--offline", "--mirror", "wheels", code=3, within=NO_NETWORK)
    assert "wheel channel" in error["message"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--from", "b.tar", "--lock", "l.yml"), "a bundle was given beside a lock"),
        (("--sha256", "0" * 64), "without a bundle"),
        (("--from", "b.tar", "--sha256", "abc"), "'abc' is no sha256"),
        (("--from", "b.tar", VARIANT), "a bundle was given beside"),
    ],
)
def test_contradictions(project: Project, arguments: tuple[str, ...], said: str) -> None:
    assert said in project.fails("install", *arguments, code=2)["message"]
