"""How this program was called: the shell it was typed into, and what must be typed to call it again."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

__all__ = ["SHELLS", "ourselves", "shell_in_use"]

SHELLS = ("bash", "zsh", "fish", "posix")
_POSIX = ("sh", "dash", "ash", "ksh")
_BETWEEN = ("make", "gmake", "sh", "dash")


def shell_in_use(*, proc: Path = Path("/proc"), parent: int | None = None) -> str:
    """The shell that called this process, also through make; else the login shell; else bash.

    A fish that was started from bash has bash in SHELL: the processes above know better.
    """
    caller = _caller(proc, os.getppid() if parent is None else parent)
    name = caller if caller in SHELLS else Path(os.environ.get("SHELL", "")).name
    return name if name in SHELLS else "posix" if name in _POSIX else "bash"


def ourselves() -> str:
    """How the user would call this program from here: its bare name where that finds it.

    ENVKIT_CALLED says it where envkit runs from a place that will not last (`install.sh` of a bundle).
    """
    if called := os.environ.get("ENVKIT_CALLED"):
        return called
    own = Path(sys.argv[0]).absolute()
    if own.name == "__main__.py":
        return f"{shlex.quote(sys.executable)} -m envkit"
    found = shutil.which("envkit")
    if found and Path(found).resolve() == own.resolve():
        return "envkit"
    try:
        return shlex.quote(str(own.relative_to(Path.cwd())))
    except ValueError:
        return shlex.quote(str(own))


def _caller(proc: Path, process: int) -> str:
    """The first process above that does not only pass a command on; empty where it cannot be read."""
    while True:
        try:
            head, _, tail = (proc / str(process) / "stat").read_text("utf-8", "replace").rpartition(")")
            name, process = head.partition("(")[2], int(tail.split()[1])
        except (OSError, ValueError, IndexError):
            return ""
        if name not in _BETWEEN:
            return name
