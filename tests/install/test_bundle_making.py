"""Bundles are the same bytes whoever serves and whenever killed, and a tree of channels once unpacked."""

from __future__ import annotations

import concurrent.futures
import functools
import hashlib
import http.server
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import time
from contextlib import contextmanager

import pytest
from smallbundle import (
    KINDS,
    ROOT,
    call,
    digest,
    members,
    mirror_and_lock,
    pip_sees,
    tar_of,
    write_lock,
    write_shelf,
)
from tinychannel import PLATFORM, TinyPackage, write_channel

from envkit import fetch, lock
from envkit.errors import Error, InputError
from envkit.install.bundle import bundle
from envkit.progress import SILENT, Observer


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    return write_shelf(tmp_path_factory.mktemp("shelf") / "wheels", real=False)


@pytest.fixture
def make(tmp_path, shelf, monkeypatch):
    """`bundle` with the arguments that most tests do not care about."""
    for name, value in pip_sees(shelf).items():
        monkeypatch.setenv(name, value)
    mirror, path = mirror_and_lock(tmp_path)

    def call(output="out.tar", *, locked=path, routes=None, cache="cache", **changes):
        arguments = {
            "name": "tiny", "platform": PLATFORM, "cache": tmp_path / cache, "spec": "name: tiny\n",
            "routes": routes or fetch.routes(mirror.as_uri(), only=True),
        }  # fmt: skip
        return bundle(lock.read_lock(locked), tmp_path / output, **(arguments | changes))

    call.mirror, call.lock = mirror, path
    return call


@contextmanager
def served(folder):
    """A folder behind a static web server on the loopback."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    handler.log_message = lambda *_: None
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def unpacked(path, folder):
    with tarfile.open(path) as tar:
        tar.extractall(folder)
    return folder


def test_says_what_it_has(make, tmp_path):
    made = make()
    raw = made.path.read_bytes()
    rows = members(raw)
    assert digest(raw) == made.sha256
    assert len(raw) == made.size
    assert [info.name for info, _raw in rows] == ["bundle.json", *(m.path for m in made.contents.members)]
    assert [info.name for info, _raw in rows[1:]] == sorted(info.name for info, _raw in rows[1:])
    assert {(info.uid, info.gid, info.uname, info.mtime, info.type) for info, _raw in rows} == {
        (0, 0, "", 0, b"0")
    }
    said = json.loads(rows[0][1])
    assert said["name"] == "tiny"
    assert said["platform"] == PLATFORM
    assert said["host_bound"] is False
    assert {m["path"]: (m["sha256"], m["size"]) for m in said["members"]} == {
        info.name: (digest(content), len(content)) for info, content in rows[1:]
    }
    found = {info.name: content for info, content in rows}
    assert found["conda-lock.yml"] == make.lock.read_bytes()
    assert found["environment.yml"] == b"name: tiny\n"
    assert {name for name in found if name.endswith((".conda", ".tar.bz2"))} == {
        f"conda-forge/{kind.subdir}/{kind.file}" for kind in KINDS
    }


def test_same_bytes_twice_and_through_two_mirrors(make):
    first = make("first.tar")
    again = make("again.tar")
    with served(make.mirror) as url:
        other = make("other.tar", routes=fetch.routes(url, only=True), cache="other")
    raw = first.path.read_bytes()
    assert again.path.read_bytes() == raw
    assert other.path.read_bytes() == raw


def test_what_a_killed_run_wrote_is_kept(make, tmp_path):
    whole = make("whole.tar").path.read_bytes()
    for length in (0, 100, 5000, len(whole) // 2, len(whole) - 1, len(whole)):
        partial = tmp_path / ".out.tar.partial"
        partial.write_bytes(whole[:length])
        inode = partial.stat().st_ino
        made = make()
        assert made.path.read_bytes() == whole
        assert made.path.stat().st_ino == inode
        assert not partial.exists()


def test_what_somebody_else_left_is_not(make, tmp_path):
    whole = make("whole.tar").path.read_bytes()
    for left in (b"x" * (2 * len(whole)), whole[:3000] + b"x" * len(whole)):
        (tmp_path / ".out.tar.partial").write_bytes(left)
        assert make().path.read_bytes() == whole


def test_killed_at_random_points(make, tmp_path):
    _kill(make, tmp_path, kills=3)


@pytest.mark.slow
def test_killed_at_thirty_random_points(make, tmp_path):
    _kill(make, tmp_path, kills=30)


def _kill(make, tmp_path, *, kills):
    """An old bundle stays whole while a new one is made and killed; a last run finishes."""
    big = TinyPackage("big", files={"share/big.bin": random.Random(1).randbytes(30_000_000)})
    write_channel(make.mirror / "conda-forge", *KINDS, big)
    locked = write_lock(tmp_path / "big" / "conda-lock.yml", *(kind.locked() for kind in (*KINDS, big)))
    old = make("out.tar").path.read_bytes()
    # A bundle has the code that makes it: somebody may be editing it meanwhile.
    code = shutil.copytree(ROOT / "envkit", tmp_path / "code" / "envkit")
    env = {
        **os.environ,
        "PYTHONPATH": str(code.parent),
        "ENVKIT_HOME": str(tmp_path / "killed"),
        "HOME": str(tmp_path),
    }
    command = [
        sys.executable, "-m", "envkit", "bundle", "--lock", str(locked), "--name", "tiny", "--mirror",
        make.mirror.as_uri(), "--only-mirrors", "-o", str(tmp_path / "out.tar"),
    ]  # fmt: skip
    for _round in range(2):  # the first one asks pip
        began = time.monotonic()
        subprocess.run([*command[:-1], str(tmp_path / "timed.tar")], env=env, check=True, capture_output=True)
    whole = time.monotonic() - began
    expected = (tmp_path / "timed.tar").read_bytes()
    chance, killed = random.Random(4), 0
    for _round in range(kills):
        process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(whole * chance.uniform(0.2, 1.0))
        process.send_signal(signal.SIGKILL)
        process.wait()
        killed += process.returncode == -signal.SIGKILL
        assert (tmp_path / "out.tar").read_bytes() in (old, expected)
        if (tmp_path / "out.tar").stat().st_size == len(expected):
            (tmp_path / "out.tar").write_bytes(old)
    assert killed > kills / 3
    subprocess.run(command, env=env, check=True, capture_output=True)
    assert (tmp_path / "out.tar").read_bytes() == expected
    assert not (tmp_path / ".out.tar.partial").exists()


def test_unpacked_it_is_a_tree_of_channels(make, tmp_path):
    folder = unpacked(make().path, tmp_path / "unpacked with a space")
    packages = lock.read_lock(make.lock).packages
    routes = fetch.routes(f"file://{str(folder).replace(' ', '%20')}", only=True, offline=True)
    _serves(routes, packages, tmp_path / "from-folder")
    with served(folder) as url:
        _serves(fetch.routes(url, only=True), packages, tmp_path / "from-server")


def _serves(routes, packages, cache):
    for subdir in (PLATFORM, "noarch"):
        index = json.loads(fetch.repodata("conda-forge", subdir, routes=routes, cache=cache).read_bytes())
        records = index["packages"] | index["packages.conda"]
        assert records == {kind.file: kind.record for kind in KINDS if kind.subdir == subdir}
    fetch.archives(packages, routes=routes, cache=cache)
    for kind in KINDS:
        assert (fetch.package_cache(cache) / kind.stem / "info" / "index.json").is_file()


def test_solved_over(make, tmp_path):
    """What was bundled can be locked from the unpacked bundle alone."""
    folder = unpacked(make().path, tmp_path / "unpacked")
    (tmp_path / "environment.yml").write_text(
        f"name: small\nchannels: [conda-forge]\ndependencies: [bar]\nplatforms: [{PLATFORM}]\n"
    )
    done = call(
        "lock", "--file", str(tmp_path / "environment.yml"), "-o", str(tmp_path / "new.yml"),
        "--mirror", folder.as_uri(), "--only-mirrors",
        env={"ENVKIT_HOME": str(tmp_path / "solved"), "HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = lock.read_lock(tmp_path / "new.yml")
    assert {package.url for package in found.packages} == {
        kind.locked().url for kind in KINDS if kind.name in ("foo", "bar")
    }


def test_channels_that_have_no_name(make, tmp_path):
    """A `file://` channel, such as the wheel channel, has a folder of its own, asked before the URL."""
    gone = write_channel(tmp_path / "wheels" / "channels" / "abc", *KINDS)
    locked = write_lock(
        tmp_path / "bound" / "conda-lock.yml", *(kind.locked(gone.as_uri()) for kind in KINDS),
        channels=(gone.as_uri(),),
    )  # fmt: skip
    notes = []
    observer = Observer()
    observer.note = notes.append
    made = make(locked=locked, routes=fetch.routes("official"), host_bound=True, observer=observer)
    assert any("one machine" in note for note in notes)
    assert made.contents.host_bound
    gone.rename(tmp_path / "elsewhere")
    folder = unpacked(made.path, tmp_path / "unpacked")
    routes = fetch.routes(folder.as_uri(), only=True, offline=True)
    fetch.archives(lock.read_lock(locked).packages, routes=routes, cache=tmp_path / "bound-cache")


def test_for_another_platform(make, tmp_path):
    other = TinyPackage("foo", platform="linux-aarch64")
    write_channel(make.mirror / "conda-forge", *KINDS, other)
    locked = write_lock(tmp_path / "arm" / "conda-lock.yml", *(k.locked() for k in KINDS), other.locked())
    made = make(locked=locked, platform="linux-aarch64")
    assert made.contents.platform == "linux-aarch64"
    assert [m.path for m in made.contents.members if m.path.endswith(".conda")] == [
        "conda-forge/linux-aarch64/foo-1.0-0.conda"
    ]
    with pytest.raises(Error, match="locked for, not installed on"):
        make(locked=locked, platform="osx-arm64")
    with pytest.raises(InputError, match="no packages for linux-ppc64le"):
        make(locked=locked, platform="linux-ppc64le")


def test_wheels_of_envkit_come_from_the_cache_the_second_time(make, monkeypatch, tmp_path):
    routes = fetch.routes(make.mirror.as_uri(), only=True, offline=True)
    with pytest.raises(Error, match="no connection may be made") as failed:
        make(routes=routes)
    assert "--offline" in failed.value.hint
    first = make("first.tar").sha256
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nothing"))
    assert make(routes=routes).sha256 == first


def test_wheels_that_are_not_there_are_named(make, monkeypatch, tmp_path):
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "empty"))
    with pytest.raises(Error) as failed:
        make()
    assert failed.value.hint
    assert not (tmp_path / "out.tar").exists()


@pytest.mark.parametrize("place", [".", "missing/out.tar", "pipe"])
def test_places_where_no_bundle_can_be(make, tmp_path, place):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError) as failed:
        make(place)
    assert "-o" in failed.value.hint


def test_two_at_once(make, tmp_path):
    make("first.tar")
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        digests = {made.sha256 for made in pool.map(lambda _number: make(), range(3))}
    assert digests == {digest((tmp_path / "first.tar").read_bytes())}
    assert digest((tmp_path / "out.tar").read_bytes()) in digests
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []


@pytest.mark.skipif(
    subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode != 0,
    reason="no mounts here",
)
def test_a_full_disk(make, tmp_path):
    """Told with numbers before the first byte; the old bundle is kept."""
    small = tmp_path / "small"
    small.mkdir()
    old = tmp_path / "old.tar"
    old.write_bytes(tar_of([(tarfile.TarInfo("bundle.json"), b"old")]))
    script = (
        'mount -t tmpfs -o size=1m tmpfs "$SMALL" && cp "$OLD" "$SMALL/out.tar" && '
        '"$@"; code=$?; cmp "$OLD" "$SMALL/out.tar" && printf "old "; ls -A "$SMALL"; exit $code'
    )
    command = [
        sys.executable, "-m", "envkit", "bundle", "--lock", str(make.lock), "--name", "tiny",
        "--mirror", make.mirror.as_uri(), "--only-mirrors", "-o", str(small / "out.tar"),
    ]  # fmt: skip
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script, "sh", *command],
        env={
            **os.environ, "PYTHONPATH": str(ROOT), "ENVKIT_HOME": str(tmp_path / "home"), "SMALL": str(small),
            "OLD": str(old),
        },
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 3, done.stderr
    assert "MB needed" in done.stderr
    assert "hint:" in done.stderr
    assert done.stdout == "old out.tar\n"


def test_an_archive_that_changes_meanwhile(make, tmp_path):
    class Changing(Observer):
        def start(self, task, total=None, unit="B"):
            if "writing" in task:
                (archive,) = make.mirror.rglob("bar-*.conda")
                archive.write_bytes(b"x" * archive.stat().st_size)

    old = tar_of([(tarfile.TarInfo("bundle.json"), b"old")])
    (tmp_path / "out.tar").write_bytes(old)
    with pytest.raises(Error, match="changed while"):
        make(observer=Changing())
    assert (tmp_path / "out.tar").read_bytes() == old


@pytest.mark.parametrize(
    "other", [b"mine", tar_of([(tarfile.TarInfo("thesis.tex"), b"mine")])], ids=["text", "tar"]
)
def test_only_a_bundle_is_replaced_by_one(make, tmp_path, other):
    output = tmp_path / "out.tar"
    output.write_bytes(other)
    with pytest.raises(InputError, match="is no bundle") as failed:
        make()
    assert "`-o`" in failed.value.hint
    assert output.read_bytes() == other
    output.unlink()
    whole = make().path.read_bytes()
    for old in (whole, whole[:1500], b""):
        output.write_bytes(old)
        assert make().path.read_bytes() == whole


def test_the_wheel_of_envkit_is_whole():
    import io
    import zipfile

    from envkit.install.bundle.own import envkit_wheel

    name, raw = envkit_wheel()
    assert name.startswith("envkit-")
    assert hashlib.sha256(raw).digest() == hashlib.sha256(envkit_wheel()[1]).digest()
    names = set(zipfile.ZipFile(io.BytesIO(raw)).namelist())
    needed = {"cli/frame.py", "data/mirrors.yaml", "probe/session.py", "install/bundle/install.sh"}
    assert {f"envkit/{path}" for path in needed} <= names
    assert not [path for path in names if "__pycache__" in path]
    assert SILENT is not None
