"""The command line's frame: exit codes, one JSON object a call, no traceback, bad usage named."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

MATRIX = Path(__file__).parents[2] / "environments" / "matrix.yaml"


def envkit(*arguments: str, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "envkit", *arguments],
        cwd=cwd,
        env={**os.environ, "LANG": "C.UTF-8", **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_help_lists_every_verb_and_each_has_its_own() -> None:
    from envkit.cli.frame import VERBS

    shown = envkit("--help")
    assert shown.returncode == 0
    for name in VERBS:
        assert f"\n  {name} " in shown.stdout
        own = envkit(name, "--help", COLUMNS="80")
        assert own.returncode == 0, own.stderr
        assert "--json" in own.stdout
        assert max(map(len, own.stdout.splitlines())) <= 80, name


@pytest.mark.parametrize(
    ("arguments", "fragment"),
    [
        (["vaildate"], "did you mean 'validate'?"),
        (["up", "--no-such"], "--no-such"),
        (["up", "py311-cpu", "--cuda", "11.8"], "variant name and axes"),
        (["run", "only-a-name"], "CMD"),
        (["activate"], "ENVIRONMENT"),
        (["activate", "x", "--shell", "tcsh"], "tcsh"),
    ],
)
def test_bad_usage_is_named_without_a_traceback(arguments: list[str], fragment: str) -> None:
    done = envkit(*arguments)
    assert done.returncode in (2, 125)
    assert fragment in done.stderr
    assert "Traceback" not in done.stderr


def test_json_is_one_object_for_failures_too(tmp_path: Path) -> None:
    done = envkit("activate", "nothing-here", "--json", ENVKIT_HOME=str(tmp_path))
    document = json.loads(done.stdout)
    assert document["ok"] is False
    assert document["exit"] == done.returncode == 2
    assert "nothing-here" in document["error"]["message"]
    assert document["error"]["hint"]
    usage = json.loads(envkit("up", "--no-such", "--json").stdout)
    assert usage["exit"] == 2


def test_a_project_is_needed_and_named(tmp_path: Path) -> None:
    done = envkit("variants", cwd=tmp_path, ENVKIT_PROJECT="")
    assert done.returncode == 2
    assert "matrix.yaml" in done.stderr


def test_variants_lists_the_matrix_as_json() -> None:
    done = envkit("variants", "--json", cwd=MATRIX.parents[1])
    names = [row["variant"] for row in json.loads(done.stdout)["result"]["variants"]]
    assert {"py311-cpu", "py311-cu118", "py39-pt113-cu117", "py311-torch"} <= set(names)


def test_variants_tells_of_every_lock_however_it_is(tmp_path: Path) -> None:
    for name in ("environments", "templates"):
        shutil.copytree(MATRIX.parents[1] / name, tmp_path / name)

    def lock_of(variant: str) -> Path:
        return tmp_path / "environments" / variant / "conda-lock.yml"

    lock_of("py311-cpu").unlink()
    lock_of("py311-cu118").write_text("version: [1\n")
    stale = lock_of("py311-cu121")
    stale.write_text(re.sub(r"(envkit-spec: ).{8}", r"\g<1>00000000", stale.read_text()))
    lock_of("py311-cu124").write_bytes(lock_of("py311-cu124").read_bytes() + b"\xff")
    environment = lock_of("py311-cu126").with_name("environment.yml")
    environment.write_bytes(b"\xff")
    done = envkit("variants", "--json", cwd=tmp_path, ENVKIT_HOME=str(tmp_path / "home"))
    rows = {row["variant"]: row for row in json.loads(done.stdout)["result"]["variants"]}
    told = {
        name: (row["locked"], row["fresh"], row["rendered"], row["locked_torch"])
        for name, row in rows.items()
    }
    assert told["py311-cpu"] == told["py311-cu118"] == (False, False, True, None)
    assert "expected ',' or ']'" in rows["py311-cu118"]["problem"]
    assert told["py311-cu121"] == (True, False, True, "2.5.1")
    assert told["py311-cu124"] == (True, True, True, None)
    assert told["py311-cu126"] == (True, True, False, "2.7.1")
    assert told["py311-cu129"] == (True, True, True, "2.12.0")


def test_a_mistake_in_the_matrix_is_told_with_its_line(tmp_path: Path) -> None:
    folder = tmp_path / "environments"
    folder.mkdir()
    (folder / "matrix.yaml").write_text("schema: 1\nvariants: []\nvariants: []\n")
    done = envkit("variants", "--json", cwd=tmp_path)
    error = json.loads(done.stdout)["error"]
    assert (done.returncode, error["line"]) == (2, 3)
    assert error["path"].endswith("matrix.yaml")


def test_chinese_on_request(tmp_path: Path) -> None:
    done = envkit("activate", "nothing-here", "--lang", "zh", ENVKIT_HOME=str(tmp_path))
    assert done.returncode == 2
    assert "错误" in done.stderr
    assert envkit(
        "activate", "x", LANG="zh_CN.UTF-8", LC_ALL="", ENVKIT_HOME=str(tmp_path)
    ).stderr.startswith("错误")


def test_a_bug_is_kept_in_a_file_and_exits_70(tmp_path: Path) -> None:
    program = (
        "import sys; from envkit.cli import frame\n"
        "import envkit.cli.variants as v\n"
        "def broken(): raise ZeroDivisionError('by nought')\n"
        "v.project = broken\n"
        "sys.exit(frame.execute(['variants']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "ENVKIT_HOME": str(tmp_path), "LANG": "C"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 70
    assert "Traceback" not in done.stderr
    assert "by nought" in (tmp_path / "state" / "last-bug.txt").read_text()


def test_an_interrupt_that_an_import_wrapped_ends_in_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Until Python 3.11, what `__set_name__` raises becomes the cause of another error."""
    from envkit.cli import frame, variants

    def wrapped() -> None:
        raise RuntimeError("Error calling __set_name__") from KeyboardInterrupt()

    monkeypatch.setattr(variants, "project", wrapped)
    assert frame.execute(["variants"]) == 130
    assert "bug" not in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_in_130(number: int) -> None:
    program = (
        "import sys, time; from envkit.cli import frame\n"
        "import envkit.cli.variants as v\n"
        "def slow():\n    print('here', flush=True); time.sleep(30)\n"
        "v.project = slow\n"
        "sys.exit(frame.execute(['variants']))"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "here\n"
    began = time.monotonic()
    child.send_signal(number)
    _, stderr = child.communicate(timeout=20)
    assert child.returncode == 130
    assert time.monotonic() - began < 10
    assert "Traceback" not in stderr


def test_variants_names_the_extras_and_the_environments_beside_the_matrix(tmp_path: Path) -> None:
    (tmp_path / "envs" / "mine" / "conda-meta").mkdir(parents=True)
    (tmp_path / "envs" / "mine" / "conda-meta" / "history").touch()
    done = envkit("variants", "--json", cwd=MATRIX.parents[1], ENVKIT_HOME=str(tmp_path))
    result = json.loads(done.stdout)["result"]
    assert "notebook" in result["extras"]
    assert result["others"] == ["mine"]
    shown = envkit("variants", cwd=MATRIX.parents[1], ENVKIT_HOME=str(tmp_path)).stdout
    assert shown.splitlines()[-1].endswith("mine")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--lang", "en"], "there is no option '--lang'"),
        (["lock", "--verbos"], "there is no option '--verbos'; there is --verbose"),
        (["lock", "--python"], "--python needs a value"),
        (["lock", "--fresh=1"], "--fresh takes no value"),
        (["lock", "a", "b"], "unexpected: b"),
        (["lock", "--lang", "xx"], "--lang: 'xx' is none of 'en', 'zh'"),
        (["activate"], "ENVIRONMENT is missing"),
        (["lock", "--file", "/"], "--file: / is a directory, not a file"),
    ],
)
def test_usage_errors_are_in_envkits_own_words(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from envkit.cli.frame import execute

    assert execute(arguments) == 2
    assert f"error: {words}\n" in capsys.readouterr().err


def test_a_password_that_an_error_forgot_is_not_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from envkit.cli import frame, variants
    from envkit.errors import Findings

    url = "https://user:hunter2@conda.corp.example/team"

    @frame.verb("variants")
    def failing(session: frame.Session) -> frame.Outcome:
        raise Findings(f"no {url}", f"look at {url}", details={"channels": [url], "chain": [url, "end"]})

    monkeypatch.setattr(variants, "command", failing)
    assert frame.execute(["variants", "--json", "-v"]) == 1
    told = capsys.readouterr()
    assert "hunter2" not in told.out + told.err
    assert "conda.corp.example" in told.out
    assert told.err.count("end") == 1, "-v shows the whole chain"
    frame.execute(["variants"])
    assert "end" not in capsys.readouterr().err
