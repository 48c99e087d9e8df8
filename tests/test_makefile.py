"""What stands on make's command line reaches envkit as it is, and nothing of it is run on the way."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

MAKEFILE = Path(__file__).parents[1] / "Makefile"

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="needs make")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project that is set up already, whose envkit prints its arguments, one a line."""
    binaries = tmp_path / ".venv" / "bin"
    binaries.mkdir(parents=True)
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / ".venv" / ".ready").touch()
    (binaries / "envkit").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (binaries / "envkit").chmod(0o755)
    return tmp_path


_OUTER = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")


def make(project: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    # `make test` tells the makes below it that they are inner ones, and those say where they go.
    own = {name: value for name, value in os.environ.items() if name not in _OUTER}
    return subprocess.run(
        ["make", "-f", str(MAKEFILE), *arguments], env={**own, **environment},
        cwd=project, capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    "value",
    [
        "a b", "it's", 'a"b', "a$b", "$(shell touch hit)", "'$(shell touch hit)'", "$(touch hit)",
        "`touch hit`", "a; touch hit", "a#b", "a\\b", "$$HOME", "a,b", "(a", "名",
    ],
)  # fmt: skip
@pytest.mark.parametrize(("variable", "option"), [("CUDA", "--cuda"), ("PREFIX", "--prefix")])
def test_a_value_arrives_as_it_is(project: Path, variable: str, option: str, value: str) -> None:
    done = make(project, "env", f"{variable}={value}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["up", option, value]
    assert not (project / "hit").exists()


@pytest.mark.parametrize("variable", ["NAME", "CUDA", "EXTRAS"])
def test_a_line_break_is_refused(project: Path, variable: str) -> None:
    done = make(project, "env", f"{variable}=a\ntouch hit")
    assert done.returncode == 2
    assert f"{variable} holds a line break" in done.stderr
    assert not (project / "hit").exists()


@pytest.mark.parametrize("name", ["a:b", "a$b", "a\nb"])
def test_a_folder_that_python_cannot_live_in_is_named(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    (folder / "pyproject.toml").touch()
    done = make(folder, "env")
    assert done.returncode == 2
    assert f"in a folder's name: {folder}" in done.stderr
    assert "hint: move the clone" in done.stderr
    assert [path.name for path in folder.iterdir()] == ["pyproject.toml"]


def test_another_pythons_home_is_left_out(project: Path) -> None:
    (project / ".venv" / "bin" / "envkit").write_text('#!/bin/sh\necho "home: ${PYTHONHOME-none}"\n')
    assert make(project, "env", PYTHONHOME="/nonexistent").stdout == "home: none\n"


def test_make_lock_keeps_pins_as_envkit_lock_does(project: Path) -> None:
    assert make(project, "lock").stdout.split() == ["lock", "--all"]
    assert make(project, "lock", "NAME=x", "ARGS=--fresh").stdout.split() == ["lock", "x", "--fresh"]
    assert make(project, "lock", "ARGS=--check").stdout.split() == ["lock", "--all", "--check"]
