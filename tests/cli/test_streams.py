"""The command line on streams that are closed, full, broken or cannot encode, and with no home."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def shell(script: str, *, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run a bash script in which `envkit` is the program under test."""
    return subprocess.run(
        ["bash", "-c", f'envkit() {{ "{sys.executable}" -m envkit "$@"; }}; {script}'],
        cwd=cwd, env={**os.environ, "LANG": "C.UTF-8", "PYTHONPATH": str(ROOT), **environment},
        stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("envkit render --all --stdout >&-", 0),
        ("envkit validate no-such-one >&- 2>&-", 2),
        ("envkit validate no-such-one <&- >&- 2>&-", 2),
        ("envkit --help >&-", 0),
        ("envkit render --all --stdout >/dev/full", 3),
        ("envkit render --all --stdout --json >/dev/full", 3),
        ("envkit --help >/dev/full", 3),
        ("envkit validate no-such-one 2>/dev/full", 2),
        ("envkit validate no-such-one >/dev/full 2>/dev/full", 2),
        ("envkit validate no-such-one --json >/dev/full", 2),
        ("envkit render --all --stdout | true; exit ${PIPESTATUS[0]}", 0),
        ("envkit validate no-such-one 2>&1 >/dev/null | true; exit ${PIPESTATUS[0]}", 2),
    ],
)
def test_streams_that_take_nothing_change_no_exit_code(tmp_path: Path, script: str, code: int) -> None:
    done = shell(script, ENVKIT_HOME=str(tmp_path))
    assert done.returncode == code, done.stderr.decode()
    assert b"Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_json_on_stdout_stays_alone_where_stderr_is_closed(tmp_path: Path) -> None:
    done = shell("envkit validate no-such-one --json 2>&-", ENVKIT_HOME=str(tmp_path))
    assert json.loads(done.stdout)["exit"] == 2


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
def test_json_parses_whatever_name_it_holds(tmp_path: Path, encoding: str) -> None:
    done = shell(
        r"envkit validate $'\xff\xfe中é' --json", ENVKIT_HOME=str(tmp_path), PYTHONIOENCODING=encoding
    )
    assert json.loads(done.stdout.decode(encoding))["exit"] == 2


def test_text_that_the_terminal_cannot_encode_is_printed_all_the_same(tmp_path: Path) -> None:
    done = shell("envkit validate --list --lang zh", ENVKIT_HOME=str(tmp_path), PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr.decode()
    assert b"torch" in done.stdout


def test_control_characters_of_a_stranger_are_shown_and_not_sent(tmp_path: Path) -> None:
    done = shell(r"envkit validate $'\e[31m\rred\u202e'", ENVKIT_HOME=str(tmp_path))
    assert done.returncode == 2
    assert rb"\x1b[31m\rred\u202e" in done.stderr
    assert b"\x1b" not in done.stderr
    assert b"\r" not in done.stderr


@pytest.mark.parametrize("variable", ["ENVKIT_HOME", "ENVKIT_CACHE"])
def test_the_home_of_nobody_is_named(tmp_path: Path, variable: str) -> None:
    verb = "validate no-such-one" if variable == "ENVKIT_HOME" else "lock py311-cpu --fresh --mirror official"
    done = shell(f"export {variable}='~no-such-user/x'; envkit {verb}", ENVKIT_HOME=str(tmp_path))
    assert done.returncode == 2
    assert b"home folder" in done.stderr
    assert b"hint: " in done.stderr


@pytest.mark.parametrize("verb", ["validate", "activate", "remove"])
def test_a_path_in_the_home_of_nobody_is_no_environment(tmp_path: Path, verb: str) -> None:
    done = shell(f"envkit {verb} '~no-such-user/x'", ENVKIT_HOME=str(tmp_path))
    assert done.returncode == 2
    assert b"there is no environment" in done.stderr


def test_a_prefix_that_links_to_itself_is_refused(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    done = shell(f"envkit up --prefix {loop}", ENVKIT_HOME=str(tmp_path / "home"))
    assert done.returncode == 2
    assert b"in a circle" in done.stderr
