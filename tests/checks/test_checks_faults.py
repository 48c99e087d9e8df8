"""Real faults, injected into a real interpreter: each is found, named and given its remedy."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from envkit.checks import Target, validate
from envkit.model import Environment

Validate = Callable[..., dict[str, Any]]
ME = Path(sys.executable)


def by_id(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {check["id"]: check for check in report["checks"]}


def test_eight_megabytes_of_shared_memory(validate_in_child: Validate) -> None:
    report = validate_in_child(
        ME, "--only=shm", before="mount -t tmpfs -o size=8m tmpfs /dev/shm", mounts=True
    )
    checks = by_id(report)
    assert not report["ok"]
    assert checks["shm.size"]["status"] == "fail" and "8 MiB" in checks["shm.size"]["summary"]
    assert checks["shm.capacity"]["status"] == "fail" and "8 MiB" in checks["shm.capacity"]["summary"]
    assert checks["shm.writable"]["status"] == "ok"
    assert all("--shm-size" in checks[id]["hint"] for id in ("shm.size", "shm.capacity"))


def test_the_default_of_containers_is_named_and_suffices(validate_in_child: Validate) -> None:
    report = validate_in_child(
        ME, "--only=shm", before="mount -t tmpfs -o size=64m tmpfs /dev/shm", mounts=True
    )
    checks = by_id(report)
    assert report["ok"]
    assert checks["shm.size"]["status"] == "warn"
    assert "the default of containers" in checks["shm.size"]["summary"]
    assert checks["shm.capacity"]["status"] == "warn"


def test_shared_memory_that_is_read_only(validate_in_child: Validate) -> None:
    report = validate_in_child(
        ME, "--only=shm", before="mount -t tmpfs -o ro,size=1g tmpfs /dev/shm", mounts=True
    )
    checks = by_id(report)
    assert not report["ok"]
    assert checks["shm.writable"]["status"] == "fail"
    assert "Read-only file system" in checks["shm.writable"]["summary"]
    assert "remount,rw" in checks["shm.writable"]["hint"]
    assert checks["shm.capacity"]["status"] == "skip"


def test_shared_memory_that_is_full(validate_in_child: Validate) -> None:
    fill = "mount -t tmpfs -o size=4m tmpfs /dev/shm && (head -c 4M /dev/zero > /dev/shm/full || true)"
    checks = by_id(validate_in_child(ME, "--only=shm", before=fill, mounts=True))
    assert checks["shm.writable"]["status"] == "fail"
    assert "--shm-size" in checks["shm.writable"]["hint"]


def test_few_file_descriptors(validate_in_child: Validate) -> None:
    report = validate_in_child(ME, "--only=fds", before="ulimit -n 64")
    assert not report["ok"]
    check = by_id(report)["fds.limit"]
    assert check["status"] == "fail" and "64 open files" in check["summary"]
    assert "ulimit -n 65535" in check["hint"]


def test_a_long_temporary_folder_is_found_and_no_loader_hangs_on_it(
    validate_in_child: Validate, tmp_path: Path
) -> None:
    folder = tmp_path / ("x" * 80)
    folder.mkdir()
    report = validate_in_child(ME, "--only=tmpdir", variables={"TMPDIR": str(folder)})
    check = by_id(report)["tmpdir.usable"]
    if check["data"]["socket"]:
        # Newer versions of Python fall back to a shorter folder for their sockets.
        assert check["status"] == "warn"
    else:
        assert not report["ok"]
        assert check["status"] == "fail" and "75 are possible" in check["summary"]
    assert "TMPDIR" in check["hint"]
    assert list(folder.iterdir()) == []


def test_seventy_five_characters_are_fine(validate_in_child: Validate, tmp_path: Path) -> None:
    room = 75 - len(os.fsencode(tmp_path.resolve())) - 1
    if room < 1:
        pytest.skip("the tests' own folder is too long already")
    folder = tmp_path / ("x" * room)
    folder.mkdir()
    report = validate_in_child(ME, "--only=tmpdir", variables={"TMPDIR": str(folder)})
    assert by_id(report)["tmpdir.usable"]["status"] == "ok"


def test_a_torch_that_does_not_import(tmp_path: Path) -> None:
    fake = tmp_path / "src" / "torch"
    fake.mkdir(parents=True)
    (fake / "__init__.py").write_text(
        textwrap.dedent(
            """
            try:
                raise OSError("libtorch_cpu.so: undefined symbol: iJIT_NotifyEvent")
            except OSError as problem:
                raise ImportError("torch could not be loaded") from problem
            """
        )
    )
    report = validate(Target(python=ME), quick=True, env={**os.environ, "PYTHONPATH": str(fake.parent)})
    checks = {check.id: check for check in report.checks}
    assert checks["interpreter.isolated"].status.value == "warn"
    assert str(fake.parent) in checks["interpreter.isolated"].summary
    assert checks["imports.torch"].status.value == "fail"
    assert "iJIT_NotifyEvent" in checks["imports.torch"].summary
    assert "mkl<2024.1" in checks["imports.torch"].hint
    assert checks["loader.fork"].summary == "not run: imports.torch failed"


def test_a_torch_that_crashes_the_interpreter(tmp_path: Path) -> None:
    fake = tmp_path / "torch"
    fake.mkdir()
    (fake / "__init__.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGILL)\n")
    report = validate(Target(python=ME), quick=True, env={**os.environ, "PYTHONPATH": str(tmp_path)})
    checks = {check.id: check for check in report.checks}
    assert checks["imports.torch"].status.value == "fail"
    assert "crashed with SIGILL (import torch)" in checks["imports.torch"].summary
    assert checks["shm.size"].status.value in ("ok", "warn")
    assert checks["workers.fork"].status.value == "skip"


def test_torch_from_elsewhere_in_an_environment_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("")
    prefix = Path(sys.prefix)
    environment = Environment(name="e", prefix=prefix)
    target = Target(python=ME, environment=environment)
    report = validate(target, only=["interpreter"], env={**os.environ, "PYTHONPATH": str(tmp_path)})
    checks = {check.id: check for check in report.checks}
    assert checks["interpreter.runs"].status.value == "ok"
    assert checks["interpreter.isolated"].status.value == "fail"
    assert checks["interpreter.isolated"].hint == "unset PYTHONPATH"


def test_an_environment_whose_python_is_gone(tmp_path: Path) -> None:
    (tmp_path / "conda-meta").mkdir()
    report = validate(Target.of(Environment(name="gone", prefix=tmp_path)), quick=True)
    assert not report.ok
    assert report.subject == "gone"
    assert "No such file" in report.checks[0].summary
    assert "make it again" in report.checks[0].hint


def test_without_torch_the_host_is_still_judged() -> None:
    report = validate(Target(python=ME), skip=["cuda"])
    checks = {check.id: check for check in report.checks}
    if checks["imports.torch"].status.value == "ok":
        pytest.skip("this interpreter has torch")
    assert not report.ok
    assert "No module named 'torch'" in checks["imports.torch"].summary
    assert "install torch" in checks["imports.torch"].hint
    assert checks["shm.writable"].status.value == "ok"
    assert checks["loader.spawn"].status.value == "skip"


class TestWithTorch:
    """The same with a real torch, where the loaders meet the fault for themselves."""

    def test_quick_is_healthy(self, torch_python: Path, validate_in_child: Validate) -> None:
        report = validate_in_child(torch_python, "--quick")
        assert report["ok"]
        assert {check["status"] for check in report["checks"]} <= {"ok", "warn"}
        assert by_id(report)["loader.fork"]["data"]["workers"] == [0, 1]

    @pytest.mark.slow
    def test_a_loader_meets_eight_megabytes(self, torch_python: Path, validate_in_child: Validate) -> None:
        report = validate_in_child(
            torch_python,
            "--only=loader.fork",
            before="mount -t tmpfs -o size=8m tmpfs /dev/shm",
            mounts=True,
        )
        check = by_id(report)["loader.fork"]
        assert check["status"] == "fail"
        assert "No space left on device" in check["summary"] or "Bus error" in check["summary"]
        assert "--shm-size" in check["hint"]

    @pytest.mark.slow
    def test_all_is_healthy_and_leaves_nothing(
        self, torch_python: Path, validate_in_child: Validate, tmp_path: Path
    ) -> None:
        before = set(Path("/dev/shm").iterdir())
        report = validate_in_child(torch_python, variables={"TMPDIR": str(tmp_path)})
        assert report["ok"]
        for check in report["checks"]:
            assert check["status"] in ("ok", "warn") or check["id"].startswith("cuda."), check
        left = set(Path("/dev/shm").iterdir()) - before
        assert [path for path in left if "envkit" in path.name] == []
        assert [path for path in tmp_path.iterdir() if path.name.startswith(("pymp-", "envkit"))] == []

    @pytest.mark.slow
    def test_a_cpu_build_where_cuda_was_asked_for(
        self, torch_python: Path, validate_in_child: Validate
    ) -> None:
        report = validate_in_child(torch_python, "--only=torch", "--only=cuda", "--cuda=12.4")
        checks = by_id(report)
        if checks["torch.build"]["data"]["cuda"] is not None:
            pytest.skip("this torch is a CUDA build")
        assert checks["torch.build"]["status"] == "fail"
        assert "CPU build, but CUDA 12.4" in checks["torch.build"]["summary"]
        assert not report["ok"]

    @pytest.mark.slow
    def test_few_descriptors_are_named_and_the_loaders_tell(
        self, torch_python: Path, validate_in_child: Validate
    ) -> None:
        report = validate_in_child(torch_python, "--quick", before="ulimit -n 40")
        assert not report["ok"]
        assert by_id(report)["fds.limit"]["status"] == "fail"

    @pytest.mark.slow
    def test_a_long_temporary_folder_costs_no_time_limits(
        self, torch_python: Path, validate_in_child: Validate, tmp_path: Path
    ) -> None:
        folder = tmp_path / ("x" * 80)
        folder.mkdir()
        checks = by_id(validate_in_child(torch_python, variables={"TMPDIR": str(folder)}))
        if checks["tmpdir.usable"]["status"] == "fail":
            assert checks["loader.spawn"]["summary"] == "not run: tmpdir.usable failed"
