"""What the kernel lets this process use: affinity, cpusets, CPU quotas and memory limits.

A limit set on any control group above the process holds for it, and a container sees its own group as the
root of a tree whose real top lies outside. So every group from the process's own up to the mount is read,
for cgroup v1, v2 and both side by side (hybrid), and the least counts.
See https://docs.kernel.org/admin-guide/cgroup-v2.html and …/cgroup-v1/memory.html.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["cpu_limit", "memory_limit"]

_UNLIMITED = 1 << 60
"""cgroup v1 writes "no limit" as the largest number of whole pages, about 2**63 bytes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Mount:
    """Where a hierarchy is mounted; `top` is the group that is seen at `folder`."""

    folder: Path
    top: str
    controllers: frozenset[str]
    unified: bool


def cpu_limit(root: Path) -> float | None:
    """How many CPUs may be kept busy at once: the least of affinity, cpusets and every quota above."""
    limits = [_affinity(root)]
    for group, unified in _groups(root, "cpu"):
        limits.append(_quota(group, unified=unified))
    for group, unified in _groups(root, "cpuset"):
        names = ("cpuset.cpus.effective",) if unified else ("cpuset.effective_cpus", "cpuset.cpus")
        limits.append(next((count for name in names if (count := _cpu_list(_text(group / name)))), None))
    return _least(limits)


def memory_limit(root: Path) -> int | None:
    """Bytes this process may use: the least of the machine's memory and every limit above it."""
    limits = [_memory_of_machine(root)]
    for group, unified in _groups(root, "memory"):
        text = _text(group / ("memory.max" if unified else "memory.limit_in_bytes")).strip()
        limits.append(int(text) if text.isdigit() and int(text) < _UNLIMITED else None)
    least = _least(limits)
    return None if least is None else int(least)


def _least(limits: list[float | None] | list[int | None]) -> float | None:
    return min((limit for limit in limits if limit is not None), default=None)


def _quota(group: Path, *, unified: bool) -> float | None:
    if unified:
        quota, _separator, period = _text(group / "cpu.max").strip().partition(" ")
    else:
        quota = _text(group / "cpu.cfs_quota_us").strip()
        period = _text(group / "cpu.cfs_period_us").strip()
    if quota.isdigit() and period.isdigit() and int(quota) > 0 and int(period) > 0:
        return int(quota) / int(period)
    return None


def _affinity(root: Path) -> float | None:
    match = re.search(r"^Cpus_allowed_list:\s*(\S+)", _text(root / "proc/self/status"), re.MULTILINE)
    return _cpu_list(match[1]) if match else None


def _cpu_list(text: str) -> float | None:
    """How many CPUs a kernel list such as "0-3,8" names; None where it names none."""
    count = 0
    for part in text.strip().split(","):
        first, _separator, last = part.partition("-")
        if not first.isdigit() or (last and not last.isdigit()):
            return None
        count += int(last or first) - int(first) + 1
    return float(count) if count > 0 else None


def _memory_of_machine(root: Path) -> int | None:
    match = re.search(r"^MemTotal:\s*(\d+) kB", _text(root / "proc/meminfo"), re.MULTILINE)
    return int(match[1]) * 1024 if match else None


def _groups(root: Path, controller: str) -> Iterator[tuple[Path, bool]]:
    """The folders of the control groups around this process that `controller` may act in, innermost first.

    The second value says whether the folder belongs to the unified hierarchy (cgroup v2).
    """
    paths = dict(_paths(root))
    for mount in _mounts(root):
        if not mount.unified and controller not in mount.controllers:
            continue
        path = paths.get("" if mount.unified else controller)
        if path is None:
            continue
        for folder in _ancestors(mount, path):
            yield folder, mount.unified


def _ancestors(mount: _Mount, path: str) -> Iterator[Path]:
    """From the process's own group up to the mount point, in the mount's own terms."""
    parts = [part for part in path.split("/") if part]
    top = [part for part in mount.top.split("/") if part]
    if parts[: len(top)] == top:
        parts = parts[len(top) :]
    if ".." in parts:
        # The group lies above the root of this process's cgroup namespace; only the mount itself is visible.
        parts = []
    for length in range(len(parts), -1, -1):
        folder = mount.folder.joinpath(*parts[:length])
        if folder.is_dir():
            yield folder


def _paths(root: Path) -> Iterator[tuple[str, str]]:
    """The process's group per controller, "" standing for the unified hierarchy."""
    for line in _text(root / "proc/self/cgroup").splitlines():
        _number, separator, rest = line.partition(":")
        controllers, second, path = rest.partition(":")
        if separator and second:
            for controller in controllers.split(","):
                yield controller, path


def _mounts(root: Path) -> Iterator[_Mount]:
    """The cgroup file systems in mountinfo (see proc_pid_mountinfo(5))."""
    for line in _text(root / "proc/self/mountinfo").splitlines():
        before, separator, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if not separator or len(fields) < 5 or not kind or kind[0] not in ("cgroup", "cgroup2"):
            continue
        options = kind[2].split(",") if len(kind) > 2 else []
        yield _Mount(
            folder=root / _unescape(fields[4]).lstrip("/"),
            top=_unescape(fields[3]),
            controllers=frozenset(options),
            unified=kind[0] == "cgroup2",
        )


def _unescape(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
