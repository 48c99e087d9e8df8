"""The Makefile's variables: which are taken, and that a misspelt one is refused."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not here")


def dry_run(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    clean = {name: text for name, text in os.environ.items() if not name.startswith("MAKE")}
    return subprocess.run(
        ["make", "-n", "--no-print-directory", "-C", str(ROOT), *arguments],
        capture_output=True,
        text=True,
        env=clean | environ,
        check=False,
    )


@pytest.mark.parametrize("name", ["EXTRA", "cuda", "MIRRORS"])
def test_a_misspelt_variable_is_refused(name: str) -> None:
    done = dry_run("env", f"{name}=11.8")
    assert done.returncode == 2
    assert f"there is no variable {name};" in done.stderr
    assert "EXTRAS" in done.stderr


def test_every_variable_reaches_the_command() -> None:
    done = dry_run(
        "env", "CUDA=11.8", "EXTRAS=a b", "MIRROR=it's", "PREFIX=/x y", "ARGS=-v", "ENVKIT_FALLBACK=never"
    )
    assert done.returncode == 0, done.stderr
    called = done.stdout.splitlines()[-1]
    for words in ("--cuda '11.8'", "--with 'a' --with 'b'", r"--mirror 'it'\''s'", "--prefix '/x y'", "-v"):
        assert words in called


def test_another_make_may_have_variables_of_its_own() -> None:
    assert dry_run("variants", "VERSION=3", MAKELEVEL="1").returncode == 0


def test_the_process_environment_does_not_count() -> None:
    done = dry_run("env", NAME="DESKTOP", PYTHON="/usr/bin/python", EXTRA="x")
    assert done.returncode == 0, done.stderr
    assert "DESKTOP" not in done.stdout
    assert "/usr/bin/python" not in done.stdout.splitlines()[-1]
