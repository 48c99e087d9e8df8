"""Killed after the commit: the environment is current, and what lies beside it goes all the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from envkit.errors import Error
from envkit.install import tidy
from envkit.install.hold import hold
from envkit.install.stage import staged
from envkit.progress import SILENT

KILLED = """
import os, signal, sys
from pathlib import Path
from envkit.install.hold import hold
from envkit.install.stage import staged
from envkit.progress import SILENT
prefix = Path(sys.argv[1])
with hold(prefix, SILENT), staged(prefix, SILENT) as stage:
    stage.prefix.mkdir()
    (stage.prefix / "old.txt").write_text("of the old environment")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_dead_process_left_goes_and_the_environment_stays(environment, installer, tree_hash):
    before = tree_hash(environment.prefix)
    done = subprocess.run([sys.executable, "-c", KILLED, str(environment.prefix)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(installer.beside()) == 2
    tidy(environment.prefix)
    assert installer.beside() == []
    assert tree_hash(environment.prefix) == before


def test_what_a_living_process_works_in_stays(environment, installer):
    child = subprocess.Popen(
        [sys.executable, "-c", KILLED.replace("SIGKILL", "SIGSTOP"), str(environment.prefix)]
    )
    try:
        os.waitpid(child.pid, os.WUNTRACED)
        beside = installer.beside()
        tidy(environment.prefix)
        assert installer.beside() == beside
        assert len(beside) == 2
    finally:
        child.kill()
        child.wait()


def test_nothing_is_made_where_there_is_nothing_to_do(environment, installer):
    folder = environment.prefix.parent
    changed = folder.stat().st_mtime_ns
    tidy(environment.prefix)
    assert folder.stat().st_mtime_ns == changed
    with staged(environment.prefix, SILENT):
        assert len(installer.beside()) == 1


def test_a_planted_link_is_no_lock(tmp_path):
    (tmp_path / ".e.envkit-lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Error, match="envkit-lock"), hold(tmp_path / "e", SILENT):
        pass
    assert not (tmp_path / "elsewhere").exists()
