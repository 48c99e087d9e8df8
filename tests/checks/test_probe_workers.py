"""Workers of a rehearsal do not outlive it, also when it is killed outright."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

PROBE = Path(__file__).parents[2] / "envkit" / "probe"

# As the probe's own door does it: its files are the package `envkit_probe`.
LEADER = f"""
import multiprocessing, os, sys, time, types
package = types.ModuleType("envkit_probe")
package.__path__ = [{str(PROBE)!r}]
sys.modules["envkit_probe"] = package
from envkit_probe.rehearsal import follow

def work(leader):
    follow(leader, 0)
    print(os.getpid(), flush=True)
    time.sleep(60)

multiprocessing.get_context("fork").Process(target=work, args=(os.getpid(),)).start()
time.sleep(60)
"""


def test_a_worker_ends_after_its_leader_was_killed() -> None:
    leader = subprocess.Popen([sys.executable, "-c", LEADER], stdout=subprocess.PIPE, text=True)
    assert leader.stdout is not None
    worker = Path("/proc") / leader.stdout.readline().strip()
    time.sleep(2.5)
    assert worker.exists(), "while its leader lives it stays"
    leader.kill()
    leader.wait(timeout=20)
    deadline = time.monotonic() + 20
    while worker.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not worker.exists()
