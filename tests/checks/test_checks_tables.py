"""The tables of known failures, and real texts that they must recognise."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from envkit.checks import CATALOGUE
from envkit.checks.definition import Where
from envkit.checks.remedies import REMEDIES, remedy
from envkit.checks.tables import cuda_error, cuda_errors, find_symptom, symptoms
from envkit.model import Severity

SHARED = Path(__file__).parents[2].parent / "shared"


def test_every_row_has_a_source_and_words() -> None:
    for row in (*cuda_errors(), *symptoms()):
        assert row.source.startswith("https://"), row
        assert remedy(row.remedy), row
        assert row.hint == remedy(row.remedy)


def test_codes_and_ids_stand_once() -> None:
    codes = [row.code for row in cuda_errors()]
    ids = [row.id for row in symptoms()]
    assert len(set(codes)) == len(codes)
    assert len(set(ids)) == len(ids)
    assert all(words() for words in REMEDIES.values())


@pytest.mark.skipif(
    not (SHARED / "facts" / "driver_cuda.yaml").exists(), reason="no facts beside the checkout"
)
def test_every_error_code_of_the_facts_is_known() -> None:
    facts = yaml.safe_load((SHARED / "facts" / "driver_cuda.yaml").read_text())
    for row in facts["error_codes"]:
        known = cuda_error(row["code"])
        assert known is not None and known.name == row["name"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ModuleNotFoundError: No module named 'torch'", "no-torch"),
        ("ModuleNotFoundError: No module named 'torchvision'", None),
        ("/lib/x86_64-linux-gnu/libstdc++.so.6: version `GLIBCXX_3.4.29' not found", "glibcxx"),
        ("undefined symbol: _ZSt, version GLIBCXX_3.4.21", "glibcxx"),
        ("/lib64/libc.so.6: version `GLIBC_2.28' not found (required by libtorch_cpu.so)", "glibc"),
        ("libtorch_cpu.so: undefined symbol: iJIT_NotifyEvent", "mkl"),
        (
            "libcusparse.so.12: undefined symbol: __nvJitLinkComplete_12_4, version libnvJitLink.so.12",
            "nvjitlink",
        ),
        ("RuntimeError: Numpy is not available", "numpy"),
        ("A module that was compiled using NumPy 1.x cannot be run in NumPy 2.1.0", "numpy"),
        ("ImportError: libcudnn.so.9: cannot open shared object file: No such file", "missing-library"),
        ("AssertionError: Torch not compiled with CUDA enabled", "not-compiled"),
        ("The NVIDIA driver on your system is too old (found version 11040)", "driver-old"),
        ("RuntimeError: Found no NVIDIA driver on your system.", "no-driver"),
        ("RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use", "fork-cuda"),
        (
            "RuntimeError: unable to allocate shared memory(shm) for file </torch_1_2_0>:"
            " No space left on device (28)",
            "shm-full",
        ),
        ("ERROR: Unexpected bus error encountered in worker. This might be caused by", "shm-full"),
        ("DataLoader worker (pid 9) is killed by signal: Bus error. It is possible", "shm-full"),
        ("unable to resize file </torch_1>: File too large (27)", "file-size"),
        ("OSError: AF_UNIX path too long", "unix-path"),
        ("Too many open files. Communication with the workers is no longer possible.", "descriptors"),
        ("RuntimeError: received 0 items of ancdata", "descriptors"),
        ("FileNotFoundError: [Errno 2] No usable temporary directory found in ['/tmp']", "no-tmp"),
        ("DataLoader worker (pid 9) is killed by signal: Killed.", "oom-worker"),
        ("DataLoader worker (pid 9) is killed by signal: Segmentation fault.", "worker-crash"),
        ("BlockingIOError: [Errno 11] Resource temporarily unavailable", "processes"),
        ("OSError: [Errno 28] No space left on device", "disk-full"),
        ("ValueError: of the user's own", None),
    ],
)
def test_a_text_is_recognised(text: str, expected: str | None) -> None:
    found = find_symptom(text)
    assert (found.id if found else None) == expected


def test_the_catalogue_is_complete() -> None:
    ids = [info.id for info in CATALOGUE]
    assert len(set(ids)) == len(ids)
    for position, info in enumerate(CATALOGUE):
        area, _dot, name = info.id.partition(".")
        assert area.isalpha() and name and name == name.lower()
        assert info.title and info.proves and info.source.startswith("https://") and info.limit > 0
        assert isinstance(info.severity, Severity)
        # What a check needs stands before it: the order of the report is an order in which they can run.
        assert set(info.needs) <= set(ids[:position])
        stages = list(Where)
        for need in info.needs:
            needed = next(other for other in CATALOGUE if other.id == need)
            assert stages.index(needed.job.where) <= stages.index(info.job.where)
