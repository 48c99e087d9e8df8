"""The probe's files: what they use, under which Pythons they run, what they read of control groups."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

PROBE = Path(importlib.util.find_spec("envkit").submodule_search_locations[0]) / "probe"  # type: ignore[union-attr,index]
FILES = sorted(PROBE.glob("*.py"))
OLD_PYTHONS = sorted(Path.home().glob(".pyenv/versions/3.*/bin/python"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_uses_the_standard_library_alone_and_parses_as_python_3_8(path: Path) -> None:
    tree = ast.parse(path.read_text(), feature_version=(3, 8))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        else:
            continue
        assert {name.partition(".")[0] for name in names} <= set(sys.stdlib_module_names), names


def test_envkit_never_imports_the_probe() -> None:
    for path in PROBE.parent.rglob("*.py"):
        if path.parent != PROBE:
            assert "envkit.probe" not in path.read_text(), path


@pytest.mark.parametrize("python", OLD_PYTHONS, ids=lambda path: path.parts[-3])
def test_measures_under_other_pythons(python: Path, tmp_path: Path) -> None:
    version = tuple(map(int, python.parts[-3].split(".")[:2]))
    jobs = [
        {"id": call, "call": call, "where": "fork", "limit": 20, "args": args}
        for call, args in (
            ("interpreter:describe", {}),
            ("shm:size", {}),
            ("shm:writable", {}),
            ("shm:capacity", {"need": 1 << 20}),
            ("limits:descriptors", {}),
            ("limits:temporary_folder", {}),
        )
    ]
    for job in jobs:
        job |= {"stdout": str(tmp_path / "out"), "stderr": str(tmp_path / "err")}
    done = subprocess.run(
        [python, PROBE / "main.py", '{"fd": 2}'],
        input="".join(json.dumps(job) + "\n" for job in jobs),
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        check=False,
    )
    records = [json.loads(line) for line in done.stderr.splitlines()]
    assert records[0]["kind"] == "hello"
    if version < (3, 8):
        assert records[0]["oldest"] == [3, 8]
        return
    # The forks have their own stderr, and with it the pipe of this test: they wrote to the file.
    written = [json.loads(line) for line in (tmp_path / "err").read_text().splitlines()]
    parts = [record["part"] for record in written if record["kind"] == "part"]
    assert parts == [
        "interpreter.runs",
        "interpreter.version",
        "interpreter.isolated",
        "shm.size",
        "shm.writable",
        "shm.capacity",
        "fds.limit",
        "tmpdir.usable",
    ]
    assert [record["code"] for record in records if record["kind"] == "end"] == [0] * 6


@pytest.mark.parametrize(
    "method", ["spawn", *(pytest.param(method, marks=pytest.mark.slow) for method in ("fork", "forkserver"))]
)
@pytest.mark.parametrize("python", OLD_PYTHONS, ids=lambda path: path.parts[-3])
def test_starts_workers_under_other_pythons(python: Path, method: str) -> None:
    if tuple(map(int, python.parts[-3].split(".")[:2])) < (3, 8):
        pytest.skip("too old for the probe")
    args = {"method": method, "token": "envkit-test", "workers": 2, "epochs": 2}
    args |= {"samples": 4, "batch": 2, "shape": [1]}
    job = {"id": "j", "call": "rehearsal:rehearse", "limit": 30, "args": args}
    done = subprocess.run(
        [python, PROBE / "main.py", json.dumps({"fd": 1, "job": job})],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        check=False,
    )
    records = [json.loads(line) for line in done.stdout.splitlines()]
    parts = {record["part"]: record["data"] for record in records if record["kind"] == "part"}
    assert parts[f"workers.{method}"]["answers"] == [0, 1], done.stderr
    # What needs torch comes after; these interpreters have none.
    assert records[-1]["kind"] == "done"


@pytest.fixture(scope="module")
def memory() -> ModuleType:
    spec = importlib.util.spec_from_file_location("probe_memory", PROBE / "memory.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _tree(root: Path, files: dict[str, str]) -> str:
    for name, text in {"proc/meminfo": "MemTotal: 100 kB\nMemAvailable:   2048 kB\n", **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(root)


def test_cgroup_v2_takes_the_least_of_all_ancestors(memory: ModuleType, tmp_path: Path) -> None:
    root = _tree(
        tmp_path,
        {
            "proc/self/cgroup": "0::/a/b\n",
            "sys/fs/cgroup/a/b/memory.max": "max\n",
            "sys/fs/cgroup/a/b/memory.current": "100\n",
            "sys/fs/cgroup/a/memory.max": "1000\n",
            "sys/fs/cgroup/a/memory.current": "700\n",
            "sys/fs/cgroup/a/memory.stat": "anon 1\ninactive_file 200\n",
        },
    )
    # What is in the page cache can be had back: 1000 - (700 - 200).
    assert memory.headroom(root) == {"host": 2048 * 1024, "cgroup": 500}


def test_cgroup_v1_and_no_limit(memory: ModuleType, tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "5:cpu,cpuacct:/x\n4:memory:/job\n0::/\n",
        "sys/fs/cgroup/memory/job/memory.limit_in_bytes": "600\n",
        "sys/fs/cgroup/memory/job/memory.usage_in_bytes": "650\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
        "sys/fs/cgroup/memory/memory.usage_in_bytes": "5\n",
    }
    root = _tree(tmp_path, files)
    assert memory.headroom(root)["cgroup"] == 0
    (tmp_path / "sys/fs/cgroup/memory/job/memory.limit_in_bytes").write_text("9223372036854771712\n")
    assert memory.headroom(root)["cgroup"] is None


def test_in_a_container_the_mount_itself_is_read(memory: ModuleType, tmp_path: Path) -> None:
    root = _tree(
        tmp_path,
        {
            "proc/self/cgroup": "4:memory:/docker/0123\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "900\n",
            "sys/fs/cgroup/memory/memory.usage_in_bytes": "100\n",
        },
    )
    assert memory.headroom(root)["cgroup"] == 800


def test_nothing_to_read_is_unknown(memory: ModuleType, tmp_path: Path) -> None:
    assert memory.headroom(str(tmp_path)) == {"host": None, "cgroup": None}
