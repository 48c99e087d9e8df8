"""A small project and its channel: the whole of envkit, run for real through its command line.

The `pytorch` of the channel is no PyTorch: its `torch` has a version and nothing else. So an environment
installs and imports it, and the validator rightly finds that it does not work.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tinychannel import MINOR, PLATFORM, SITE_PACKAGES, TinyPackage, this_python, write_channel

ROOT = Path(__file__).parents[2]
PY = f"py{MINOR.replace('.', '')}"
VARIANT = f"{PY}-cpu"
OTHER = f"{PY}-vision"

MATRIX = f"""\
schema: 1
defaults:
  python: "{MINOR}"
  sources: {{cpu: [conda-forge], cuda: [conda-forge]}}
  glibc: "2.17"
  platforms: {{cpu: [{PLATFORM}], cuda: [{PLATFORM}]}}
  packages: {{conda: [numpy, pip], pip: [numpy, pip]}}
sources:
  conda-forge:
    channels: [conda-forge]
    torch: ">=2.4"
    python: ">=3.10"
    builds: {{cpu: ">=2.1", "12.6": ">=2.5"}}
    guard: {{cpu: "cpu_*", cuda: "cuda{{tag}}*"}}
    needs: {{cuda: ["cuda-version={{cuda}}"]}}
    platforms: [{PLATFORM}]
  wheels:
    torch: "2.13.*"
    builds: {{cpu: ">=2.0"}}
    platforms: [{PLATFORM}]
extras:
  notebook: {{conda: [jupyterlab], pip: [jupyterlab]}}
  vision: {{conda: [imageio], pip: [imageio]}}
  train: {{conda: [lightning], pip: [lightning]}}
variants:
  {VARIANT}: {{cuda: cpu, source: conda-forge, torch: "2.4.*"}}
  {OTHER}: {{cuda: cpu, source: conda-forge, torch: "2.4.*", extras: [vision]}}
"""
"""Without a CUDA variant, so that the machine that runs the tests decides nothing."""

PACKAGES = (
    this_python(),
    TinyPackage(
        "pytorch",
        "2.4.1",
        f"cpu_generic_{PY}_0",
        {f"{SITE_PACKAGES}/torch/__init__.py": '__version__ = "2.4.1"\n'},
        platform=PLATFORM,
        depends=["python", "numpy"],
    ),
    *(
        TinyPackage(
            name,
            version,
            files={f"site-packages/{name}.py": f'__version__ = "{version}"\n'},
            noarch="python",
            depends=["python"],
        )
        for name, version in (("numpy", "1.26.4"), ("pip", "24.0"), ("imageio", "2.35"))
    ),
    TinyPackage(
        "jupyterlab",
        "4.2",
        files={"site-packages/jupyterlab.py": "def main():\n    print('a laboratory')\n"},
        noarch="python",
        depends=["python"],
        entry_points=["jupyter-lab = jupyterlab:main"],
    ),
)


def write_mirror(root: Path) -> Path:
    """A directory of channels, of which conda-forge is the only one."""
    write_channel(root / "conda-forge", *PACKAGES)
    return root


@dataclass(frozen=True)
class Done:
    """One finished call."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """The one JSON document that stdout is."""
        found = json.loads(self.out)
        assert isinstance(found, dict)
        assert found["exit"] == self.code
        return found

    @property
    def result(self) -> dict[str, Any]:
        found: dict[str, Any] = self.document["result"]
        return found


class Project:
    """A project folder with a home of its own beside it, and `python -m envkit` in it."""

    def __init__(self, folder: Path, mirror: str) -> None:
        self.root = folder / "project"
        self.home = folder / "envkit"
        self.environ = {
            "HOME": str(folder / "home"),
            "PATH": "/usr/bin:/bin",
            "LC_ALL": "C.UTF-8",
            "SHELL": "/bin/bash",
            "ENVKIT_HOME": str(self.home),
            "ENVKIT_MIRROR": mirror,
        }
        if "PYTHONPATH" in os.environ:  # a working tree beside the one that is installed
            self.environ["PYTHONPATH"] = os.environ["PYTHONPATH"]
        (folder / "home").mkdir(parents=True)
        shutil.copytree(ROOT / "templates", self.root / "templates")
        (self.root / "environments").mkdir()
        self.matrix.write_text(MATRIX)

    @property
    def matrix(self) -> Path:
        return self.root / "environments" / "matrix.yaml"

    @property
    def lock(self) -> Path:
        return self.root / "environments" / VARIANT / "conda-lock.yml"

    @property
    def names(self) -> list[str]:
        """All that lies in the folder of environments, hidden things too."""
        folder = self.home / "envs"
        return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []

    def prefix(self, name: str = VARIANT) -> Path:
        return self.home / "envs" / name

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        """The command line in a process group of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "envkit", *arguments],
            cwd=self.root,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
            **options,
        )

    def call(
        self, *arguments: str, within: Sequence[str] = (), cwd: Path | None = None, **environ: str
    ) -> Done:
        """The command line to its end; `within` is the command that runs it, if any."""
        done = subprocess.run(
            [*within, sys.executable, "-m", "envkit", *arguments],
            cwd=cwd or self.root,
            env=self.environ | environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert "Traceback" not in done.stdout + done.stderr, done.stderr
        return Done(done.returncode, done.stdout, done.stderr)

    def ok(self, *arguments: str, **options: Any) -> dict[str, Any]:
        """Call with --json what must succeed; its result."""
        done = self.call(*arguments, "--json", **options)
        assert done.code == 0, done.err
        return done.result

    def fails(self, *arguments: str, code: int, **options: Any) -> Mapping[str, Any]:
        """Call with --json what must fail as every failure does; the error.

        That is: one JSON document, one line that begins with `error:`, a hint, and nothing in the folder
        of environments that was not there before.
        """
        before = self.names
        done = self.call(*arguments, "--json", **options)
        assert done.code == code, done.out + done.err
        document = done.document
        assert not document["ok"]
        assert document["result"] is None
        error: dict[str, Any] = document["error"]
        said = [line for line in done.err.splitlines() if line.startswith(("error:", "hint:"))]
        assert said == [
            f"error: {error['message'].splitlines()[0]}",
            f"hint: {error['hint'].splitlines()[0]}",
        ]
        assert error["hint"].strip()
        assert self.names == before
        return error
