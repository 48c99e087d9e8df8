"""A report as text and as JSON: what stands in it, how it is aligned, what cannot get into a terminal."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envkit.model import Check, Report, Severity, Status
from envkit.report import table, to_json, to_text
from envkit.report.width import pad, width, wrap


def a_check(id: str, status: Status = Status.OK, **more: object) -> Check:
    fields: dict[str, object] = {"severity": Severity.FATAL, "summary": f"about {id}", **more}
    return Check(id=id, status=status, **fields)  # type: ignore[arg-type]


REPORT = Report(
    subject="py311-cpu",
    checks=(
        a_check("imports.torch", seconds=3.21),
        a_check("shm.size", Status.FAIL, hint="make it larger", detail="first\nsecond"),
        a_check("shm.capacity", Status.FAIL, hint="make it larger"),
        a_check("fds.limit", Status.WARN, severity=Severity.LOW, hint="raise it"),
        a_check("cuda.init", Status.SKIP, summary="there is no NVIDIA GPU here"),
        a_check("loader.fork", Status.CRASH, summary="this check itself failed"),
    ),
    seconds=4.5,
)


def test_every_check_is_a_line_with_its_state_in_words() -> None:
    lines = to_text(REPORT, color=False).splitlines()
    assert lines[:6] == [
        "ok       imports.torch  about imports.torch                                3.2 s",
        "FAILED   shm.size       about shm.size                                     0.0 s",
        "FAILED   shm.capacity   about shm.capacity                                 0.0 s",
        "warning  fds.limit      about fds.limit                                    0.0 s",
        "skipped  cuda.init      there is no NVIDIA GPU here                        0.0 s",
        "CRASHED  loader.fork    this check itself failed                           0.0 s",
    ]


def test_a_remedy_stands_once_with_all_its_checks() -> None:
    text = to_text(REPORT, color=False)
    assert "FAILED  shm.size, shm.capacity\n  make it larger\n" in text
    assert text.count("make it larger") == 1
    assert "warning  fds.limit\n  raise it" in text
    assert "first" not in text


def test_the_verdict_is_the_last_line() -> None:
    lines = to_text(REPORT, color=False).splitlines()
    assert " ".join(lines[-2:]) == (
        "py311-cpu: this environment does not work here as it is (1 ok, 1 warning, 2 FAILED, 1 skipped, 1"
        " CRASHED; 4.5 s)"
    )
    healthy = Report(subject="x", checks=(a_check("a.b"),), seconds=1)
    assert to_text(healthy, color=False).splitlines()[-1] == "x: everything works (1 ok; 1.0 s)"


def test_verbose_tells_the_detail() -> None:
    text = to_text(REPORT, color=False, verbose=1)
    assert "  shm.size:\n  | first\n  | second\n" in text


def test_color_only_adds_to_the_words() -> None:
    painted = to_text(REPORT, color=True)
    assert "\x1b[31mFAILED\x1b[0m" in painted
    plain = re.sub(r"\x1b\[\d+m", "", painted)
    assert plain.splitlines()[:6] == to_text(REPORT, color=False).splitlines()[:6]


def test_lines_fit_in_80_columns_in_chinese_too() -> None:
    summary = (
        "共享内存只有 8 MiB,两个工作进程至少需要 18 MiB;请为 /dev/shm 增加空间,或减少 num_workers 与批大小。"
        * 2
    )
    report = Report(subject="环境", checks=(a_check("shm.size", Status.FAIL, summary=summary, hint=summary),))
    lines = to_text(report, color=False).splitlines()
    assert max(map(width, lines)) <= 80
    first = next(line for line in lines if "shm.size" in line)
    assert width(first) == 80 and first.endswith("0.0 s")
    assert "".join(lines).replace(" ", "").count("批大小") == 4


def test_nothing_that_a_probe_says_moves_the_cursor() -> None:
    nasty = "a\x1b[2J\x1b]0;title\x07b\rc\x9b31m"
    report = Report(
        subject=nasty, checks=(a_check("a.b", Status.FAIL, summary=nasty, hint=nasty, detail=nasty),)
    )
    text = to_text(report, color=False, verbose=2)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", text)


def test_json_holds_every_field() -> None:
    data = json.loads(json.dumps(to_json(REPORT)))
    assert data["schema"] == 1
    assert data["subject"] == "py311-cpu"
    assert data["ok"] is False
    assert [check["id"] for check in data["checks"]] == [check.id for check in REPORT.checks]
    assert data["checks"][1] == {
        "id": "shm.size",
        "status": "fail",
        "severity": "fatal",
        "bad": True,
        "summary": "about shm.size",
        "detail": "first\nsecond",
        "hint": "make it larger",
        "data": {},
        "seconds": 0.0,
    }


def test_a_table_is_aligned_for_wide_characters() -> None:
    text = table(("名称", "n"), [("环境一", "1"), ("abc", "22")])
    assert text.splitlines() == ["名称    n", "环境一  1", "abc     22"]
    assert table(("a", "b"), []) == "a  b"


def test_a_table_is_narrowed_at_the_spaces_of_its_widest_column() -> None:
    rows = [("x", "one two three", "1"), ("y", "", "22")]
    assert table(("n", "words", "z"), rows, columns=14).splitlines() == [
        "n  words    z",
        "x  one two  1",
        "   three",
        "y           22",
    ]
    assert max(map(len, table(("n", "words", "z"), rows, columns=5).splitlines())) == 12


@pytest.mark.parametrize(
    ("text", "columns"), [("abc", 3), ("环境", 4), ("e\u0301", 1), ("", 0), ("ｆｕｌｌ", 8), ("ﾊﾝｶｸ", 4)]
)
def test_width_counts_columns(text: str, columns: int) -> None:
    assert width(text) == columns
    assert width(pad(text, 10)) == 10


@given(st.text(alphabet="ab 环境,。/-", max_size=80), st.integers(min_value=1, max_value=30))
def test_wrapping_loses_nothing_but_spaces(text: str, columns: int) -> None:
    lines = wrap(text, columns)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    for line in lines:
        # What is too long is so because it has no place to break at.
        assert width(line) <= columns or wrap(line, 1) == [line]


def test_a_command_in_backticks_stays_on_one_line() -> None:
    command = "`rm -r /a/long/path /another/long/path 环境`"
    assert wrap(f"if nobody needs them: {command}, or keep them", 20) == [
        "if nobody needs", "them:", f"{command},", "or keep them",
    ]  # fmt: skip
    assert wrap("a lone ` is no quotation", 10) == ["a lone `", "is no", "quotation"]
