"""envkit clean by its command line."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest


def envkit(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    clean = {key: value for key, value in os.environ.items() if key != "ENVKIT_CACHE"}
    own = {"HOME": str(home), "ENVKIT_HOME": str(home / "kit"), "TMPDIR": str(home), "ENVKIT_LANG": "en"}
    return subprocess.run(
        [sys.executable, "-m", "envkit", "clean", *words],
        capture_output=True, text=True, check=False, cwd=home, env={**clean, **own},
    )  # fmt: skip


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home whose cache has a cut download, a half-unpacked package and what pip keeps."""
    for path in (f"downloads/{'a' * 64}.partial", "pkgs/.envkit/unpacking/x-1-0/file", "pip/http/x"):
        file = tmp_path / "kit" / "cache" / path
        file.parent.mkdir(parents=True)
        file.write_bytes(b"x" * 100_000)
    return tmp_path


def test_a_dry_run_names_what_would_go_and_what_else_there_is(home):
    before = sorted(home.rglob("*"))
    done = envkit(home, "--dry-run")
    assert done.returncode == 0
    assert "x-1-0" in done.stdout
    assert "would be freed" in done.stdout
    assert "envkit clean --all` would free" in done.stdout
    assert re.search(r": partial \d+ kB, pip \d+ kB$", done.stdout)
    assert sorted(home.rglob("*")) == before


def test_kinds_by_name(home):
    done = envkit(home, "partial", "unfinished", "--json")
    assert done.returncode == 0
    result = json.loads(done.stdout)["result"]
    assert [(one["kind"], one["chosen"], len(one["paths"])) for one in result["kinds"]] == [
        ("unfinished", True, 1), ("partial", True, 1),
    ]  # fmt: skip
    assert result["bytes"] >= 200_000
    assert not (home / "kit/cache/downloads" / f"{'a' * 64}.partial").exists()
    assert (home / "kit/cache/pip/http/x").exists()


def test_words_that_are_wrong(home):
    done = envkit(home, "everything")
    assert done.returncode == 2
    assert "there is no kind 'everything'" in done.stderr
    assert "shared-memory" in done.stderr
    assert envkit(home, "pip", "--all").returncode == 2
