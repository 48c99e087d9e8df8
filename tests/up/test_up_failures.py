"""What can go wrong between a clone and an environment: whose turn it is, and nothing half-made."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest
from small_project import VARIANT, Project
from test_up_path import tree


def test_a_matrix_edited_after_locking(project: Project) -> None:
    project.ok("install")
    before = tree(project.home)
    project.matrix.write_text(project.matrix.read_text().replace("[numpy, pip]", "[numpy, pip, imageio]", 1))
    error = project.fails("up", code=1)
    assert f"environments/{VARIANT}/conda-lock.yml" in error["message"]
    assert f"envkit lock {VARIANT}" in error["hint"]
    assert tree(project.home) == before
    assert project.call("lock", "--all", "--check").code == 1
    assert project.call("render", VARIANT, "--check").code == 1
    project.ok("lock", VARIANT)
    assert project.ok("install")["installed"]


def test_a_lock_with_a_wrong_hash(project: Project) -> None:
    project.ok("install")
    before = tree(project.prefix())
    text = project.lock.read_text()
    at = text.index("name: pytorch")
    project.lock.write_text(text[:at] + re.sub(r"sha256: \w{64}", f"sha256: {'ab' * 32}", text[at:], count=1))
    error = project.fails("up", code=3)
    assert "pytorch-2.4.1" in error["message"]
    assert tree(project.prefix()) == before
    assert project.call("run", VARIANT, "python", "-c", "import torch").code == 0


def test_what_cannot_be_solved(project: Project) -> None:
    error = project.fails("up", "--with", "train", code=1)
    assert "lightning" in error["message"]
    assert not (project.home / "state").exists()


def test_one_variant_that_cannot_be_solved_keeps_no_other_from_being_locked(bare: Project) -> None:
    bare.matrix.write_text(bare.matrix.read_text().replace("extras: [vision]", "extras: [train]"))
    done = bare.call("lock", "--all", "--json")
    assert done.code == 1
    first, second = done.result["variants"]
    assert first["torch"] == "2.4.1"
    assert "lightning" in second["error"]
    assert bare.lock.exists()


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (["--with", "notebok"], "notebok", "notebook"),
        (["--cuda", "12.7"], "12.7", "12.6"),
        (["--torch", "9"], "9", "2."),
        ([f"{VARIANT}s"], f"{VARIANT}s", "envkit variants"),
        (["--mirror", "tunna"], "tunna", "tuna"),
        (["--mirror", "file:///no/such/folder"], "/no/such/folder", "file:///"),
        (["--name", "../x"], "../x", "letters"),
        (["--name", "a/b"], "a/b", "letters"),
        (["--lock", "/no/such/lock.yml"], "/no/such/lock.yml", "path"),
        (["--lock", "/"], "directory", "path"),
    ],
)
def test_what_cannot_be_meant(project: Project, arguments: list[str], message: str, hint: str) -> None:
    error = project.fails("up", *arguments, code=2)
    assert message in error["message"]
    assert hint in error["hint"]
    assert not project.home.exists(), "nothing was solved or fetched for it"


@pytest.mark.parametrize("content", ["a folder", "a file", "an environment of conda"])
def test_a_prefix_that_holds_something_else(project: Project, tmp_path: Path, content: str) -> None:
    taken = tmp_path / "taken"
    if content == "a file":
        taken.write_text("mine")
    elif content == "a folder":
        taken.mkdir()
        (taken / "thesis.txt").write_text("mine")
    else:
        (taken / "conda-meta").mkdir(parents=True)
        (taken / "conda-meta" / "history").write_text("")
    before = tree(tmp_path)
    error = project.fails("up", "--with", "notebook", "--prefix", str(taken), code=2)
    assert str(taken) in error["message"]
    assert "--prefix" in error["hint"]
    if content != "an environment of conda":
        assert tree(tmp_path) == before, "nothing was solved or fetched for it"


def read_only(folder: Path) -> list[str]:
    """A command that runs another where `folder` is mounted read-only; skips where that is not allowed."""
    script = f'mount --bind "{folder}" "{folder}" && mount -o remount,bind,ro "{folder}" && exec "$@"'
    command = ["unshare", "-rm", "sh", "-c", script, "sh"]
    if subprocess.run([*command, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no user namespaces here")
    return command


def test_places_that_cannot_be_written_to(project: Project, tmp_path: Path) -> None:
    error = project.fails("install", "--prefix", "/proc/no/such", code=3)
    assert "/proc/no" in error["message"]
    assert "--prefix" in error["hint"]
    error = project.fails("lock", VARIANT, "--fresh", code=3, ENVKIT_HOME="/proc/no")
    assert "ENVKIT_CACHE" in error["hint"]
    (tmp_path / "still").mkdir()
    within = read_only(tmp_path / "still")
    error = project.fails("install", "--prefix", str(tmp_path / "still" / "x"), code=3, within=within)
    assert "Read-only" in error["message"]
    assert list((tmp_path / "still").iterdir()) == []
    before = project.lock.read_bytes()
    project.matrix.write_text(project.matrix.read_text().replace("[numpy, pip]", "[numpy, imageio]", 1))
    error = project.fails("lock", VARIANT, code=3, within=read_only(project.root))
    assert "conda-lock.yml" in error["message"]
    assert project.lock.read_bytes() == before


@pytest.mark.parametrize(
    ("file", "line", "content"),
    [
        ("environments/matrix.yaml", None, b""),
        ("environments/matrix.yaml", 2, b"schema: 1\nschema: 1\n"),
        ("environments/matrix.yaml", 2, b"schema: 1\n\xff\n"),
        (f"environments/{VARIANT}/conda-lock.yml", 2, b"package: [\n"),
        ("templates/environment.yml.j2", 1, b"{% if %}\n"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_with_its_line(
    project: Project, file: str, line: int | None, content: bytes
) -> None:
    path = project.root / file
    path.write_bytes(content)
    error = project.fails("up", code=2)
    assert (error["path"], error["line"]) == (str(path), line)


def test_an_interrupt_while_a_host_keeps_silent(project: Project) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        project.environ["ENVKIT_MIRROR"] = f"http://127.0.0.1:{silent.getsockname()[1]}"
        child = project.start("up", "--json", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        connection, _address = silent.accept()
        with connection:
            began = time.monotonic()
            os.killpg(child.pid, signal.SIGINT)
            out, err = child.communicate(timeout=60)
    assert time.monotonic() - began < 10
    assert child.returncode == 130, err
    assert '"exit": 130' in out
    assert "Traceback" not in err
    assert [line for line in err.splitlines() if line.startswith("error")] == ["error: interrupted"]
    assert project.names == []
