"""--dry-run: the whole plan with its numbers, and not one byte or lock file touched by it."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

from small_project import OTHER, VARIANT, Project


def picture(folder: Path) -> str:
    """A digest of every name, mode, time and byte below a folder."""
    digest = hashlib.sha256()
    for path in sorted([folder, *folder.rglob("*")]):
        seen = path.lstat()
        digest.update(f"{path} {seen.st_mode:o} {seen.st_mtime_ns} {seen.st_ino}".encode())
        if path.is_file() and not path.is_symlink():
            digest.update(path.read_bytes())
    return digest.hexdigest()


def test_before_anything_was_installed(project: Project) -> None:
    before = picture(project.root.parent)
    told = project.ok("install", "--dry-run")
    assert picture(project.root.parent) == before
    assert told["dry_run"]
    assert told["possible"]
    assert not told["replaces"]
    assert not told["current"]
    assert told["fetch"] == [], "the mirror is a directory"
    names = {part["name"] for part in told["unpack"]}
    assert names >= {"python", "pytorch", "numpy"}
    assert all(part["bytes"] > 0 for part in told["unpack"])
    assert {part["name"] for part in told["link"]} == names
    ids = [check["id"] for check in told["preflight"]["checks"]]
    assert ids[:2] == ["preflight.space", "preflight.inodes"]
    assert {"lock.host-glibc", "lock.host-cpu", "lock.host-driver"} <= set(ids)


def test_up_too(project: Project) -> None:
    before = picture(project.root.parent)
    done = project.call("up", "--dry-run", "-v")
    assert done.code == 0
    assert "would make the environment" in done.out
    assert "unpack" in done.out
    assert "pytorch 2.4.1" in done.out
    assert "it can be installed" in " ".join(done.out.split())
    assert picture(project.root.parent) == before


def test_of_an_environment_that_is_there(project: Project) -> None:
    project.ok("install", OTHER, "--name", "mine")
    before = picture(project.root.parent)
    told = project.ok("install", OTHER, "--name", "mine", "--dry-run")
    assert told["current"]
    told = project.ok("install", VARIANT, "--name", "mine", "--dry-run")
    assert told["replaces"]
    assert told["unpack"] == told["fetch"] == told["add"] == told["change"] == []
    assert told["remove"] == ["imageio 2.35"]
    assert told["added_by_pip"] == []
    assert all(part["files"] for part in told["link"])
    assert picture(project.root.parent) == before


def test_from_a_server_without_a_lock_without_a_cache(bare: Project) -> None:
    bare.environ["ENVKIT_MIRROR"] = "http://127.0.0.1:9"
    before = picture(bare.root.parent)
    error = bare.fails("install", "--dry-run", code=3)
    assert "no lock here yet" in error["message"]
    assert "envkit lock" in error["hint"] or "lock" in error["hint"]
    assert picture(bare.root.parent) == before


def test_from_a_server(project: Project) -> None:
    project.environ["ENVKIT_MIRROR"] = "http://127.0.0.1:9"
    before = picture(project.root.parent)
    told = project.ok("install", "--dry-run")
    assert {part["name"] for part in told["fetch"]} >= {"python", "pytorch"}
    assert {part["bytes"] for part in told["fetch"]} == {None}
    done = project.call("install", "--dry-run")
    assert "of unknown size" in done.out
    offline = project.call("install", "--dry-run", "--offline")
    assert offline.code == 1
    assert "it cannot be installed offline" in " ".join(offline.out.split())
    assert "not in the cache: " in offline.out
    assert "pytorch 2.4.1" in offline.out
    assert picture(project.root.parent) == before


def test_what_runs_there_is_named(project: Project) -> None:
    project.ok("install", OTHER, "--name", "mine")
    child = subprocess.Popen(["sleep", "60"], cwd=project.prefix("mine"))
    try:
        done = project.call("install", VARIANT, "--name", "mine", "--dry-run", "--json")
        assert done.code == 1
        assert [one["pid"] for one in done.result["processes"]] == [child.pid]
        assert not done.result["possible"]
    finally:
        child.kill()
        child.wait()
    assert project.prefix("mine").is_dir()
