"""Removing: what uses an environment is named, and a removal that was killed is finished by the next."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from envkit.errors import Error, InputError
from envkit.install import remove
from envkit.install.remove import removable

KILLED = """
import os, shutil, signal, sys
from envkit.install import read_environment, remove, stage
def killed(folder, **_options):
    # Half of it is deleted when the kill comes.
    shutil.rmtree(folder / "share")
    os.kill(os.getpid(), signal.SIGKILL)
stage.remove_tree = killed
remove(read_environment(sys.argv[1]))
"""
RUNNING = """
import sys
from envkit.install import read_environment, run
sys.exit(run(read_environment(sys.argv[1]), ["sh", "-c", "echo begun; read line; echo $line"]))
"""


def test_a_killed_removal_is_finished_by_the_next(environment, installer):
    done = subprocess.run([sys.executable, "-c", KILLED, str(environment.prefix)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert not environment.prefix.exists()
    assert len(installer.beside()) == 2
    remove(removable("tiny"))
    assert installer.beside() == []
    with pytest.raises(InputError, match="no environment"):
        removable("tiny")


def test_a_removal_killed_at_any_time_is_finished_by_the_next(channel, installer):
    lock = channel.lock()
    for delay in (0.0, 0.005, 0.01, 0.02, 0.04):
        environment = installer(lock)
        code = "import sys\nfrom envkit.install import read_environment, remove\n"
        code += "found = read_environment(sys.argv[1])\nprint('begin', flush=True)\nremove(found)\n"
        child = subprocess.Popen(
            [sys.executable, "-c", code, str(environment.prefix)], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(delay)
        child.kill()
        child.communicate()
        if environment.prefix.exists() or installer.beside():
            remove(removable("tiny"))
        assert not environment.prefix.exists()
        assert installer.beside() == []


def test_a_damaged_environment_can_be_removed(environment, installer):
    (environment.prefix / "conda-meta" / "envkit").write_text("{")
    remove(removable("tiny"))
    assert not environment.prefix.exists()


def test_what_is_none_is_not_removed(installer, tmp_path):
    folder = tmp_path / "envs" / "mine"
    folder.mkdir(parents=True)
    (folder / "file").touch()
    with pytest.raises(InputError):
        removable("mine")
    assert (folder / "file").exists()


def test_what_runs_in_it_is_named_though_it_is_a_shell_script(environment, tree_hash):
    before = tree_hash(environment.prefix)
    child = subprocess.Popen(
        [sys.executable, "-c", RUNNING, str(environment.prefix)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert child.stdout is not None
    assert child.stdout.readline() == "begun\n"
    with pytest.raises(Error, match=f"in use by process {child.pid}"):
        remove(environment)
    assert tree_hash(environment.prefix) == before
    assert child.communicate("end\n")[0] == "end\n"
    assert child.returncode == 0
    remove(environment)
    assert not environment.prefix.exists()


def test_a_folder_that_cannot_be_written_to(environment, installer):
    if os.geteuid() == 0:
        pytest.skip("root writes everywhere")
    Path(environment.prefix.parent).chmod(0o500)
    try:
        with pytest.raises(Error):
            remove(environment)
    finally:
        environment.prefix.parent.chmod(0o700)
    assert environment.prefix.exists()


def test_what_is_not_there_lists_what_is(environment):
    damaged = environment.prefix.with_name("damaged") / "conda-meta"
    damaged.mkdir(parents=True)
    (damaged / "envkit").write_text("{")
    for name in ("nothing", ""):
        with pytest.raises(InputError) as failed:
            removable(name)
        assert "there are: damaged, tiny" in failed.value.hint
