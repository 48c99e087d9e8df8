"""Memory limits that are real: shared memory counts against them, and the kernel kills without a word."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from envkit.checks.definition import Job, Where
from envkit.checks.interpreter import Interpreter, run_fresh
from envkit.checks.seat import Seat

MIB = 1 << 20


@pytest.fixture
def limited() -> Iterator[Callable[[int], str]]:
    """`limited(bytes)` is shell that moves its process into a new memory cgroup with that limit."""
    made: list[Path] = []
    version_2 = Path("/sys/fs/cgroup/cgroup.controllers")
    top = Path("/sys/fs/cgroup") if version_2.exists() else Path("/sys/fs/cgroup/memory")
    name = "memory.max" if version_2.exists() else "memory.limit_in_bytes"

    def into(limit: int) -> str:
        group = top / f"envkit-test-{os.getpid()}-{len(made)}"
        try:
            group.mkdir()
            made.append(group)
            (group / name).write_text(str(limit))
        except OSError as problem:
            pytest.skip(f"no memory cgroup can be made here: {problem}")
        return f"echo $$ > {group}/cgroup.procs"

    yield into
    for group in made:
        group.rmdir()


def test_a_limit_below_the_size_of_shared_memory_is_the_bound(
    limited: Callable[[int], str], validate_in_child: Callable[..., dict[str, Any]]
) -> None:
    report = validate_in_child(Path(sys.executable), "--only=shm", before=limited(300 * MIB))
    checks = {check["id"]: check for check in report["checks"]}
    capacity = checks["shm.capacity"]
    # Half of what the limit leaves was tried at most, so nothing was killed in finding out.
    assert capacity["status"] in ("ok", "warn"), capacity
    assert "memory limit of this container" in capacity["summary"]
    assert capacity["data"]["allocated"] <= 150 * MIB
    assert capacity["data"]["cgroup_left"] <= 300 * MIB


def test_a_job_that_the_kernel_kills_for_memory_is_told_from_one_killed_by_hand(
    limited: Callable[[int], str], tmp_path: Path
) -> None:
    done = subprocess.run(
        ["bash", "-c", f'{limited(120 * MIB)} && exec "{sys.executable}" "{__file__}" "{tmp_path}"'],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["SIGKILL", "True", "SIGKILL", "False"], done.stderr


def _both(folder: Path) -> None:
    (folder / "greedy.py").write_text("def probe(emit):\n    taken = bytearray(1 << 30)\n")
    (folder / "killed.py").write_text("def probe(emit):\n    import os\n    os.kill(os.getpid(), 9)\n")
    seat = Seat(python=Path(sys.executable), variables=dict(os.environ), folder=folder)
    with Interpreter(seat) as interpreter:
        interpreter.start()
        for name in ("greedy", "killed"):
            job = Job(id=name, call=f"{folder}/{name}.py:probe", where=Where.FRESH, limit=20)
            outcome = run_fresh(seat, job)
            print(outcome.signal, outcome.out_of_memory)


if __name__ == "__main__":
    _both(Path(sys.argv[1]))
