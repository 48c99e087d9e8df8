"""Fixtures: an interpreter with torch where there is one, and small probes of our own making."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from envkit.checks.definition import CheckInfo, Context, Data, Job, Verdict, Where, check, ok
from envkit.checks.seat import Seat
from envkit.model import Severity

CHILD = Path(__file__).with_name("validate_in_child.py")


def _has_torch(python: Path) -> bool:
    tried = subprocess.run([python, "-c", "import torch"], capture_output=True, check=False)
    return tried.returncode == 0


@pytest.fixture(scope="session")
def torch_python() -> Path:
    """ENVKIT_TEST_TORCH_PYTHON, else the first environment under ENVKIT_HOME whose Python imports torch."""
    given = os.environ.get("ENVKIT_TEST_TORCH_PYTHON")
    if given:
        return Path(given)
    home = Path(os.environ.get("ENVKIT_HOME") or Path.home() / ".local" / "share" / "envkit")
    for python in sorted(home.glob("envs/*/bin/python")):
        if _has_torch(python):
            return python
    pytest.skip("no interpreter with torch: set ENVKIT_TEST_TORCH_PYTHON")


@pytest.fixture
def seat(tmp_path: Path) -> Iterator[Seat]:
    """This very interpreter as the one under test."""
    folder = tmp_path / "seat"
    folder.mkdir()
    made = Seat(python=Path(sys.executable), variables=dict(os.environ), folder=folder)
    yield made
    made.groups.end_all()


@pytest.fixture
def job(tmp_path: Path) -> Callable[..., Job]:
    """`job(body)` is a job whose probe function has that body (`emit` is its argument)."""
    count = iter(range(1000))

    def made(body: str, *, where: Where = Where.FRESH, limit: float = 10.0, args: Any = None) -> Job:
        path = tmp_path / f"given_{next(count)}.py"
        path.write_text("def probe(emit, **args):\n" + textwrap.indent(textwrap.dedent(body), "    "))
        return Job(id=path.stem, call=f"{path}:probe", where=where, limit=limit, args=args or {})

    return made


@pytest.fixture
def info() -> Callable[..., CheckInfo]:
    """`info(id, job)` is a check of that job that is ok whenever it gets data."""

    def made(id: str, job: Job, *, needs: tuple[str, ...] = (), **more: Any) -> CheckInfo:
        @check(
            id,
            job=job,
            severity=more.pop("severity", Severity.FATAL),
            source="https://example.org",
            words=lambda: (id, id),
            needs=needs,
            **more,
        )
        def judged(data: Data, context: Context) -> Verdict:
            return ok(f"got {sorted(data)}")

        return judged

    return made


@pytest.fixture
def validate_in_child() -> Callable[..., dict[str, Any]]:
    """Run `validate` in a process of its own and return the report as JSON.

    `before` is shell that prepares that process (limits, variables); `mounts` runs it with a mount namespace.
    """

    def run(
        python: Path,
        *arguments: str,
        before: str = "true",
        mounts: bool = False,
        variables: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        command = f'{before} && exec "{sys.executable}" "{CHILD}" "{python}" "$@"'
        argv = ["bash", "-c", command, "validate", *arguments]
        if mounts:
            _need_namespaces()
            argv = ["unshare", "--mount", "--propagation", "private", *argv]
        done = subprocess.run(
            argv,
            capture_output=True,
            text=True,
            env={**os.environ, **(variables or {})},
            check=False,
            timeout=250,
        )
        assert done.returncode in (0, 1), done.stderr
        report: dict[str, Any] = json.loads(done.stdout)
        assert done.returncode == (0 if report["ok"] else 1)
        return report

    return run


def _need_namespaces() -> None:
    if shutil.which("unshare") is None:
        pytest.skip("no unshare")
    tried = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "mount", "-t", "tmpfs", "tmpfs", "/dev/shm"],
        capture_output=True,
        check=False,
    )
    if tried.returncode != 0:
        pytest.skip("mount namespaces are not permitted")
