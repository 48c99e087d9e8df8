"""What stands on make's command line reaches envkit as it is, and nothing of it is run on the way."""

from __future__ import annotations

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


def make(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", "-f", str(MAKEFILE), *arguments],
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
