"""Progress as bars, lines, JSON lines and nothing: what each says, and how much of it."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from envkit.cli.jsonlines import JsonLines
from envkit.cli.pace import Pace, duration, how_far
from envkit.cli.view import Lines, view
from envkit.progress import SILENT, Observer

ROOT = Path(__file__).parents[2]
TASK_FIELDS = {"event", "time", "task", "done", "total", "unit", "speed", "eta"}


class Clock:
    """A clock that stands still unless it is moved."""

    def __init__(self) -> None:
        self.time = 100.0

    def __call__(self) -> float:
        return self.time


def test_speed_and_time_left() -> None:
    clock = Clock()
    pace = Pace(total=100_000_000, unit="B", now=clock)
    assert (pace.speed, pace.left) == (None, None)
    for _second in range(5):
        clock.time += 1
        pace.advance(2_000_000)
    assert pace.speed == 2e6
    assert pace.left == 45
    assert str(pace) == "10.0 / 100.0 MB, 2.0 MB/s, 45 s left"


def test_speed_is_that_of_the_last_seconds() -> None:
    clock = Clock()
    pace = Pace(total=None, unit="B", now=clock)
    for amount, seconds in ((50_000_000, 20), (1_000_000, 20)):
        for _second in range(seconds):
            clock.time += 1
            pace.advance(amount)
    assert pace.speed is not None
    assert pace.speed < 2e6
    assert pace.left is None
    clock.time += 60  # a silent host: the speed falls, the time left does not stand still
    assert pace.speed < 1e6


def test_an_overshoot_is_no_negative_time() -> None:
    """A mirror without Range gives again what was there already."""
    clock = Clock()
    pace = Pace(total=10, unit="packages", now=clock)
    clock.time += 1
    pace.advance(12)
    assert pace.left == 0


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "0 s"), (59.4, "59 s"), (65, "1:05 min"), (7620, "2:07 h"), (3599.9, "1:00 h")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("done", "total", "unit", "text"),
    [
        (5, 10, "packages", "5 / 10 packages"),
        (5, None, "packages", "5 packages"),
        (5 * 10**6, 2 * 10**9, "B", "0.0 / 2.0 GB"),
        (5 * 10**6, None, "B", "5.0 MB"),
    ],
)
def test_how_far(done: int, total: int | None, unit: str, text: str) -> None:
    assert how_far(done, total, unit) == text


def work(observer: Observer, files: int = 200) -> None:
    """What a fetch of many tiny packages tells, from several threads."""
    observer.start("downloading", 1000 * files)
    observer.start("packages ready", files, "packages")

    def some(count: int) -> None:
        for _file in range(count):
            observer.advance("downloading", 1000)
            observer.advance("packages ready")

    threads = [threading.Thread(target=some, args=(files // 4,)) for _thread in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    observer.advance("never heard of")
    observer.finish("downloading")
    observer.finish("packages ready")
    observer.finish("packages ready")
    observer.note("that was it")


def test_lines_say_little() -> None:
    stream = io.StringIO()
    work(Lines(stream))
    assert stream.getvalue() == "that was it\n"


def test_a_long_task_is_told_in_lines_now_and_then() -> None:
    stream = io.StringIO()
    lines = Lines(stream, seconds=0.0)
    lines.start("downloading", 4_000_000)
    lines.advance("downloading", 1_000_000)
    time.sleep(0.6)
    lines.advance("downloading", 1_000_000)
    first, second = stream.getvalue().splitlines()
    assert first == "  downloading: 1.0 / 4.0 MB"
    assert re.fullmatch(r"  downloading: 2\.0 / 4\.0 MB, \d\.\d MB/s, \d s left", second)


def test_json_lines_are_few_and_have_every_field() -> None:
    stream = io.StringIO()
    work(JsonLines(stream))
    events = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [event["event"] for event in events if event["event"] != "progress"] == [
        "start", "start", "finish", "finish", "note",
    ]  # fmt: skip
    assert len(events) < 20
    for event in events[:-1]:
        assert set(event) == TASK_FIELDS
    assert events[-1]["text"] == "that was it"
    finished = next(event for event in events if event["event"] == "finish" and event["unit"] == "B")
    assert (finished["done"], finished["total"]) == (200_000, 200_000)
    assert abs(finished["time"] - time.time()) < 60


def test_nothing_is_nothing() -> None:
    stream = io.StringIO()
    with view("none", stream=stream) as observer:
        assert observer is SILENT
        work(observer)
    assert stream.getvalue() == ""


def envkit(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "envkit", *arguments],
        cwd=ROOT, env={**os.environ, "LANG": "C.UTF-8", "PYTHONPATH": str(ROOT), **environment},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("how", ["option", "joined", "variable"])
def test_a_failure_is_an_event_too(how: str) -> None:
    words = {"option": ["--progress", "json"], "joined": ["--progress=json"], "variable": []}[how]
    variables = {"ENVKIT_PROGRESS": "json"} if how == "variable" else {}
    done = envkit("install", "no-such-variant", *words, **variables)
    (event,) = [json.loads(line) for line in done.stderr.splitlines()]
    assert event["event"] == "error"
    assert "no-such-variant" in event["text"]
    assert event["exit"] == done.returncode == 2
    assert event["hint"]


def test_a_word_after_the_options_of_run_is_someone_elses() -> None:
    done = envkit("run", "--progress", "json", "no-such-env", "--", "x", "--progress", "plain")
    (event,) = [json.loads(line) for line in done.stderr.splitlines()]
    assert event["exit"] == done.returncode == 125


def test_an_unknown_way_is_named() -> None:
    done = envkit("variants", "--progress", "dance")
    assert done.returncode == 2
    assert "'dance' is none of" in done.stderr
    assert envkit("variants", ENVKIT_PROGRESS="dance").returncode == 2


SHOW = """
import sys, time
sys.path.insert(0, {root!r})
from envkit.cli.view import view
with view({mode!r}) as observer:
    observer.start("downloading", 50_000_000)
    observer.start("packages ready", 5, "packages")
    for _second in range(5):
        time.sleep(0.3)
        observer.advance("downloading", 5_000_000)
        observer.advance("packages ready")
    observer.note("a note")
    observer.finish("downloading")
    observer.finish("packages ready")
"""


@pytest.fixture
def on_terminal() -> Iterator[object]:
    """Run a script on a terminal; what it wrote there."""

    def show(mode: str, term: str = "xterm") -> str:
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-c", SHOW.format(root=str(ROOT), mode=mode)],
            stdin=theirs, stdout=theirs, stderr=theirs, env={**os.environ, "TERM": term, "COLUMNS": "120"},
        )  # fmt: skip
        os.close(theirs)
        said = b""
        while True:
            try:
                block = os.read(ours, 65536)
            except OSError:  # how Linux says that nobody holds the other end
                break
            said += block
        os.close(ours)
        assert process.wait(30) == 0
        return said.decode()

    yield show


def test_bars_show_bytes_speed_and_time_left(on_terminal) -> None:  # type: ignore[no-untyped-def]
    said = on_terminal("auto")
    assert re.search(r"downloading.*\d+\.0 / 50\.0 MB, \d+\.\d MB/s, \d+ s left", said)
    assert re.search(r"packages ready.*[2-5] / 5 packages, \d s left", said)
    assert "a note" in said
    assert said.count("\x1b[?25h") >= said.count("\x1b[?25l") > 0  # the cursor comes back


@pytest.mark.parametrize(("mode", "term"), [("plain", "xterm"), ("auto", "dumb")])
def test_plain_lines_on_a_terminal(mode: str, term: str, on_terminal) -> None:  # type: ignore[no-untyped-def]
    assert on_terminal(mode, term) == "a note\r\n"
