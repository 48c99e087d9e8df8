"""Limits that loaders run into: file descriptors, and the folder where workers meet over sockets."""

from __future__ import annotations

import os
import resource
import socket
import tempfile
from multiprocessing.util import get_temp_dir
from typing import Any, Dict

from .channel import Emit

_WRITTEN = 64 << 10


def descriptors(emit: Emit) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    emit("fds.limit", {"soft": soft, "hard": hard, "open": len(os.listdir("/proc/self/fd"))})


def temporary_folder(emit: Emit) -> None:
    """Write a file there, and bind the longest socket name that multiprocessing would make there."""
    emit.at("find a temporary folder")
    folder = os.path.realpath(tempfile.gettempdir())
    found = {"folder": folder, "length": len(os.fsencode(folder)), "asked": os.environ.get("TMPDIR")}
    emit.at("write in " + folder)
    with tempfile.TemporaryFile() as file:
        file.write(b"\0" * _WRITTEN)
        file.flush()
    there = os.statvfs(folder)
    found["free"] = there.f_bavail * there.f_frsize
    found.update(_bind())
    emit("tmpdir.usable", found)


def _bind() -> Dict[str, Any]:
    # Where it is too long a DataLoader never answers: its workers cannot hand their tensors over.
    # https://github.com/python/cpython/issues/93852
    path = os.path.join(get_temp_dir(), "listener-abcdefgh")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as made:
        try:
            made.bind(path)
        except OSError as error:
            return {"socket": False, "socket_path": path, "socket_problem": str(error)}
        os.unlink(path)
    return {"socket": True, "socket_path": path}
