"""One interpreter under test: runs a single job and exits, or serves jobs, each in a fork of itself.

A job is `{"id", "call": "module:function", "args", "limit", ...}`; `module` is a file beside this one, or the
path of one. Serving, jobs come as JSON lines on stdin, one at a time: `"where": "fork"` forks a child that
leads its own process group and writes its output to the files the job names; `"where": "here"` runs in this
process, so that what it imports is there in every later fork. Whoever started this process keeps the time
and does the killing.
"""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import importlib
import importlib.util
import json
import os
import resource
import sys
import threading
from typing import Any, Callable, Dict

from .channel import Channel, Emit, describe
from .memory import folders

_OOM_SCORE = "500"
_SECONDS_TO_DUMP = 1.5
_PR_SET_PDEATHSIG = 1
_SIGKILL = 9

Job = Dict[str, Any]


def main(argument: str) -> None:
    control = json.loads(argument)
    channel = Channel(control["fd"])
    _die_with_parent()
    _leave_no_core()
    channel.send(
        "hello",
        version=list(sys.version_info[:3]),
        memory=list(folders()),
    )
    if "job" in control:
        sys.exit(_work(channel, control["job"]))
    _serve(channel)


def _serve(channel: Channel) -> None:
    for line in iter(sys.stdin.readline, ""):
        job = json.loads(line)
        if job["where"] == "here":
            code = _work(channel, job)
            faulthandler.cancel_dump_traceback_later()
            channel.send("end", job=job["id"], code=code)
            continue
        child = os.fork()
        if child == 0:
            _become_child(job)
            _exit(_work(channel, job))
        _lead_group(child)
        channel.send("start", job=job["id"], pid=child)
        channel.send("end", job=job["id"], code=_code(os.waitpid(child, 0)[1]))


def _work(channel: Channel, job: Job) -> int:
    """Run the job and say how it went; the exit code is for a person who runs this by hand."""
    limit = float(job["limit"])
    faulthandler.enable()
    faulthandler.dump_traceback_later(max(limit - _SECONDS_TO_DUMP, limit / 2))
    _be_the_first_to_go()
    code = 0
    try:
        _function(job["call"])(Emit(channel, job["id"]), **job.get("args", {}))
    except BaseException as error:
        channel.send("error", job=job["id"], chain=describe(error))
        code = 1
    channel.send("done", job=job["id"])
    return code


def _exit(code: int) -> None:
    """Leave a fork: wait for threads and run exit handlers as any exit does, but take no module apart.

    Where torch is imported that alone takes half a second. Jobs in an interpreter of their own exit in full.
    """
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _function(call: str) -> Callable[..., None]:
    module, _, name = call.rpartition(":")
    if os.sep not in module:
        found: Callable[..., None] = getattr(importlib.import_module("envkit_probe." + module), name)
        return found
    spec = importlib.util.spec_from_file_location("envkit_probe_given", module)
    assert spec is not None and spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = loaded
    spec.loader.exec_module(loaded)
    given: Callable[..., None] = getattr(loaded, name)
    return given


def _become_child(job: Job) -> None:
    _lead_group(0)
    _die_with_parent()
    for path, descriptor, flags in (
        (os.devnull, 0, os.O_RDONLY),
        (job["stdout"], 1, os.O_WRONLY | os.O_APPEND | os.O_CREAT),
        (job["stderr"], 2, os.O_WRONLY | os.O_APPEND | os.O_CREAT),
    ):
        opened = os.open(path, flags, 0o600)
        os.dup2(opened, descriptor)
        os.close(opened)


def _lead_group(pid: int) -> None:
    # Both parent and child do this: whichever comes second finds it done.
    with contextlib.suppress(OSError):
        os.setpgid(pid, pid)


def _die_with_parent() -> None:
    """Leave nothing running when envkit is killed outright."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0)
    except Exception:  # a Python without ctypes, or a system without prctl: only the safety net is missing
        pass


def _leave_no_core() -> None:
    """A crash here is a result; a core file in the user's folder would only be in the way."""
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def _be_the_first_to_go() -> None:
    """Offer this process to the kernel before anything of the user's when memory runs out."""
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write(_OOM_SCORE)
    except OSError:
        pass


def _code(status: int) -> int:
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
