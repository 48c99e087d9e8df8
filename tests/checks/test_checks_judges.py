"""Each judge on recorded data: what is right, and every way in which it can be wrong."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from envkit.checks import CATALOGUE, UNKNOWN, Target
from envkit.checks.catalogue.archs import Fit, fit
from envkit.checks.definition import Context, Verdict
from envkit.checks.outcome import Link, Outcome
from envkit.model import Environment, Status, Variant

BY_ID = {info.id: info for info in CATALOGUE}
MIB = 1 << 20
GIB = 1 << 30

OK, WARN, FAIL, SKIP = Status.OK, Status.WARN, Status.FAIL, Status.SKIP


def environment(accelerator: str = "cpu") -> Environment:
    asked = Variant(
        name="v",
        python="3.11",
        accelerator=accelerator,
        torch="2.5.*",
        source="pytorch",
        platforms=("linux-64",),
    )
    return Environment(name="v", prefix=Path("/envs/v"), asked=asked)


BARE = Target(python=Path("/usr/bin/python3"))
CPU = Target.of(environment())
CUDA = Target.of(environment("12.4"))

RUNS = {"version": "3.11.7", "implementation": "CPython", "prefix": "/envs/v", "pythonhome": None}
ISOLATED = {
    "prefixes": ["/envs/v"],
    "pythonpath": [],
    "user_site": None,
    "torch": "/envs/v/lib/site-packages",
}
TORCH = {
    "version": "2.5.1",
    "folder": "/envs/v/lib/site-packages",
    "prefixes": ["/envs/v"],
    "seconds": 3.2,
    "warnings": [],
}
BUILD = {"version": "2.5.1", "cuda": "12.4", "hip": None}
SHM = {"total": GIB, "free": GIB, "type": "tmpfs"}
CAPACITY = {
    "need": 220 * MIB,
    "allocated": 220 * MIB,
    "problem": None,
    "mount_free": GIB,
    "cgroup_left": None,
    "host_left": 8 * GIB,
}
FOLDER = {
    "folder": "/tmp",
    "length": 4,
    "free": GIB,
    "socket": True,
    "socket_path": "/tmp/pymp-abcdefgh/listener-abcdefgh",
}
WORKERS = {"workers": 2, "exit_codes": [0, 0], "answers": [0, 1], "processes": 2, "seconds": 0.2}
LOADER = {
    "epochs": 2,
    "samples": 96,
    "orders_right": [True, True],
    "counts": [96, 96],
    "wrong_content": [],
    "workers": [0, 1],
    "first_batch_seconds": 0.1,
}
INIT = {
    "nodes": ["/dev/nvidia0", "/dev/nvidiactl"],
    "module": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14",
    "visible": None,
    "library": "/usr/lib/x86_64-linux-gnu/libcuda.so.550.54.14",
    "code": 0,
    "driver_cuda": 12040,
    "devices": 2,
}
NO_GPU = {**INIT, "nodes": [], "module": None, "library": None, "code": None, "driver_cuda": None}
A100 = {"index": 0, "name": "NVIDIA A100-SXM4-80GB", "capability": "8.0"}
RTX5090 = {"index": 1, "name": "NVIDIA GeForce RTX 5090", "capability": "12.0"}
ARCHS = ["sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90"]
KERNEL = {"index": 0, "sum_right": True, "worst_error": 3e-5, "first_kernel_seconds": 0.4}

# id, target, data, status, what the summary or the hint must say
CASES: list[tuple[str, Target, dict[str, Any], Status, str]] = [
    ("interpreter.runs", CPU, RUNS, OK, "CPython 3.11.7"),
    ("interpreter.runs", BARE, {**RUNS, "prefix": "/usr"}, OK, "/usr"),
    ("interpreter.runs", CPU, {**RUNS, "prefix": "/old/v"}, FAIL, "/old/v"),
    ("interpreter.runs", CPU, {**RUNS, "prefix": "/x", "pythonhome": "/x"}, FAIL, "unset PYTHONHOME"),
    ("interpreter.version", CPU, {"version": "3.11.9"}, OK, "as asked"),
    ("interpreter.version", CPU, {"version": "3.1.1"}, FAIL, "3.11 was asked for"),
    ("interpreter.version", BARE, {"version": "3.8.1"}, OK, "none was asked for"),
    ("interpreter.isolated", CPU, ISOLATED, OK, "own packages"),
    ("interpreter.isolated", CPU, {**ISOLATED, "torch": None}, OK, "own packages"),
    ("interpreter.isolated", CPU, {**ISOLATED, "pythonpath": ["/src"]}, OK, "PYTHONPATH adds /src"),
    (
        "interpreter.isolated",
        CPU,
        {**ISOLATED, "torch": "/src", "pythonpath": ["/src"]},
        FAIL,
        "unset PYTHONPATH",
    ),
    ("interpreter.isolated", BARE, {**ISOLATED, "torch": "/src", "pythonpath": ["/src"]}, WARN, "/src"),
    (
        "interpreter.isolated",
        CPU,
        {**ISOLATED, "torch": "/h/.local", "user_site": "/h/.local"},
        FAIL,
        "NOUSERSITE",
    ),
    ("interpreter.isolated", CPU, {**ISOLATED, "torch": "/envs/v2/lib"}, FAIL, ".pth"),
    ("imports.torch", CPU, TORCH, OK, "2.5.1, imported in 3.2 s"),
    ("imports.torch", CPU, {**TORCH, "folder": "/h/.local/lib"}, FAIL, "not from the environment"),
    ("imports.torch", BARE, {**TORCH, "folder": "/h/.local/lib"}, OK, "2.5.1"),
    ("imports.numpy", CPU, {"version": "1.26", "works": True}, OK, "1.26"),
    ("imports.numpy", CPU, {"version": None, "works": None}, SKIP, "not installed"),
    ("imports.numpy", CPU, {"version": "2.1", "works": False, "problem": "Numpy is not"}, FAIL, "numpy<2"),
    ("torch.build", CUDA, BUILD, OK, "CUDA 12.4, as asked"),
    ("torch.build", CUDA, {**BUILD, "cuda": None}, FAIL, "CPU build, but CUDA 12.4"),
    ("torch.build", CUDA, {**BUILD, "cuda": "11.8"}, FAIL, "CUDA 11.8, but CUDA 12.4"),
    ("torch.build", CUDA, {**BUILD, "cuda": "12.4.1"}, OK, "as asked"),
    ("torch.build", CPU, {**BUILD, "cuda": None}, OK, "CPU build, as asked"),
    ("torch.build", CPU, BUILD, WARN, "though a CPU build"),
    ("torch.build", BARE, BUILD, OK, "nothing was asked for"),
    ("torch.build", BARE, {**BUILD, "cuda": None, "hip": "6.1"}, OK, "ROCm 6.1"),
    ("shm.size", CPU, SHM, OK, "1 GiB"),
    ("shm.size", CPU, {**SHM, "total": 64 * MIB, "free": 64 * MIB}, WARN, "the default of containers"),
    ("shm.size", CPU, {**SHM, "total": 64 * MIB, "free": 64 * MIB}, WARN, "--shm-size"),
    ("shm.size", CPU, {**SHM, "total": 8 * MIB, "free": 8 * MIB}, FAIL, "8 MiB"),
    ("shm.size", CPU, {**SHM, "free": 4 * MIB}, FAIL, "4 MiB free"),
    ("shm.size", CPU, {**SHM, "free": 100 * MIB}, WARN, "need 220 MiB"),
    ("shm.size", CPU, {**SHM, "type": "ext4"}, WARN, "ext4"),
    ("shm.writable", CPU, {"mode": "0o1777", "lock": True}, OK, "can be made"),
    ("shm.writable", CPU, {"mode": "0o755", "lock": True}, WARN, "755"),
    ("shm.capacity", CPU, CAPACITY, OK, "220 MiB allocated"),
    ("shm.capacity", CPU, {**CAPACITY, "cgroup_left": 100 * MIB}, WARN, "memory limit of this container"),
    ("shm.capacity", CPU, {**CAPACITY, "cgroup_left": 10 * MIB}, FAIL, "raise the memory limit"),
    ("shm.capacity", CPU, {**CAPACITY, "host_left": 10 * MIB}, FAIL, "memory of this machine"),
    ("shm.capacity", CPU, {**CAPACITY, "mount_free": 64 * MIB}, WARN, "size of /dev/shm"),
    (
        "shm.capacity",
        CPU,
        {**CAPACITY, "allocated": 8 * MIB, "problem": "No space left on device"},
        FAIL,
        "only 8 MiB",
    ),
    ("fds.limit", CPU, {"soft": 1024, "open": 6}, OK, "1024 open files"),
    ("fds.limit", CPU, {"soft": -1, "open": 6}, OK, "no limit"),
    ("fds.limit", CPU, {"soft": 512, "open": 6}, WARN, "ulimit -n 65535"),
    ("fds.limit", CPU, {"soft": 64, "open": 6}, FAIL, "ulimit -n 65535"),
    ("fds.limit", CPU, {"soft": 1024, "open": 1000}, FAIL, "1000 in use"),
    ("tmpdir.usable", CPU, FOLDER, OK, "/tmp"),
    ("tmpdir.usable", CPU, {**FOLDER, "free": MIB}, WARN, "only 1 MiB left"),
    (
        "tmpdir.usable",
        CPU,
        {**FOLDER, "length": 80, "socket": False, "socket_problem": "AF_UNIX path too long"},
        FAIL,
        "80 characters, 75 are possible",
    ),
    ("tmpdir.usable", CPU, {**FOLDER, "length": 80}, WARN, "older versions of Python hang"),
    ("tmpdir.usable", CPU, {**FOLDER, "socket": False, "socket_problem": "denied"}, FAIL, "no socket"),
    *(
        case
        for method in ("fork", "spawn", "forkserver")
        for case in (
            (f"workers.{method}", CPU, WORKERS, OK, "2 workers started"),
            (f"workers.{method}", CPU, {**WORKERS, "exit_codes": [0, -11]}, FAIL, "exit code -11"),
            (f"workers.{method}", CPU, {**WORKERS, "answers": [0]}, FAIL, "1 of 2 workers answered"),
            (f"workers.{method}", CPU, {**WORKERS, "processes": 1}, FAIL, "workers answered"),
            (f"loader.{method}", CPU, LOADER, OK, "96 samples x 2 epochs right"),
            (
                f"loader.{method}",
                CPU,
                {**LOADER, "counts": [96, 192]},
                FAIL,
                "192 samples came instead of 96",
            ),
            (f"loader.{method}", CPU, {**LOADER, "counts": [96]}, FAIL, "0 samples came"),
            (f"loader.{method}", CPU, {**LOADER, "orders_right": [True, False]}, FAIL, "wrong order"),
            (f"loader.{method}", CPU, {**LOADER, "wrong_content": [7]}, FAIL, "sample 7"),
            (f"loader.{method}", CPU, {**LOADER, "workers": [-1]}, FAIL, "only workers [-1]"),
        )
    ),
    ("cuda.init", CUDA, INIT, OK, "CUDA 12.4, 2 GPU(s)"),
    ("cuda.init", CUDA, NO_GPU, SKIP, "run envkit validate v there"),
    ("cuda.init", BARE, NO_GPU, SKIP, "no NVIDIA GPU here"),
    ("cuda.init", CUDA, {**NO_GPU, "nodes": ["/dev/nvidia0"]}, FAIL, "libcuda.so.1 is not found"),
    ("cuda.init", CUDA, {**NO_GPU, "module": "NVRM"}, FAIL, "--gpus all"),
    ("cuda.init", CUDA, {**INIT, "nodes": [], "code": 100}, SKIP, "no NVIDIA GPU here"),
    ("cuda.init", CUDA, {**INIT, "code": 100, "visible": "-1"}, FAIL, "CUDA_VISIBLE_DEVICES=-1 hides"),
    ("cuda.init", CUDA, {**INIT, "code": 100, "visible": ""}, FAIL, 'CUDA_VISIBLE_DEVICES="" hides'),
    ("cuda.init", CUDA, {**INIT, "code": 100}, FAIL, "check CUDA_VISIBLE_DEVICES"),
    ("cuda.init", CUDA, {**INIT, "code": 35}, FAIL, "--cuda auto"),
    ("cuda.init", CUDA, {**INIT, "code": 802}, FAIL, "nvidia-fabricmanager"),
    ("cuda.init", CUDA, {**INIT, "code": 803}, FAIL, "reboot"),
    ("cuda.init", CUDA, {**INIT, "code": 804}, FAIL, "cuda-compat"),
    ("cuda.init", CUDA, {**INIT, "code": 999}, FAIL, "modprobe nvidia_uvm"),
    ("cuda.init", CUDA, {**INIT, "code": 777}, FAIL, "error 777"),
    ("cuda.init", CUDA, {**INIT, "driver_cuda": 11080}, FAIL, "CUDA 11.8, torch needs CUDA 12.4"),
    ("cuda.init", CUDA, {**INIT, "driver_cuda": 12000}, OK, "CUDA 12.0"),
    ("cuda.arch", CUDA, {"devices": [A100], "archs": ARCHS}, OK, "A100"),
    ("cuda.arch", CUDA, {"devices": [A100, RTX5090], "archs": ARCHS}, FAIL, "RTX 5090 (12.0)"),
    (
        "cuda.arch",
        CUDA,
        {"devices": [RTX5090], "archs": [*ARCHS, "compute_90"]},
        WARN,
        "compiled on first use",
    ),
    ("cuda.kernel", CUDA, {"results": [KERNEL]}, OK, "right on 1 GPU(s)"),
    ("cuda.kernel", CUDA, {"results": []}, FAIL, "torch sees no GPU"),
    ("cuda.kernel", CUDA, {"results": [KERNEL, {**KERNEL, "index": 1, "sum_right": False}]}, FAIL, "GPU 1"),
    ("cuda.kernel", CUDA, {"results": [{**KERNEL, "worst_error": None}]}, FAIL, "GPU 0"),
]


@pytest.mark.parametrize(
    ("id", "target", "data", "status", "said"),
    CASES,
    ids=[f"{case[0]}-{case[3].value}-{case[4]}" for case in CASES],
)
def test_a_judge(id: str, target: Target, data: Mapping[str, Any], status: Status, said: str) -> None:
    facts = {"torch.build": BUILD if target is CUDA else {**BUILD, "cuda": None}}
    verdict = BY_ID[id].judge(data, Context(target=target, facts=facts))
    assert verdict.status is status, verdict
    assert said in f"{verdict.summary}\n{verdict.hint}"
    assert verdict.hint or verdict.status in (OK, SKIP) or "answered" in verdict.summary


def test_every_check_has_recorded_data_that_is_ok_and_that_fails() -> None:
    for id in BY_ID:
        statuses = {status for case_id, _target, _data, status, _said in CASES if case_id == id}
        assert OK in statuses, id
        assert statuses & {FAIL, WARN}, id


def ended(id: str, **fields: Any) -> Verdict | None:
    info = BY_ID[id]
    outcome = Outcome(job=info.job.id, limit=info.limit, **fields)
    return info.ended(outcome, Context(target=CUDA))


def test_words_for_an_interpreter_that_is_not_there() -> None:
    verdict = ended("interpreter.runs", not_started="/envs/v/bin/python cannot be run: No such file")
    assert verdict is not None and verdict.status is FAIL
    assert "make it again" in verdict.hint


def test_words_for_an_interpreter_that_says_nothing() -> None:
    verdict = ended("interpreter.runs", at="start", code=1, output="SyntaxError")
    assert verdict is not None and "did not run the probe" in verdict.summary


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"timed_out": True, "at": "cuInit", "code": -9}, "cuInit did not return within 20 s"),
        ({"at": "cuInit", "code": -11}, "crashed with SIGSEGV"),
    ],
)
def test_words_for_a_driver_that_hangs_or_crashes(fields: dict[str, Any], said: str) -> None:
    verdict = ended("cuda.init", **fields)
    assert verdict is not None and verdict.status is FAIL
    assert said in verdict.summary
    assert "dmesg" in verdict.hint


@pytest.mark.parametrize(
    ("text", "code", "hint"),
    [
        ("CUDA error: no kernel image is available for execution on the device\nCompile", 209, "--cuda auto"),
        ("CUDA error: out of memory", 2, "nvidia-smi"),
        ("CUDA error: system not yet initialized", 802, "nvidia-fabricmanager"),
        ("CUDA error: CUDA-capable device(s) is/are busy or unavailable", 46, "exclusive"),
        ("CUDA error: initialization error", 3, "dmesg"),
        ("CUDA error: unknown error", 999, "modprobe"),
    ],
)
def test_words_for_a_kernel_that_fails(text: str, code: int, hint: str) -> None:
    verdict = ended(
        "cuda.kernel", chain=(Link(type="RuntimeError", text=text),), at="kernel on cuda:0", code=1
    )
    assert verdict is not None
    assert f"error {code}" in verdict.summary and "cuda:0" in verdict.summary
    assert hint in verdict.hint


def test_words_for_shared_memory_that_is_read_only() -> None:
    link = Link(type="OSError", text="[Errno 30] Read-only file system: '/dev/shm/envkit-x'")
    verdict = ended("shm.writable", chain=(link,), code=1)
    assert verdict is not None and "Read-only" in verdict.summary and "remount,rw" in verdict.hint


def test_words_for_a_process_that_memory_ran_out_for() -> None:
    verdict = ended("shm.capacity", code=-9, out_of_memory=True)
    assert verdict is not None and "memory limit" in verdict.summary


def test_words_for_a_temporary_folder_that_is_not_there() -> None:
    link = Link(type="FileNotFoundError", text="[Errno 2] No usable temporary directory found in ['/tmp']")
    verdict = ended("tmpdir.usable", chain=(link,), code=1)
    assert (
        verdict is not None and "no usable temporary folder" in verdict.summary and "TMPDIR" in verdict.hint
    )


def test_a_cpu_environment_is_spared_the_gpu_checks() -> None:
    for id in ("cuda.init", "cuda.arch", "cuda.kernel"):
        verdict = BY_ID[id].spared(Context(target=CPU))
        assert verdict is not None and verdict.status is SKIP
        assert BY_ID[id].spared(Context(target=CUDA)) is None
        assert BY_ID[id].spared(Context(target=BARE)) is None
        assert BY_ID[id].spared(Context(target=BARE, facts={"torch.build": BUILD})) is None
        assert BY_ID[id].spared(Context(target=BARE, facts={"torch.build": {"cuda": None}})) is not None


@pytest.mark.parametrize(
    ("capability", "archs", "expected"),
    [
        ("8.9", ["sm_86"], Fit.BINARY),
        ("6.1", ["sm_60"], Fit.BINARY),
        ("12.1", ["sm_120"], Fit.BINARY),
        ("10.3", ["sm_100"], Fit.BINARY),
        ("10.3", ["sm_100f"], Fit.BINARY),
        ("10.3", ["sm_100a"], Fit.NONE),
        ("10.0", ["sm_100a"], Fit.BINARY),
        ("10.0", ["sm_90"], Fit.NONE),
        ("12.0", ["sm_90", "sm_90a", "compute_90"], Fit.PTX),
        ("12.0", ["compute_90a"], Fit.NONE),
        ("8.0", ["sm_86", "compute_86"], Fit.NONE),
        ("7.0", ["sm_75", "sm_80"], Fit.NONE),
        ("3.7", ["sm_37", "gibberish"], Fit.BINARY),
        ("8.6", [], Fit.NONE),
    ],
)
def test_the_binary_rule(capability: str, archs: list[str], expected: Fit) -> None:
    assert fit(capability, archs) is expected


def test_what_was_asked_comes_from_the_environment() -> None:
    assert CUDA.cuda == "12.4" and CUDA.python_version == "3.11"
    assert CPU.cuda is None
    assert Target.of(Environment(name="x", prefix=Path("/x"))).cuda == UNKNOWN
    assert Target.at(Path("python3")).python == Path.cwd() / "python3"
    assert Target.at(Path("p")).cuda == UNKNOWN
    assert Target.at(Path("p"), "cpu").cuda is None
    assert Target.at(Path("p"), "12.4").cuda == "12.4"
