"""How much memory may still be used: the least that the machine and each memory cgroup above us allow.

Pages of /dev/shm count against the cgroup, so that a process can be killed for memory while statvfs still
shows free gigabytes (https://kubernetes.io/docs/concepts/storage/volumes/#emptydir). `root` is for tests.
"""

from __future__ import annotations

import os
from typing import Dict, Iterator, Optional

# cgroup v1 writes "no limit" as the largest multiple of the page size that fits a signed 64-bit number.
_NO_LIMIT = 1 << 60


def headroom(root: str = "/") -> Dict[str, Optional[int]]:
    """Bytes left to this process: `host` (MemAvailable), `cgroup` (least of limit minus usage); or None."""
    return {"host": _available(root), "cgroup": _cgroup_headroom(root)}


def _available(root: str) -> Optional[int]:
    try:
        with open(os.path.join(root, "proc/meminfo")) as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return None


def _cgroup_headroom(root: str) -> Optional[int]:
    left = []
    for folder in folders(root):
        for limit_name, usage_name, cache_name in (
            ("memory.max", "memory.current", "inactive_file"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
        ):
            limit, usage = _number(folder, limit_name), _number(folder, usage_name)
            if limit is not None and usage is not None and limit < _NO_LIMIT:
                left.append(max(0, limit - max(0, usage - _reclaimable(folder, cache_name))))
    return min(left) if left else None


def folders(root: str = "/") -> Iterator[str]:
    """The folder of every memory cgroup above this process, nearest first; v1 and v2 may both be there."""
    try:
        with open(os.path.join(root, "proc/self/cgroup")) as file:
            lines = file.read().splitlines()
    except OSError:
        return
    mounts = os.path.join(root, "sys/fs/cgroup")
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers == "":
            tops = [mounts, os.path.join(mounts, "unified")]
        elif "memory" in controllers.split(","):
            tops = [os.path.join(mounts, "memory")]
        else:
            continue
        for top in tops:
            # In a container the path is often that of the host, and only the mount's own root is there.
            folder = os.path.normpath(top + "/" + path)
            while len(folder) >= len(top):
                if os.path.isdir(folder):
                    yield folder
                folder = os.path.dirname(folder)


def _number(folder: str, name: str) -> Optional[int]:
    try:
        with open(os.path.join(folder, name)) as file:
            return int(file.read())
    except (OSError, ValueError):  # "max" means no limit
        return None


def _reclaimable(folder: str, name: str) -> int:
    try:
        with open(os.path.join(folder, "memory.stat")) as file:
            for line in file:
                key, _, value = line.partition(" ")
                if key == name:
                    return int(value)
    except (OSError, ValueError):
        pass
    return 0
