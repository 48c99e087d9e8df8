"""CPU and memory limits from trees of cgroup v1, v2, both, nested and in containers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from envkit.host.cgroups import cpu_limit, memory_limit

Tree = Callable[[Mapping[str, str]], Path]

GIB = 1 << 30
V2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
V1 = (
    "31 23 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "32 23 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "33 23 0:29 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
)
MACHINE = {
    "proc/meminfo": f"MemTotal:       {64 * GIB // 1024} kB\nMemFree: 1 kB\n",
    "proc/self/status": "Name:\tpython\nCpus_allowed_list:\t0-15\n",
}
NO_LIMIT_V1 = "9223372036854771712\n"


def test_without_cgroups_the_machine_and_the_affinity_count(tree: Tree) -> None:
    root = tree({**MACHINE, "proc/self/status": "Cpus_allowed_list:\t0-3,8,10-11\n"})
    assert cpu_limit(root) == 7.0
    assert memory_limit(root) == 64 * GIB


def test_nothing_readable_is_not_known(tree: Tree) -> None:
    root = tree({"proc/self/status": "Cpus_allowed_list:\n", "proc/meminfo": "MemTotal: many kB\n"})
    assert cpu_limit(root) is None
    assert memory_limit(root) is None


def test_v2_takes_the_least_of_all_ancestors(tree: Tree) -> None:
    group = "sys/fs/cgroup/user.slice/job.scope"
    root = tree(
        {
            **MACHINE,
            "proc/self/cgroup": "0::/user.slice/job.scope/step\n",
            "proc/self/mountinfo": V2,
            f"{group}/step/cpu.max": "max 100000\n",
            f"{group}/step/memory.max": "max\n",
            f"{group}/cpu.max": "250000 100000\n",
            f"{group}/memory.max": f"{8 * GIB}\n",
            "sys/fs/cgroup/user.slice/cpu.max": "800000 100000\n",
            "sys/fs/cgroup/user.slice/memory.max": f"{4 * GIB}\n",
        }
    )
    assert cpu_limit(root) == 2.5
    assert memory_limit(root) == 4 * GIB


def test_v2_in_a_container_reads_its_own_root(tree: Tree) -> None:
    root = tree(
        {
            **MACHINE,
            "proc/self/cgroup": "0::/\n",
            "proc/self/mountinfo": V2,
            "sys/fs/cgroup/cpu.max": "50000 100000\n",
            "sys/fs/cgroup/memory.max": f"{2 * GIB}\n",
            "sys/fs/cgroup/cpuset.cpus.effective": "0-3\n",
        }
    )
    assert cpu_limit(root) == 0.5
    assert memory_limit(root) == 2 * GIB


def test_v2_with_a_group_above_the_namespace_reads_the_mount(tree: Tree) -> None:
    root = tree(
        {
            **MACHINE,
            "proc/self/cgroup": "0::/../../other\n",
            "proc/self/mountinfo": V2,
            "sys/fs/cgroup/memory.max": f"{3 * GIB}\n",
        }
    )
    assert memory_limit(root) == 3 * GIB


def test_v2_cpuset_counts(tree: Tree) -> None:
    root = tree(
        {
            **MACHINE,
            "proc/self/cgroup": "0::/a\n",
            "proc/self/mountinfo": V2,
            "sys/fs/cgroup/a/cpuset.cpus.effective": "2,4\n",
        }
    )
    assert cpu_limit(root) == 2.0


def test_v1_takes_the_least_of_all_ancestors(tree: Tree) -> None:
    root = tree(
        {
            **MACHINE,
            "proc/self/cgroup": "4:memory:/slurm/uid_1/job_2\n3:cpuset:/slurm\n2:cpu,cpuacct:/slurm/uid_1\n",
            "proc/self/mountinfo": V1,
            "sys/fs/cgroup/memory/memory.limit_in_bytes": NO_LIMIT_V1,
            "sys/fs/cgroup/memory/slurm/memory.limit_in_bytes": NO_LIMIT_V1,
            "sys/fs/cgroup/memory/slurm/uid_1/memory.limit_in_bytes": f"{16 * GIB}\n",
            "sys/fs/cgroup/memory/slurm/uid_1/job_2/memory.limit_in_bytes": f"{32 * GIB}\n",
            "sys/fs/cgroup/cpu,cpuacct/slurm/uid_1/cpu.cfs_quota_us": "-1\n",
            "sys/fs/cgroup/cpu,cpuacct/slurm/uid_1/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/cpu,cpuacct/slurm/cpu.cfs_quota_us": "600000\n",
            "sys/fs/cgroup/cpu,cpuacct/slurm/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/cpuset/slurm/cpuset.cpus": "0-7\n",
        }
    )
    assert cpu_limit(root) == 6.0
    assert memory_limit(root) == 16 * GIB


def test_v1_in_docker_knows_that_its_group_is_the_mount(tree: Tree) -> None:
    mounts = (
        "40 30 0:28 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
        "41 30 0:29 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro master:11 - cgroup cgroup rw,cpu,cpuacct\n"
    )
    root = tree(
        {
            **MACHINE,
            "proc/self/cgroup": "4:memory:/docker/abc\n2:cpu,cpuacct:/docker/abc\n",
            "proc/self/mountinfo": mounts,
            "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{GIB}\n",
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "150000\n",
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
        }
    )
    assert cpu_limit(root) == 1.5
    assert memory_limit(root) == GIB


def test_hybrid_reads_both_hierarchies(tree: Tree) -> None:
    root = tree(
        {
            **MACHINE,
            "proc/self/cgroup": "4:memory:/job\n2:cpu,cpuacct:/job\n0::/system.slice/job\n",
            "proc/self/mountinfo": V1 + V2.replace("/sys/fs/cgroup ", "/sys/fs/cgroup/unified "),
            "sys/fs/cgroup/memory/job/memory.limit_in_bytes": f"{8 * GIB}\n",
            "sys/fs/cgroup/unified/system.slice/memory.max": f"{6 * GIB}\n",
            "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us": "400000\n",
            "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/unified/system.slice/job/cpu.max": "300000 100000\n",
        }
    )
    assert cpu_limit(root) == 3.0
    assert memory_limit(root) == 6 * GIB


def test_a_mount_point_with_a_space_is_unescaped(tree: Tree) -> None:
    root = tree(
        {
            **MACHINE,
            "proc/self/cgroup": "0::/\n",
            "proc/self/mountinfo": "30 23 0:26 / /my\\040groups rw - cgroup2 cgroup2 rw\n",
            "my groups/memory.max": f"{5 * GIB}\n",
        }
    )
    assert memory_limit(root) == 5 * GIB


@pytest.mark.parametrize("text", ["", "0 0\n", "max max\n", "-1 100000\n", "garbage", "100000\n"])
def test_a_quota_that_makes_no_sense_is_no_limit(tree: Tree, text: str) -> None:
    root = tree(
        {
            **MACHINE,
            "proc/self/cgroup": "0::/a\nnonsense\n",
            "proc/self/mountinfo": "short\n" + V2 + "a b c d e - cgroup\n",
            "sys/fs/cgroup/a/cpu.max": text,
        }
    )
    assert cpu_limit(root) == 16.0
