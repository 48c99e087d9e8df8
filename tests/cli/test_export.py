"""envkit export, from the command line."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from envkit.cli.export import KINDS
from envkit.cli.frame import execute
from envkit.lock.formats import read_spec

ROOT = Path(__file__).parents[2]
LOCK = next(ROOT.glob("environments/py311-cu118/conda-lock.yml"))


@pytest.mark.parametrize(
    ("kind", "first"),
    [
        ("explicit", "# This file may be used"),
        ("pixi", "version: 6"),
        ("environment", "# Every package of the lock for linux-64"),
    ],
)
def test_a_lock_is_printed_or_written(
    kind: str, first: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert execute(["export", kind, "py311-cu118"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(first)
    target = tmp_path / "out" / "file"
    assert execute(["export", kind, str(LOCK), "-o", str(target), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["result"] == {"kind": kind, "path": str(target)}
    assert target.read_text() == printed


def test_old_condas_get_md5(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert execute(["export", "explicit", str(LOCK), "--hash", "md5"]) == 0
    path = tmp_path / "e.txt"
    path.write_text(capsys.readouterr().out)
    assert all(package.md5 and not package.sha256 for package in read_spec(path).pinned)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["explicit", "nowhere.yml"], "there is no such file"),
        (["explicit", str(LOCK), "--platform", "win-64"], "no packages for win-64"),
        (["requirements", str(LOCK)], "no pip packages"),
        (["tarball", str(LOCK)], "tarball"),
    ],
)
def test_what_cannot_be_exported(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["export", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_every_kind_says_what_it_is() -> None:
    assert all(kind.help for kind in KINDS.values())


def test_a_pipe_is_written_to_and_stays_one(tmp_path: Path) -> None:
    fifo = tmp_path / "out"
    os.mkfifo(fifo)
    reading = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert execute(["export", "explicit", str(LOCK), "-o", str(fifo), "-q"]) == 0
        assert os.read(reading, 1 << 16).startswith(b"# This file may be used")
        assert fifo.is_fifo()
    finally:
        os.close(reading)


def test_a_full_device_is_told_and_stays_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["export", "explicit", str(LOCK), "-o", "/dev/full"]) == 3
    assert "/dev/full" in capsys.readouterr().err
    assert Path("/dev/full").is_char_device()


def test_a_folder_is_exported_like_the_lock_in_it(capsys: pytest.CaptureFixture[str]) -> None:
    folder = ROOT / "environments" / "py311-cpu"
    assert execute(["export", "explicit", str(folder), "--platform", "linux-64"]) == 0
    told = capsys.readouterr().out
    assert execute(["export", "explicit", str(folder / "conda-lock.yml"), "--platform", "linux-64"]) == 0
    assert told == capsys.readouterr().out


def test_a_file_that_something_else_made_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    own = tmp_path / ".condarc"
    own.write_text("channels: [mine]\n")
    for kind in ("condarc", "pip-conf", "environment"):
        source = [] if KINDS[kind].of_mirrors else [str(LOCK)]
        assert execute(["export", kind, *source, "-o", str(own)]) == 2
        assert own.read_text() == "channels: [mine]\n"
        assert "`-o`" in capsys.readouterr().err
    made = tmp_path / "made"
    made.touch()
    assert execute(["export", "condarc", "-o", str(made)]) == 0
    assert execute(["export", "condarc", "-o", str(made)]) == 0
    assert execute(["export", "condarc", "--mirror", "tuna", "-o", str(made)]) == 2


@pytest.mark.parametrize("kind", ["explicit", "pixi", "environment"])
def test_an_older_export_is_replaced(kind: str, tmp_path: Path) -> None:
    made = tmp_path / "made"
    assert execute(["export", kind, str(LOCK), "-o", str(made)]) == 0
    whole = made.read_text()
    made.write_text(whole[: len(whole) // 2])
    assert execute(["export", kind, str(LOCK), "-o", str(made)]) == 0
    assert made.read_text() == whole
