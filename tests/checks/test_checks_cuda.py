"""The driver's first call, made for real, against a driver library made for the purpose."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from envkit.checks import CATALOGUE, Target, validate
from envkit.model import Check, Status

SOURCE = Path(__file__).with_name("fake_libcuda.c")

pytestmark = pytest.mark.skipif(
    bool(list(Path("/dev").glob("nvidia*"))),
    reason="there is a real driver here; these faults are not its own",
)


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("driver")
    subprocess.run([compiler, "-shared", "-fPIC", "-O0", "-o", folder / "libcuda.so.1", SOURCE], check=True)
    return folder


def _init(driver: Path, answer: str, *, limit: float | None = None, **variables: str) -> Check:
    catalogue = CATALOGUE
    if limit is not None:
        catalogue = tuple(
            replace(info, job=replace(info.job, limit=limit)) if info.id == "cuda.init" else info
            for info in CATALOGUE
        )
    report = validate(
        Target(python=Path(sys.executable), cuda="12.4"),
        only=["cuda.init"],
        env={**os.environ, "LD_LIBRARY_PATH": str(driver), "FAKE_CUDA": answer, **variables},
        catalogue=catalogue,
    )
    (check,) = report.checks
    assert report.ok == (check.status is not Status.FAIL)
    return check


def test_a_driver_that_answers(driver: Path) -> None:
    check = _init(driver, "0", FAKE_CUDA_VERSION="12080")
    assert check.status is Status.OK
    assert check.summary == "the driver answers: CUDA 12.8, 1 GPU(s)"
    assert check.data["library"] == str((driver / "libcuda.so.1").resolve())


@pytest.mark.parametrize(
    ("code", "name", "hint"),
    [
        (3, "cudaErrorInitializationError", "dmesg"),
        (35, "cudaErrorInsufficientDriver", "newer driver"),
        (46, "cudaErrorDevicesUnavailable", "exclusive"),
        (802, "cudaErrorSystemNotReady", "nvidia-fabricmanager"),
        (803, "cudaErrorSystemDriverMismatch", "reboot"),
        (804, "cudaErrorCompatNotSupportedOnDevice", "cuda-compat"),
        (999, "cudaErrorUnknown", "modprobe nvidia_uvm"),
        (4711, "error 4711", "dmesg"),
    ],
)
def test_an_error_code_is_named_with_its_remedy(driver: Path, code: int, name: str, hint: str) -> None:
    check = _init(driver, str(code))
    assert check.status is Status.FAIL
    assert str(code) in check.summary and name in check.summary
    assert hint in check.hint


def test_no_device_where_there_is_no_gpu_is_skipped_with_a_reason(driver: Path) -> None:
    check = _init(driver, "100")
    assert check.status is Status.SKIP
    assert "no NVIDIA GPU" in check.summary and check.hint


def test_no_driver_at_all_is_skipped_with_a_reason(tmp_path: Path) -> None:
    check = _init(tmp_path, "0")
    assert check.status is Status.SKIP
    assert "no NVIDIA GPU" in check.summary


def test_a_driver_that_hangs_is_ended(driver: Path) -> None:
    check = _init(driver, "hang", limit=1)
    assert check.status is Status.FAIL
    assert "cuInit did not return within 1 s" in check.summary
    assert check.seconds < 3


def test_a_driver_that_crashes(driver: Path) -> None:
    check = _init(driver, "segv")
    assert check.status is Status.FAIL
    assert "crashed with SIGSEGV (cuInit)" in check.summary
