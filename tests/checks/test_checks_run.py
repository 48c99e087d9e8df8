"""A run over small catalogues: what depends on what, what crashes alone, what an interrupt leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from envkit.checks import Target, validate
from envkit.checks.definition import CheckInfo, Context, Job, Verdict, Where, skip
from envkit.model import Check, Severity, Status
from envkit.progress import Observer

MakeJob = Callable[..., Job]
MakeInfo = Callable[..., CheckInfo]
ME = Target(python=Path(sys.executable))


def run(*catalogue: CheckInfo, **more: Any) -> dict[str, Check]:
    return {check.id: check for check in validate(ME, catalogue=catalogue, **more).checks}


def test_one_failure_stops_only_what_needs_it(job: MakeJob, info: MakeInfo) -> None:
    checks = run(
        info("a.good", job("emit('a.good', {})", where=Where.BARE)),
        info("a.bad", job("raise OSError(5, 'broken')", where=Where.WARM)),
        info("b.needs-bad", job("emit('b.needs-bad', {})"), needs=("a.bad",)),
        info("b.needs-good", job("emit('b.needs-good', {})"), needs=("a.good",)),
        info("c.needs-skipped", job("emit('c.needs-skipped', {})"), needs=("b.needs-bad",)),
    )
    assert {id: check.status.value for id, check in checks.items()} == {
        "a.good": "ok",
        "a.bad": "fail",
        "b.needs-bad": "skip",
        "b.needs-good": "ok",
        "c.needs-skipped": "skip",
    }
    assert checks["b.needs-bad"].summary == "not run: a.bad failed"
    assert checks["c.needs-skipped"].summary == "not run: a.bad failed"
    assert list(checks) == ["a.good", "a.bad", "b.needs-bad", "b.needs-good", "c.needs-skipped"]


def test_a_judge_that_crashes_is_a_result(job: MakeJob, info: MakeInfo) -> None:
    def judge(data: Any, context: Context) -> Verdict:
        raise KeyError("gone")

    broken = info("a.broken", job("emit('a.broken', {})"))
    broken = CheckInfo(
        id=broken.id,
        job=broken.job,
        severity=Severity.FATAL,
        source=broken.source,
        words=broken.words,
        judge=judge,
    )
    checks = run(broken, info("b.good", job("emit('b.good', {})")))
    assert checks["a.broken"].status is Status.CRASH
    assert "KeyError" in checks["a.broken"].summary
    assert checks["b.good"].status is Status.OK


def test_a_part_that_came_through_is_not_spoilt_by_the_next(job: MakeJob, info: MakeInfo) -> None:
    both = job("emit('a.one', {})\nimport os\nos.kill(os.getpid(), 11)")
    checks = run(info("a.one", both), info("a.two", both, needs=("a.one",)))
    assert checks["a.one"].status is Status.OK
    assert checks["a.two"].status is Status.FAIL
    assert "SIGSEGV" in checks["a.two"].summary


def test_data_and_then_a_crash_at_exit_is_a_failure(job: MakeJob, info: MakeInfo) -> None:
    at_exit = "emit('a.one', {'x': 1})\nimport atexit, os\natexit.register(os.kill, os.getpid(), 6)"
    checks = run(info("a.one", job(at_exit)))
    assert checks["a.one"].status is Status.FAIL
    assert "SIGABRT" in checks["a.one"].summary and "at exit" in checks["a.one"].summary
    assert dict(checks["a.one"].data) == {"x": 1}


def test_a_crash_of_the_shared_interpreter_skips_its_dependants(job: MakeJob, info: MakeInfo) -> None:
    checks = run(
        info("a.import", job("import os\nos.kill(os.getpid(), 11)", where=Where.HERE)),
        info("b.warm", job("emit('b.warm', {})", where=Where.WARM), needs=("a.import",)),
        info("c.fresh", job("emit('c.fresh', {})")),
    )
    assert checks["a.import"].status is Status.FAIL and "SIGSEGV" in checks["a.import"].summary
    assert checks["b.warm"].status is Status.SKIP
    assert checks["c.fresh"].status is Status.OK


def test_spared_checks_run_nothing(job: MakeJob, info: MakeInfo, tmp_path: Path) -> None:
    touch = job(f"open({str(tmp_path / 'ran')!r}, 'w')")
    checks = run(info("a.spared", touch, spared=lambda context: skip("no need")))
    assert checks["a.spared"].status is Status.SKIP
    assert not (tmp_path / "ran").exists()


def test_a_needed_check_is_shown_only_where_it_fails(job: MakeJob, info: MakeInfo) -> None:
    good = info("a.good", job("emit('a.good', {})"))
    bad = info("a.bad", job("raise OSError(5, 'broken')"))
    last = info("b.last", job("emit('b.last', {})"), needs=("a.good", "a.bad"))
    assert list(run(good, bad, last, only=["b.last"])) == ["a.bad", "b.last"]


def test_fresh_interpreters_run_side_by_side(job: MakeJob, info: MakeInfo) -> None:
    start = time.monotonic()
    slow = "import time\ntime.sleep(1.5)\n"
    checks = run(
        info("a.one", job(slow + "emit('a.one', {})")), info("a.two", job(slow + "emit('a.two', {})"))
    )
    assert {check.status for check in checks.values()} == {Status.OK}
    assert time.monotonic() - start < 2.8


def test_the_observer_hears_of_every_check(job: MakeJob, info: MakeInfo) -> None:
    class Counting(Observer):
        total, done, finished = 0, 0, False

        def start(self, task: str, total: int | None = None, unit: str = "B") -> None:
            self.total = total or 0

        def advance(self, task: str, amount: int = 1) -> None:
            self.done += amount

        def finish(self, task: str) -> None:
            self.finished = True

    counting = Counting()
    bad = info("a.bad", job("raise OSError(5, 'broken')"))
    run(bad, info("b.skipped", job("pass"), needs=("a.bad",)), observer=counting)
    assert (counting.total, counting.done, counting.finished) == (2, 2, True)


def test_an_interrupt_ends_every_process(tmp_path: Path) -> None:
    script = tmp_path / "interrupted.py"
    probe = tmp_path / "probe.py"
    probe.write_text(
        textwrap.dedent(
            f"""
            def probe(emit, number):
                import os, subprocess, time
                child = subprocess.Popen(["sleep", "1000"])
                with open({str(tmp_path)!r} + "/pids%d" % number, "w") as file:
                    file.write("%d %d" % (os.getpid(), child.pid))
                time.sleep(1000)
            """
        )
    )
    script.write_text(
        textwrap.dedent(
            f"""
            import sys
            from pathlib import Path
            from envkit.checks import Target, validate
            from envkit.checks.definition import Job, Where, check, ok
            from envkit.model import Severity
            catalogue = []
            for number in (0, 1):
                job = Job(id=f"j{{number}}", call={str(probe)!r} + ":probe", where=Where.FRESH, limit=600,
                          args={{"number": number}})
                catalogue.append(check(f"a.n{{number}}", job=job, severity=Severity.FATAL, source="https://x",
                                       words=lambda: ("", ""), needs=())(lambda data, context: ok("")))
            try:
                validate(Target(python=Path(sys.executable)), catalogue=catalogue)
            except KeyboardInterrupt:
                print("interrupted")
            """
        )
    )
    started = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    files = [tmp_path / "pids0", tmp_path / "pids1"]
    deadline = time.monotonic() + 20
    while not all(file.exists() and file.read_text() for file in files) and time.monotonic() < deadline:
        time.sleep(0.05)
    pids = [int(pid) for file in files for pid in file.read_text().split()]
    start = time.monotonic()
    started.send_signal(signal.SIGINT)
    output, _nothing = started.communicate(timeout=20)
    assert output.strip() == "interrupted"
    assert time.monotonic() - start < 5
    assert all(_gone(pid) for pid in pids)
    assert not list(tmp_path.glob("envkit-checks-*"))


def test_killed_outright_it_leaves_no_process_behind(tmp_path: Path) -> None:
    code = textwrap.dedent(
        """
        import sys, time
        from pathlib import Path
        from envkit.checks.interpreter import Interpreter
        from envkit.checks.definition import Job, Where
        from envkit.checks.seat import Seat
        import os
        seat = Seat(python=Path(sys.executable), variables=os.environ, folder=Path(sys.argv[1]))
        with Interpreter(seat) as interpreter:
            interpreter.start()
            print(interpreter._started.process.pid, flush=True)
            time.sleep(1000)
        """
    )
    started = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert started.stdout is not None
    pid = int(started.stdout.readline())
    started.kill()
    started.communicate()
    assert _gone(pid)


@pytest.mark.parametrize("kind", ["missing", "not executable", "not Python", "too old", "a directory"])
def test_a_broken_interpreter_is_a_check(kind: str, tmp_path: Path) -> None:
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    expected = {
        "missing": "No such file",
        "not executable": "Permission denied",
        "not Python": "did not run the probe",
        "too old": "3.8 or newer",
        "a directory": "Permission denied",
    }
    if kind == "not executable":
        python.write_text("#!/bin/sh\n")
    elif kind == "not Python":
        python.write_text("#!/bin/sh\necho not me >&2; exit 1\n")
        python.chmod(0o755)
    elif kind == "too old":
        old = sorted(Path.home().glob(".pyenv/versions/3.[67].*/bin/python"))
        if not old:
            pytest.skip("no Python 3.6 or 3.7 here")
        python.symlink_to(old[0])
    elif kind == "a directory":
        python.mkdir()
    report = validate(Target(python=python))
    first, *others = report.checks
    assert first.id == "interpreter.runs" and first.status is Status.FAIL and first.hint
    assert expected[kind] in first.summary
    assert not report.ok
    assert all(check.status is Status.SKIP for check in others)
    assert {check.summary for check in others} == {"not run: interpreter.runs failed"}


def test_several_runs_at_once_do_not_disturb_each_other(job: MakeJob, info: MakeInfo) -> None:
    catalogue = [info(f"a.n{n}", job(f"emit('a.n{n}', {{}})", where=Where.BARE)) for n in range(3)]
    reports = []
    threads = [
        threading.Thread(target=lambda: reports.append(validate(ME, catalogue=catalogue))) for _n in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [report.ok for report in reports] == [True] * 3


def _gone(pid: int) -> bool:
    for _attempt in range(150):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False
