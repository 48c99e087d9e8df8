"""Which shell a call came from, and hints that run as they are pasted."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from envkit.cli.invocation import shell_in_use, typed, worded
from envkit.model import Check, Report, Severity, Status


def process(proc: Path, number: int, name: str, parent: int) -> None:
    (proc / str(number)).mkdir()
    (proc / str(number) / "stat").write_text(f"{number} ({name}) S {parent} 1 1 0 -1")


@pytest.mark.parametrize(
    ("above", "login", "expected"),
    [
        (["fish"], "/bin/bash", "fish"),
        (["make", "fish"], "/bin/bash", "fish"),
        (["sh", "make", "zsh"], "/usr/bin/fish", "zsh"),
        (["python3", "fish"], "/bin/bash", "bash"),
        (["a (b) c"], "/bin/zsh", "zsh"),
        (["sshd"], "/bin/ksh", "posix"),
        (["sshd"], "", "bash"),
    ],
)
def test_the_shell_above_counts_before_the_login_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, above: list[str], login: str, expected: str
) -> None:
    monkeypatch.setenv("SHELL", login)
    for number, name in enumerate(above, start=10):
        process(tmp_path, number, name, number + 1)
    assert shell_in_use(proc=tmp_path, parent=10) == expected


def test_the_login_shell_counts_where_proc_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHELL", "/usr/bin/fish")
    assert shell_in_use(proc=tmp_path, parent=10) == "fish"


def envkit(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "envkit", *arguments],
        cwd=cwd, env={**os.environ, "LANG": "C.UTF-8"},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def test_a_command_in_a_hint_can_be_pasted(tmp_path: Path) -> None:
    hint = envkit("no-such-verb", cwd=tmp_path).stderr.splitlines()[-1]
    command = hint.split("`")[1]
    pasted = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert pasted.returncode == 0, pasted.stderr
    assert "activate" in pasted.stdout


def test_envkit_alone_shows_its_help(tmp_path: Path) -> None:
    done = envkit(cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout == envkit("--help", cwd=tmp_path).stdout


@pytest.mark.parametrize(
    ("text", "by_make"),
    [
        ("run `envkit up --cuda 11.8` now", "run `make env CUDA=11.8` now"),
        ("`envkit lock py311-cpu`", "`make lock NAME=py311-cpu`"),
        ("`envkit lock py311-cpu --fresh`", "`make lock NAME=py311-cpu ARGS=--fresh`"),
        ("`envkit lock x --update numpy`", "`make lock NAME=x ARGS='--update numpy'`"),
        ("`ENVKIT_FALLBACK=never envkit up`", "`ENVKIT_FALLBACK=never make env`"),
        (
            "choose `--torch` within >=2 or `--mirror nju,tuna`",
            "choose `TORCH=` within >=2 or `MIRROR=nju,tuna`",
        ),
        ("write `torch=2.4` or `-o FILE`", "write `torch=2.4` or `-o FILE`"),
    ],
)
def test_a_hint_speaks_as_the_call_did(monkeypatch: pytest.MonkeyPatch, text: str, by_make: str) -> None:
    monkeypatch.setattr(sys, "argv", ["bin/envkit"])
    monkeypatch.delenv("ENVKIT_DOOR", raising=False)
    assert worded(text) == text.replace("envkit ", "bin/envkit ")
    monkeypatch.setenv("ENVKIT_DOOR", "make")
    assert worded(text) == by_make


def test_what_make_cannot_do_stays_a_call_of_envkit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["bin/envkit"])
    monkeypatch.setenv("ENVKIT_DOOR", "make")
    for rest in ("lock --file x.yml --cuda 12.4", "diff", "--help"):
        assert worded(f"`envkit {rest}`") == f"`bin/envkit {rest}`"


def test_the_makefile_says_which_door_it_is() -> None:
    makefile = (Path(__file__).parents[2] / "Makefile").read_text()
    assert "export ENVKIT_DOOR = make" in makefile


def test_no_text_speaks_of_the_variables_of_make() -> None:
    sources = (Path(__file__).parents[2] / "envkit").rglob("*.py")
    found = [
        f"{path.name}: {match.group()}"
        for path in sources
        for match in re.finditer(
            r"\b(?:PYTHON|TORCH|SOURCE|MIRROR|EXTRAS|NAME|PREFIX|LOCK)=[\w{\"` ),]", path.read_text()
        )
        if "probe" not in path.parts and path.name not in ("render.py", "invocation.py")
    ]
    assert found == []


def test_the_hint_of_a_check_is_put_in_words_before_it_is_wrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    check = Check(
        id="x", status=Status.FAIL, severity=Severity.HIGH, summary="", hint="run `envkit variants`"
    )
    monkeypatch.setenv("ENVKIT_DOOR", "make")
    assert typed(Report(subject="y", checks=(check,))).checks[0].hint == "run `make variants`"
