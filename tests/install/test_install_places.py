"""Where packages come from and go to: one disk, two disks, read-only ones, several processes at once."""

from __future__ import annotations

import shutil
import subprocess
import threading
from pathlib import Path

import pytest
from tinychannel import TinyPackage

from envkit.install.hold import lock_file, sweep


def _may_mount():
    command = ["unshare", "-m", "true"]
    return shutil.which("unshare") and subprocess.run(command, capture_output=True).returncode == 0


mounts = pytest.mark.skipif(not _may_mount(), reason="no mount namespaces here")

READ_ONLY = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" || exit 99; shift; exec "$@"'
TMPFS = (
    'mount -t tmpfs tmpfs "$1" || exit 99; place=$1; shift; "$@" || exit; '
    'stat -c %h "$place"/tiny/share/data/1.bin; "$place"/tiny/bin/greet; ls -A "$place"'
)


def within(script, folder, command):
    return subprocess.run(
        ["unshare", "-m", "sh", "-c", script, "sh", str(folder), *command],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def test_hard_links_on_one_disk(environment, installer):
    """Also the proof that linking costs no space; where files hold the prefix they are their own."""
    linked = environment.prefix / "share" / "data" / "1.bin"
    inside = installer.cache / "pkgs" / "data-1.0-0" / "share" / "data" / "1.bin"
    if linked.stat().st_nlink == 1:
        pytest.skip("this file system has reflinks, or cache and prefix are on two")
    assert linked.samefile(inside)
    assert (environment.prefix / "share" / "text.txt").stat().st_nlink == 1


@mounts
def test_copies_to_another_disk(channel, installer, tmp_path):
    lock = channel.lock()
    installer(lock)
    place = tmp_path / "other"
    place.mkdir()
    done = within(TMPFS, place, installer.command(lock, place / "tiny"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-3:] == ["1", "hello from greeting", "tiny"]


@mounts
def test_a_read_only_prefix(channel, installer, tree_hash):
    old = channel.lock(*channel.packages[:2], path=channel.root / "old.yml")
    before = tree_hash(installer(old).prefix)
    done = within(READ_ONLY, installer.prefix.parent, installer.command(channel.lock()))
    assert done.returncode == 3, done.stdout + done.stderr
    told, hint = done.stdout.splitlines()[1:]
    assert f"cannot write to {installer.prefix.parent}" in told
    assert "Read-only file system" in told
    assert "--prefix" in hint
    assert tree_hash(installer.prefix) == before
    assert installer.beside() == []


@mounts
def test_a_read_only_cache_that_has_everything_will_do(channel, installer, tree_hash):
    lock = channel.lock()
    expected = tree_hash(installer(lock).prefix)
    shutil.rmtree(installer.prefix)
    done = within(READ_ONLY, installer.cache, installer.command(lock))
    assert done.returncode == 0, done.stdout + done.stderr
    assert tree_hash(installer.prefix) == expected


@mounts
def test_a_read_only_cache_that_lacks_something(channel, installer, tree_hash):
    before = tree_hash(installer(channel.lock()).prefix)
    channel.add(TinyPackage("more", noarch="generic"))
    done = within(READ_ONLY, installer.cache, installer.command(channel.lock()))
    assert done.returncode == 3, done.stdout + done.stderr
    told, hint = done.stdout.splitlines()[1:]
    assert "cannot write to" in told
    assert "Read-only file system" in told
    assert "ENVKIT_CACHE" in hint
    assert tree_hash(installer.prefix) == before
    assert installer.beside() == []


def test_four_at_once_from_nothing(channel, installer, tree_hash, tmp_path):
    """On one prefix, with two locks, over one empty cache: each in its turn, the last one stays."""
    installer.cache = tmp_path / "cache"
    locks = [channel.lock(*channel.packages[:2], path=channel.root / "old.yml"), channel.lock()]
    expected = set()
    for lock in locks:
        expected.add(tree_hash(installer(lock).prefix))
    shutil.rmtree(installer.prefix)
    shutil.rmtree(installer.cache)
    four = [
        subprocess.Popen(installer.command(lock), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for lock in (*locks, *locks)
    ]
    said = [process.communicate(timeout=120)[0] for process in four]
    assert [process.returncode for process in four] == [0] * 4, said
    assert tree_hash(installer.prefix) in expected
    assert installer.beside() == []
    assert sum("waiting for another envkit process" in text for text in said) >= 2, said


def test_a_lock_file_that_nobody_holds_goes(tmp_path):
    path = lock_file(tmp_path / "e")
    path.touch()
    sweep(tmp_path / "e")
    assert not path.exists()
    sweep(tmp_path / "e")


def test_a_lock_file_that_somebody_holds_stays(tmp_path):
    path = lock_file(tmp_path / "e")
    held = subprocess.Popen(["flock", str(path), "sleep", "60"])
    try:
        for _ in range(200):
            if path.exists() and subprocess.run(["flock", "-n", str(path), "true"]).returncode:
                break
            threading.Event().wait(0.05)
        sweep(tmp_path / "e")
        assert path.exists()
    finally:
        held.kill()
        held.wait()
    Path(path).unlink()
