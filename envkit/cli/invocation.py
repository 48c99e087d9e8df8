"""How this program was called: the shell it was typed into, and what must be typed to call it again."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from dataclasses import replace
from pathlib import Path

from envkit.model import Report

__all__ = ["SHELLS", "ourselves", "shell_in_use", "typed", "worded"]

SHELLS = ("bash", "zsh", "fish", "posix")
_POSIX = ("sh", "dash", "ash", "ksh")
_BETWEEN = ("make", "gmake", "sh", "dash")

DOOR = "ENVKIT_DOOR"
"""Set to "make" by the Makefile: what to type next is then worded as a call of make."""

_TARGETS = {"up": "env", "lock": "lock", "render": "render", "validate": "validate", "variants": "variants"}
_VARIABLES = {
    "--python": "PYTHON",
    "--cuda": "CUDA",
    "--torch": "TORCH",
    "--source": "SOURCE",
    "--with": "EXTRAS",
    "--mirror": "MIRROR",
    "--name": "NAME",
    "--prefix": "PREFIX",
    "--lock": "LOCK",
}
_QUOTED = re.compile(r"`([^`\n]+)`")
_COMMAND = re.compile(r"(?P<before>(?:[A-Z_]+=\S+ )*)envkit(?P<rest>(?: .+)?)")


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


def worded(text: str) -> str:
    """The text with what it quotes in backticks put as it must be typed here.

    Texts name `envkit`, which stands in PATH for few, and its options. Where the call came from the Makefile,
    what that can do is said in its words: `envkit up --cuda 11.8` is `make env CUDA=11.8`.
    """
    by_make = os.environ.get(DOOR) == "make"

    def put(match: re.Match[str]) -> str:
        quoted = match[1]
        if command := _COMMAND.fullmatch(quoted):
            words = command["rest"].split()
            called = _as_make(words) if by_make else None
            return f"`{command['before']}{called or ourselves() + command['rest']}`"
        words = quoted.split()
        if by_make and words[0] in _VARIABLES and len(words) <= 2:
            return f"`{_VARIABLES[words[0]]}={''.join(words[1:])}`"
        return match[0]

    return _QUOTED.sub(put, text)


def typed(report: Report) -> Report:
    """The report with its hints as they must be typed here, before they are broken into lines."""
    checks = tuple(replace(check, hint=worded(check.hint)) for check in report.checks)
    return replace(report, checks=checks)


def _as_make(words: list[str]) -> str | None:
    """The call of make that does the same; None where there is none."""
    if not words or words[0] not in _TARGETS:
        return None
    said, named = [f"make {_TARGETS[words[0]]}"], False
    others: list[str] = []
    rest = iter(words[1:])
    for word in rest:
        if word in _VARIABLES:
            said.append(f"{_VARIABLES[word]}={next(rest, '')}")
        elif word == "--all":
            continue
        elif others or word.startswith("-"):
            others.append(word)
        elif named:
            return None
        else:
            named = True
            said.append("NAME=" + word)
    if "--file" in others or "--canonicalise" in others:  # make locks what the matrix lists
        return None
    if others:
        said.append("ARGS=" + shlex.quote(" ".join(others)))
    return " ".join(said)


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
