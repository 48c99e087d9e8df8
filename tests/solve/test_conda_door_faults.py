"""envkit-conda on bad indexes and bad streams: one answer, the right code, no traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOOR = f'"{sys.executable}" -c "from envkit.solve.conda_door import main; main()"'


def door(script: str, home: Path) -> subprocess.CompletedProcess[str]:
    """Run a shell script in which DOOR is the program under test."""
    environ = {**os.environ, "HOME": str(home), "ENVKIT_HOME": str(home / "e"), "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        ["bash", "-c", script.replace("DOOR", DOOR)],
        env=environ | {"CONDA_SUBDIR": "linux-64", "ENVKIT_LANG": "en"},
        cwd=home, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    "index",
    [
        "{",
        "[]",
        "null",
        "",
        '{"packages": 5}',
        '{"packages": {"a.tar.bz2": {}}}',
        '{"packages": {}, "packages.conda": {"p0-1.0-0.conda": {"name": 5}}}',
        '{"packages": {}, "packages.conda": {"p0-1.0-0.conda": []}}',
    ],
)
def test_a_bad_index_is_answered_in_json(tmp_path: Path, index: str) -> None:
    for subdir, text in (("linux-64", index), ("noarch", '{"packages": {}}')):
        (tmp_path / "ch" / subdir).mkdir(parents=True)
        (tmp_path / "ch" / subdir / "repodata.json").write_text(text)
    done = door(f"DOOR create --prefix {tmp_path}/p --dry-run --json -c file://{tmp_path}/ch p0", tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    answer = json.loads(done.stdout)
    assert answer["success"] is False
    assert "a bug" not in answer["error"]
    assert not (tmp_path / "p").exists()


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("DOOR info --json >/dev/full", 3),
        ("DOOR info --json >&-", 0),
        ("DOOR no-such-verb >&- 2>&-", 2),
        ("DOOR create --file /nonexistent --prefix p 2>&-", 2),
        ("DOOR create --file /nonexistent --prefix p 2>/dev/full", 2),
    ],
)
def test_streams_that_take_nothing(tmp_path: Path, script: str, code: int) -> None:
    done = door(script, tmp_path)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
