"""A whole Host from the running machine and from trees of fixtures."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from envkit.host import read_host
from envkit.host.drivers import driver_floor, newest_cuda, numbers
from envkit.model import Gpu

Tree = Callable[[Mapping[str, str]], Path]

PROPRIETARY = (
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\n"
    "GCC version:  gcc version 11.4.0 (Ubuntu 11.4.0-1ubuntu1~22.04)\n"
)
OPEN = (
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.14  Release Build  (dvs-builder@U16)\n"
)


def test_the_running_machine_has_facts() -> None:
    host = read_host()
    assert "-" in host.platform
    assert host.cpus is not None and 0 < host.cpus <= len(os.sched_getaffinity(0))
    assert host.memory_limit is not None and host.memory_limit > 1 << 20
    if sys.platform == "linux" and os.confstr("CS_GNU_LIBC_VERSION"):
        assert host.glibc is not None and numbers(host.glibc) >= (2, 17)


def test_an_empty_tree_gives_a_host_of_unknowns(tree: Tree) -> None:
    host = read_host(tree({}), {})
    assert (host.driver, host.driver_cuda, host.gpus, host.cpus, host.memory_limit) == (
        None,
        None,
        (),
        None,
        None,
    )
    assert (host.shm_size, host.container, host.scheduler, host.wsl, host.override_cuda) == (
        None,
        None,
        None,
        False,
        None,
    )


@pytest.mark.parametrize(
    ("text", "driver", "cuda"), [(PROPRIETARY, "535.104.05", "12.2"), (OPEN, "550.54.14", "12.4")]
)
def test_the_kernel_module_tells_driver_and_gpus(tree: Tree, text: str, driver: str, cuda: str) -> None:
    root = tree(
        {
            "proc/driver/nvidia/version": text,
            "proc/driver/nvidia/gpus/0000:3b:00.0/information": (
                "Model: \t\t NVIDIA A100-SXM4-40GB\nIRQ:   \t\t 42\nGPU UUID: \t GPU-1234\n"
            ),
            "proc/driver/nvidia/gpus/0000:af:00.0/": "",
        }
    )
    host = read_host(root, {})
    assert (host.driver, host.driver_cuda) == (driver, cuda)
    assert host.gpus == (
        Gpu(index=0, name="NVIDIA A100-SXM4-40GB", uuid="GPU-1234"),
        Gpu(index=1, name="GPU 1"),
    )


@pytest.mark.parametrize(
    ("files", "environ", "kind"),
    [
        ({".dockerenv": ""}, {}, "docker"),
        ({"run/.containerenv": ""}, {}, "podman"),
        ({".singularity.d/": "", ".dockerenv": ""}, {}, "apptainer"),
        ({}, {"APPTAINER_CONTAINER": "/x.sif"}, "apptainer"),
        ({".dockerenv": ""}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "kubernetes"),
        ({"var/run/secrets/kubernetes.io/": ""}, {}, "kubernetes"),
        ({"proc/self/cgroup": "1:cpu:/kubepods/besteffort/pod1\n"}, {}, "kubernetes"),
        ({"proc/self/cgroup": "1:cpu:/docker/abc\n"}, {}, "docker"),
        ({"proc/self/cgroup": "0::/user.slice\n"}, {}, None),
    ],
)
def test_a_container_is_known_by_its_signs(
    tree: Tree, files: dict[str, str], environ: dict[str, str], kind: str | None
) -> None:
    assert read_host(tree(files), environ).container == kind


@pytest.mark.parametrize(
    ("version", "wsl"),
    [
        ("Linux version 5.15.90.1-microsoft-standard-WSL2 (oe-user@oe-host)", True),
        ("Linux version 4.4.0-19041-Microsoft (Microsoft@Microsoft.com)", True),
        ("Linux version 6.1.0-18-amd64 (debian-kernel@lists.debian.org)", False),
    ],
)
def test_wsl_is_known_by_its_kernel(tree: Tree, version: str, wsl: bool) -> None:
    assert read_host(tree({"proc/version": version + "\n"}), {}).wsl is wsl


@pytest.mark.parametrize(
    ("command", "scheduler"), [("sbatch", "slurm"), ("bsub", "lsf"), ("qsub", "pbs"), ("qconf", "sge")]
)
def test_a_scheduler_is_known_by_its_commands(tree: Tree, command: str, scheduler: str) -> None:
    root = tree({f"opt/cluster/bin/{command}": "#!/bin/sh\n"})
    environ = {"PATH": "/usr/bin:/opt/cluster/bin:"}
    assert read_host(root, environ).scheduler is None  # not executable
    (root / "opt/cluster/bin" / command).chmod(0o755)
    assert read_host(root, environ).scheduler == scheduler
    assert read_host(root, {"PATH": ""}).scheduler is None


def test_the_override_is_passed_on_even_when_empty(tree: Tree) -> None:
    assert read_host(tree({}), {"CONDA_OVERRIDE_CUDA": "12.4"}).override_cuda == "12.4"
    assert read_host(tree({}), {"CONDA_OVERRIDE_CUDA": ""}).override_cuda == ""


@pytest.mark.parametrize(
    ("driver", "windows", "cuda"),
    [
        ("418.87.01", False, None),
        ("450.51.06", False, None),
        ("450.80.02", False, "11.0"),
        ("470.82.01", False, "11.0"),  # shipped with 11.4, which the table lacks: its major at least
        ("510.47.03", False, "11.6"),
        ("520.61.05", False, "11.8"),
        ("525.60.13", False, "12.0"),
        ("535.104.05", False, "12.2"),
        ("575.57.08", False, "12.9"),
        ("580.65.06", False, "13.0"),
        ("620.10.01", False, "13.3"),
        ("452.39", True, "11.0"),
        ("537.13", True, "12.2"),
        ("580.88", True, "13.0"),
    ],
)
def test_a_driver_knows_the_cuda_it_was_shipped_with(driver: str, windows: bool, cuda: str | None) -> None:
    assert newest_cuda(driver, windows=windows) == cuda


def test_floors_are_those_of_the_major_version() -> None:
    floor = driver_floor("12.9")
    assert floor is not None
    assert (floor.driver(windows=False), floor.driver(windows=True)) == ("525.60.13", "528.33")
    assert driver_floor("10.2") is None


# A small real libnvidia-ml: NVML's calls for one MIG-enabled A100 and one card that answers nothing else.
NVML = r"""
#include <string.h>
typedef struct { unsigned long long total, free, used; } memory;
int nvmlInit_v2(void) { return 0; }
int nvmlInitWithFlags(unsigned flags) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlSystemGetDriverVersion(char *text, unsigned n) { strcpy(text, "525.125.06"); return 0; }
int nvmlSystemGetCudaDriverVersion_v2(int *version) { *version = 12000; return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 3; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **handle) {
    if (i == 2) return 4;                       /* no permission */
    *handle = (void *)(unsigned long)(i + 1);
    return 0;
}
static int first(void *handle) { return handle == (void *)1; }
int nvmlDeviceGetName(void *h, char *text, unsigned n) {
    if (!first(h)) return 999;
    strcpy(text, "NVIDIA A100-SXM4-40GB");
    return 0;
}
int nvmlDeviceGetUUID(void *h, char *text, unsigned n) {
    if (!first(h)) return 999;
    strcpy(text, "GPU-1");
    return 0;
}
int nvmlDeviceGetCudaComputeCapability(void *h, int *major, int *minor) {
    if (!first(h)) return 999;
    *major = 8; *minor = 0;
    return 0;
}
int nvmlDeviceGetMigMode(void *h, unsigned *current, unsigned *pending) {
    if (!first(h)) return 3;                    /* not supported */
    *current = *pending = 1;
    return 0;
}
int nvmlDeviceGetMemoryInfo(void *h, memory *info) {
    if (!first(h)) return 999;
    info->total = 42949672960ULL; info->free = 1; info->used = 2;
    return 0;
}
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.skipif(sys.platform != "linux", reason="NVML's library is found by name on Linux")
def test_nvml_is_read_and_what_it_does_not_answer_is_left_out(tmp_path: Path) -> None:
    source = tmp_path / "nvml.c"
    source.write_text(NVML, encoding="utf-8")
    library = tmp_path / "libnvidia-ml.so.1"
    subprocess.run(["cc", "-shared", "-fPIC", "-w", "-o", str(library), str(source)], check=True)
    program = "from envkit.host import read_host; h = read_host(); print(h.driver, h.driver_cuda, h.gpus)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    gpus = (
        Gpu(
            index=0,
            name="NVIDIA A100-SXM4-40GB",
            capability="8.0",
            memory=40 << 30,
            uuid="GPU-1",
            mig=True,
        ),
        Gpu(index=1, name="GPU 1"),
    )
    assert done.stdout.strip() == f"525.125.06 12.0 {gpus}"


def test_the_level_of_the_processor(tree: Tree) -> None:
    flags = "lm cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3"
    assert read_host(tree({"proc/cpuinfo": f"processor : 0\nflags\t\t: fpu {flags}\n"}), {}).cpu_level == 2
    assert read_host(tree({"proc/cpuinfo": "processor : 0\nFeatures : fp asimd\n"}), {}).cpu_level is None
    assert read_host(tree({"proc/cpuinfo": "flags : fpu lm\n"}), {}).cpu_level == 1
