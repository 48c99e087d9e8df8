"""Killed without warning, `up` run again ends where an undisturbed run does. With the real wheel channel."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import time

import pytest
from small_project import PY, Project
from test_up_path import tree

MOMENTS = (
    ("pip resolves", r"", 6.0),
    ("wheels are packed", r"\d+ wheels: ", 15.0),
    ("packages are linked", r"packages fetched: ", 3.0),
)
"""What goes on, the line on stderr that says so (none: the start), and for about how many seconds."""


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.timeout(900)
def test_killed_at_random_moments_then_run_to_the_end(bare: Project) -> None:
    bare.environ |= {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    bare.environ["ENVKIT_MIRROR"] = "wheels"
    name = f"wheels-{PY}-cpu"
    done = bare.call("up", "--json")
    assert done.code == 0, done.err
    undisturbed = tree(bare.prefix(name))
    shutil.rmtree(bare.home)

    dice = random.Random(2)
    for what, line, seconds in MOMENTS:
        kill_during(bare, line, dice.uniform(0, seconds), what)
    done = bare.call("up", "--json")
    assert done.code == 0, done.err
    assert done.result["report"]["ok"]
    assert tree(bare.prefix(name)) == undisturbed  # but for bytecode, which importing it writes
    assert bare.names == [name], "no stage is left behind"
    assert not bare.ok("up")["installed"]


def kill_during(project: Project, line: str, delay: float, what: str) -> None:
    """Start `up`, wait for a line that matches and `delay` seconds more, and SIGKILL its process group."""
    with project.start("up", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as child:
        assert child.stderr is not None
        if line:
            heard = next((said for said in child.stderr if re.match(line, said)), None)
            assert heard is not None, f"it never came so far that {what}"
        time.sleep(delay)
        assert child.poll() is None, f"it ended before it could be killed while {what}"
        os.killpg(child.pid, signal.SIGKILL)
    assert child.returncode == -signal.SIGKILL
