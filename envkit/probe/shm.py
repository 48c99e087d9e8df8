"""Shared memory: how large /dev/shm is, how much of it can honestly be had, whether it can be written."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from typing import Any, Dict, Optional, Tuple

from .channel import Emit
from .memory import headroom

FOLDER = "/dev/shm"
_STEP = 16 << 20
_LAST_STEP = 1 << 18


def size(emit: Emit) -> None:
    there = os.statvfs(FOLDER)
    emit(
        "shm.size",
        {
            "total": there.f_blocks * there.f_frsize,
            "free": there.f_bavail * there.f_frsize,
            "type": _mount_type(),
        },
    )


def writable(emit: Emit) -> None:
    """A file made, grown, read back and removed, then a lock, which is a semaphore in the same place."""
    found: Dict[str, Any] = {"mode": oct(os.stat(FOLDER).st_mode & 0o7777)}
    emit.at("write a file in /dev/shm")
    descriptor, path = tempfile.mkstemp(prefix="envkit-", dir=FOLDER)
    try:
        emit.owns(path)
        os.write(descriptor, b"\0" * 4096)
        os.lseek(descriptor, 0, os.SEEK_SET)
        found["read_back"] = len(os.read(descriptor, 8192))
    finally:
        os.close(descriptor)
        os.unlink(path)
    emit.at("multiprocessing.Lock()")
    with multiprocessing.Lock():
        found["lock"] = True
    emit("shm.writable", found)


def capacity(emit: Emit, need: int) -> None:
    """Allocate, for real and never more than half of what the memory limit leaves, then give it back.

    `need` is in bytes. This process is the one to be killed if the limits lie.
    """
    left = headroom()
    least = min((amount for amount in left.values() if amount is not None), default=None)
    ceiling = need if least is None else min(need, least // 2)
    free = os.statvfs(FOLDER)
    emit.at("allocate %d bytes in /dev/shm" % ceiling)
    got, problem = _allocate(ceiling)
    emit(
        "shm.capacity",
        {
            "need": need,
            "tried": ceiling,
            "allocated": got,
            "problem": problem,
            "mount_free": free.f_bavail * free.f_frsize,
            "cgroup_left": left["cgroup"],
            "host_left": left["host"],
        },
    )


def _allocate(ceiling: int) -> Tuple[int, Optional[str]]:
    descriptor, path = tempfile.mkstemp(prefix="envkit-", dir=FOLDER)
    got = 0
    try:
        os.unlink(path)
        step = _STEP
        while got < ceiling:
            try:
                os.posix_fallocate(descriptor, got, min(step, ceiling - got))
            except OSError as error:
                if step <= _LAST_STEP:
                    return got, os.strerror(error.errno or 0)
                step //= 4
                continue
            got += min(step, ceiling - got)
    finally:
        os.close(descriptor)
    return got, None


def _mount_type() -> Optional[str]:
    try:
        with open("/proc/self/mountinfo") as file:
            for line in reversed(file.read().splitlines()):
                left, _, right = line.partition(" - ")
                if left.split()[4] == FOLDER:
                    return right.split()[0]
    except (OSError, IndexError):
        pass
    return None
