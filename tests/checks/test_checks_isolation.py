"""Whatever a job does to itself, it does to nobody else, and each thing it may do is told apart."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from envkit.checks import leftovers
from envkit.checks.definition import Job, Where
from envkit.checks.ending import tell
from envkit.checks.interpreter import Interpreter, run_fresh
from envkit.checks.outcome import Outcome
from envkit.checks.seat import Seat
from envkit.model import Status

Run = Callable[[Job], Outcome]
MakeJob = Callable[..., Job]


@pytest.fixture(params=[Where.FRESH, Where.WARM], ids=["fresh", "forked"])
def run(request: pytest.FixtureRequest, seat: Seat) -> Iterator[Run]:
    """Runs a job in an interpreter of its own, or in a fork of one that stays."""
    if request.param is Where.FRESH:
        yield lambda job: run_fresh(seat, job)
        return
    with Interpreter(seat) as interpreter:
        assert interpreter.start().ended_well
        yield lambda job: interpreter.run(replace(job, where=Where.WARM))


def _gone(pid: int) -> bool:
    for _attempt in range(100):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


def test_gives_data_past_noise_on_stdout_and_stderr(run: Run, job: MakeJob) -> None:
    outcome = run(
        job(
            """
            import os, sys
            print("noise", flush=True)
            os.write(1, b"raw noise \\xff\\n")
            sys.stderr.write("complaint\\n")
            emit("a.one", {"x": 1})
            emit("a.two", {"x": args["given"]})
            """,
            args={"given": [1, "二"]},
        )
    )
    assert outcome.ended_well
    assert {name: dict(part.data) for name, part in outcome.parts.items()} == {
        "a.one": {"x": 1},
        "a.two": {"x": [1, "二"]},
    }
    assert "raw noise" in outcome.output
    assert "complaint" in outcome.output


def test_garbage_on_the_result_pipe_is_no_result(run: Run, job: MakeJob) -> None:
    outcome = run(
        job(
            """
            import os
            os.write(emit._channel._descriptor, b'garbage\\n[1]\\n{"kind": 3}\\n\\xff\\xfe\\n')
            emit("a.one", {"x": 1})
            """
        )
    )
    assert outcome.ended_well
    assert list(outcome.parts) == ["a.one"]


def test_an_exception_comes_with_what_caused_it(run: Run, job: MakeJob) -> None:
    outcome = run(
        job(
            """
            emit.at("the trying part")
            try:
                try:
                    raise OSError(28, "No space left on device")
                except OSError as first:
                    raise RuntimeError("DataLoader worker (pid 7) is killed by signal: Bus error. ")
            except RuntimeError:
                raise RuntimeError("DataLoader worker (pid(s) 7) exited unexpectedly") from None
            """
        )
    )
    assert [link.type for link in outcome.chain] == ["RuntimeError", "RuntimeError", "OSError"]
    assert outcome.done and outcome.code == 1
    told = tell(outcome)
    assert told.status is Status.FAIL
    assert "killed by signal: Bus error" in told.summary
    assert "--shm-size" in told.hint


def test_a_worker_traceback_is_read_from_its_end(run: Run, job: MakeJob) -> None:
    outcome = run(
        job(
            """
            raise RuntimeError(
                "Caught ValueError in DataLoader worker process 0.\\n"
                "Original Traceback (most recent call last):\\n"
                '  File "x.py", line 1, in <module>\\n'
                "ValueError: the decisive line\\n"
            )
            """
        )
    )
    assert tell(outcome).summary == "ValueError: the decisive line"


def test_a_mistake_of_the_probe_is_a_crash_of_the_check(seat: Seat) -> None:
    outcome = run_fresh(
        seat, Job(id="x", call="shm:capacity", where=Where.FRESH, limit=10, args={"need": "x"})
    )
    assert tell(outcome).status is Status.CRASH


def test_a_hang_is_ended_at_its_limit_and_shows_where_it_hung(run: Run, job: MakeJob) -> None:
    start = time.monotonic()
    outcome = run(
        job(
            """
            import time
            emit("a.one", {})
            emit.at("the part that hangs")
            def in_here():
                while True:
                    time.sleep(60)
            in_here()
            """,
            limit=1,
        )
    )
    assert time.monotonic() - start < 5
    assert outcome.timed_out and not outcome.done
    assert "in_here" in outcome.output
    assert "a.one" in outcome.parts
    told = tell(outcome)
    assert "the part that hangs" in told.summary


def test_a_hang_that_ignores_signals_is_ended_too(run: Run, job: MakeJob) -> None:
    outcome = run(
        job(
            """
            import signal, time
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            time.sleep(60)
            """,
            limit=1,
        )
    )
    assert outcome.timed_out


def test_a_hang_at_exit_is_not_mistaken_for_one_at_work(run: Run, job: MakeJob) -> None:
    outcome = run(
        job(
            """
            import threading, time
            emit("a.one", {})
            threading.Thread(target=time.sleep, args=(60,)).start()
            """,
            limit=1,
        )
    )
    assert outcome.timed_out and outcome.done
    assert "had not exited" in tell(outcome).summary


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGBUS", "SIGABRT", "SIGKILL", "SIGTERM"])
def test_a_signal_is_named(run: Run, job: MakeJob, name: str) -> None:
    number = int(getattr(signal, name))
    outcome = run(job(f"emit.at('crashing')\nimport os, time\nos.kill(os.getpid(), {number})\ntime.sleep(5)"))
    assert outcome.signal == name
    assert not outcome.timed_out and not outcome.done
    told = tell(outcome)
    assert told.status is Status.FAIL
    assert "crashing" in told.summary
    assert name in told.summary or name == "SIGKILL"


def test_an_early_exit_is_not_taken_for_success(run: Run, job: MakeJob) -> None:
    outcome = run(job("import os\nos._exit(0)"))
    assert outcome.code == 0 and not outcome.done
    assert "ended early" in tell(outcome).summary


def test_sys_exit_is_told(run: Run, job: MakeJob) -> None:
    outcome = run(job("import sys\nsys.exit('went away')"))
    assert "went away" in tell(outcome).summary


def test_children_left_behind_are_ended(run: Run, job: MakeJob) -> None:
    outcome = run(
        job(
            """
            import os, subprocess, sys
            child = subprocess.Popen(["sleep", "100"])
            grandchild = subprocess.Popen(["sh", "-c", "sleep 100 & echo $!"], stdout=subprocess.PIPE)
            emit("a.one", {"pids": [child.pid, int(grandchild.stdout.readline())]})
            """
        )
    )
    assert outcome.ended_well
    for pid in outcome.parts["a.one"].data["pids"]:
        assert _gone(pid)


def test_an_orphan_that_holds_the_pipe_does_not_hold_up_the_run(run: Run, job: MakeJob) -> None:
    start = time.monotonic()
    outcome = run(
        job(
            """
            import os, subprocess
            fd = emit._channel._descriptor
            os.set_inheritable(fd, True)
            subprocess.Popen(["sleep", "100"], pass_fds=[fd])
            emit("a.one", {})
            """,
            limit=30,
        )
    )
    assert outcome.ended_well
    assert time.monotonic() - start < 10


def test_leads_its_own_group_and_is_the_first_to_go(run: Run, job: MakeJob) -> None:
    outcome = run(
        job(
            """
            import os
            with open("/proc/self/oom_score_adj") as file:
                score = int(file.read())
            emit("a.one", {"group": os.getpgrp(), "score": score, "stdin": os.read(0, 1) == b""})
            """
        )
    )
    data = outcome.parts["a.one"].data
    assert data["group"] != os.getpgrp()
    assert data["score"] == 500
    assert data["stdin"] is True


def test_semaphores_and_folders_of_a_killed_job_are_removed(run: Run, job: MakeJob, seat: Seat) -> None:
    before = leftovers.shared_memory()
    outcome = run(
        job(
            f"""
            import multiprocessing, os, signal
            from multiprocessing import process, util
            process.current_process()._config["semprefix"] = "/{seat.token}"
            emit.owns(util.get_temp_dir())
            lock = multiprocessing.get_context("spawn").Lock()
            os.mkdir(os.path.join(util.get_temp_dir(), "inside"))
            with open("/dev/shm/torch_%d_1_0" % os.getpid(), "wb") as file:
                file.write(b"x")
            emit("a.one", {{"folder": util.get_temp_dir(), "pid": os.getpid()}})
            os.kill(os.getpid(), signal.SIGKILL)
            """
        )
    )
    folder = Path(outcome.parts["a.one"].data["folder"])
    torch_file = Path(f"/dev/shm/torch_{outcome.parts['a.one'].data['pid']}_1_0")
    assert folder.is_dir() and torch_file.exists()
    removed = leftovers.clear(before, seat.token, seat.owned)
    assert {str(folder), str(torch_file)} <= set(removed)
    assert not folder.exists() and not torch_file.exists()
    assert not [name for name in leftovers.shared_memory() - before if seat.token in name]


def test_what_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    shm = tmp_path / "shm"
    shm.mkdir()
    for name in ("sem.mp-abcdefgh", "psm_1234", f"torch_{os.getpid()}_1_0", "nccl-1", "torch_999999999_9_9"):
        (shm / name).write_bytes(b"x")
    precious = tmp_path / "precious"
    precious.mkdir()
    link = tmp_path / "pymp-link"
    link.symlink_to(precious)
    removed = leftovers.clear(frozenset(), "envkit-0", [str(precious), str(link)], shm)
    # The maker of the last one is dead (no process has so high a number), and the link is no folder.
    assert removed == (str(shm / "torch_999999999_9_9"), str(link))
    assert precious.is_dir()
    assert len(list(shm.iterdir())) == 4


def test_after_the_interpreter_is_killed_the_next_job_says_so(seat: Seat, job: MakeJob) -> None:
    with Interpreter(seat) as interpreter:
        assert interpreter.start().ended_well
        killed = interpreter.run(
            job("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)", where=Where.HERE)
        )
        assert killed.signal == "SIGSEGV"
        after = interpreter.run(job("emit('a.one', {})", where=Where.WARM))
    assert after.not_started
    assert not after.parts


def test_what_is_imported_here_is_there_in_later_forks(seat: Seat, job: MakeJob) -> None:
    with Interpreter(seat) as interpreter:
        interpreter.start()
        interpreter.run(job("import colorsys", where=Where.HERE))
        look = "import sys\nemit('a.one', {'there': 'colorsys' in sys.modules})"
        assert interpreter.run(job(look, where=Where.WARM)).parts["a.one"].data["there"] is True
    assert run_fresh(seat, job(look)).parts["a.one"].data["there"] is False


def test_the_probe_adds_nothing_to_the_path(seat: Seat, job: MakeJob) -> None:
    outcome = run_fresh(seat, job("import sys\nemit('a.one', {'path': sys.path})"))
    assert not [part for part in outcome.parts["a.one"].data["path"] if part.rstrip("/").endswith("probe")]
