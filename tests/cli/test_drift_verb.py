"""envkit drift by its command line: words, JSON, exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tinychannel import PLATFORM, Channel, TinyPackage

LOCK = """\
version: 1
metadata:
  content_hash: {{{platform}: "{zeros}"}}
  channels: []
  platforms: [{platform}]
  sources: [environment.yml]
package:
- {{name: data, version: "1.0", manager: conda, platform: {platform}, dependencies: {{}}, url: "{url}",
   hash: {{sha256: {sha256}}}, category: main, optional: false}}
"""


def envkit(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    clean = {
        key: value for key, value in os.environ.items() if key not in ("LD_LIBRARY_PATH", "ENVKIT_CACHE")
    }
    return subprocess.run(
        [sys.executable, "-m", "envkit", *words], capture_output=True, text=True, check=False,
        cwd=home, env={**clean, "HOME": str(home), "ENVKIT_HOME": str(home), "ENVKIT_LANG": "en"},
    )  # fmt: skip


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with the environment `tiny`."""
    package = Channel(tmp_path / "channel").add(TinyPackage("data", files={"share/data.bin": b"1"}))
    file = tmp_path / "conda-lock.yml"
    file.write_text(LOCK.format(platform=PLATFORM, zeros="0" * 64, url=package.url, sha256=package.sha256))
    done = envkit(tmp_path, "install", "--lock", str(file), "--name", "tiny")
    assert done.returncode == 0, done.stderr
    return tmp_path


def test_clean_drifted_and_repaired(home):
    done = envkit(home, "drift", "tiny")
    assert (done.returncode, done.stderr) == (0, "")
    assert "as its lock says" in done.stdout
    (home / "envs/tiny/share/data.bin").unlink()
    done = envkit(home, "drift", "tiny", "--json")
    assert done.returncode == 1
    document = json.loads(done.stdout)
    assert (document["command"], document["ok"], document["exit"]) == ("drift", False, 1)
    bad = {check["id"]: check for check in document["result"]["checks"] if check["status"] == "fail"}
    assert list(bad) == ["drift.files-missing"]
    assert bad["drift.files-missing"]["data"]["files"] == {"data 1.0": ["share/data.bin"]}
    done = envkit(home, "drift", "tiny", "--repair", "--json")
    assert (done.returncode, json.loads(done.stdout)["result"]["repaired"]) == (0, True)
    assert (home / "envs/tiny/share/data.bin").read_bytes() == b"1"
    done = envkit(home, "drift", "tiny", "--repair", "--deep")
    assert done.returncode == 0
    assert "nothing was done" in done.stdout


def test_without_a_lock_it_is_not_called_well(home):
    (home / "envs/tiny/conda-meta/envkit-lock.yml").unlink()
    done = envkit(home, "drift", "tiny")
    assert done.returncode == 1
    assert "as far as can be told without its lock" in done.stdout
    assert envkit(home, "drift", "tiny", "--lock", "conda-lock.yml").returncode == 0


def test_what_is_no_environment(home):
    assert envkit(home, "drift", "another").returncode == 2
    (home / "envs/tiny/conda-meta/envkit").write_text("{")
    done = envkit(home, "drift", "tiny")
    assert done.returncode == 3
    assert "Traceback" not in done.stderr
