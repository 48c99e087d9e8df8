"""Killed, interrupted, out of space, two at once: the old environment or the new one, never a mixture."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from envkit.errors import Error
from envkit.install import read_environment
from envkit.install import stage as stages
from envkit.install.hold import hold
from envkit.progress import SILENT


def start(command, **options):
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)
    assert process.stdout.readline() == "begin\n"
    return process


def duration(installer, lock):
    began = time.monotonic()
    process = start(installer.command(lock))
    process.communicate(timeout=60)
    assert process.returncode == 0
    return time.monotonic() - began


def test_control_c_cleans_up(channel, installer):
    lock = channel.lock()
    whole = duration(installer, lock)
    codes = []
    for moment in range(5):
        shutil.rmtree(installer.prefix)
        process = start(installer.command(lock))
        time.sleep(whole * moment / 6)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
        codes.append(process.returncode)
        assert installer.beside() == []
        if process.returncode == 130:
            installer(lock)
    assert 130 in codes
    assert set(codes) <= {0, 130}


def test_two_at_once(channel, installer, tree_hash):
    lock = channel.lock()
    expected = tree_hash(installer(lock).prefix)
    shutil.rmtree(installer.prefix)
    command = installer.command(lock)
    with hold(installer.prefix, SILENT):  # so that all three come while another works on it
        three = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
        for process in three:
            heard = [process.stdout.readline() for _line in ("begin", "waiting")]
            assert "waiting for another envkit process" in heard[1]
    said = [process.communicate(timeout=60)[0] for process in three]
    assert [process.returncode for process in three] == [0, 0, 0], said
    assert tree_hash(installer.prefix) == expected
    assert installer.beside() == []


def _left_by_a_dead_process(prefix, **parts):
    """A stage of a process that has ended, as a kill leaves it."""
    ended = subprocess.Popen(["true"])
    ended.wait()
    folder = prefix.parent / f".{prefix.name}.envkit-stage-{ended.pid}"
    folder.mkdir(parents=True)
    owner = {"schema": 1, "prefix": str(prefix), **stages._identity(os.getpid()), "pid": ended.pid}
    (folder / "owner.json").write_text(json.dumps(owner))
    for name, tree in parts.items():
        Path(tree).rename(folder / name)
    return folder


def test_killed_between_the_two_renames(channel, installer, tree_hash):
    """Only where the file system cannot exchange: the old environment comes back."""
    prefix = installer(channel.lock(*channel.packages[:2])).prefix
    before = tree_hash(prefix)
    folder = _left_by_a_dead_process(prefix, old=prefix)
    with pytest.raises(Error, match="half-made") as caught:
        read_environment("tiny")
    assert "again" in caught.value.hint
    stages.recover(prefix, SILENT)
    assert tree_hash(prefix) == before
    assert not folder.exists()
    assert installer(channel.lock()).prefix == prefix


def test_stages_of_others_stay(channel, installer):
    parent = installer.prefix.parent
    parent.mkdir(parents=True)
    strangers = {
        f".tiny.envkit-stage-{os.getppid()}": {"pid": os.getppid(), **stages._identity(os.getppid())},
        ".tiny.envkit-stage-4194000": None,
        ".tinyx.envkit-stage-4194001": {"pid": 4194001},
    }
    for name, owner in strangers.items():
        (parent / name / "prefix").mkdir(parents=True)
        if owner:
            text = json.dumps({"schema": 1, "prefix": str(installer.prefix), **owner})
            (parent / name / "owner.json").write_text(text)
    installer(channel.lock())
    assert installer.beside() == sorted(strangers)


def test_read_only_folders_of_an_old_environment_go_too(channel, installer):
    installer(channel.lock())
    (installer.prefix / "share").chmod(0o500)
    installer(channel.lock())
    assert installer.beside() == []


def test_a_folder_under_the_name_of_our_stage_is_not_ours(channel, installer):
    stranger = installer.prefix.parent / f".tiny.envkit-stage-{os.getpid()}"
    (stranger / "data").mkdir(parents=True)
    with pytest.raises(Error, match="File exists"):
        installer(channel.lock())
    assert (stranger / "data").is_dir()


def test_without_exchange_two_renames_do(channel, installer, monkeypatch):
    monkeypatch.setattr("envkit.install.commit.exchange", lambda one, other: False)
    installer(channel.lock())
    made = installer(channel.lock(*channel.packages[:1]))
    assert not (made.prefix / "bin" / "greet").exists()
    assert installer.beside() == []
