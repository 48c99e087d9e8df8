"""Running processes of this user that use files of a prefix."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from envkit.errors import Error
from envkit.messages import _

__all__ = ["User", "refuse_busy", "users"]

_PROC = Path("/proc")
_SHOWN = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class User:
    """A process that uses the prefix: through its executable, its working folder or a mapped file."""

    pid: int
    command: str


def users(prefix: Path) -> tuple[User, ...]:
    """The processes that may be seen and that use `prefix`, by process id.

    Processes of other users keep their maps to themselves and are not found (unless this is root).
    """
    root = os.path.realpath(prefix)
    found = []
    for entry in os.scandir(_PROC):
        if entry.name.isdecimal() and _uses(Path(entry.path), root):
            found.append(User(pid=int(entry.name), command=_command(Path(entry.path))))
    return tuple(sorted(found, key=lambda user: user.pid))


def refuse_busy(prefix: Path) -> None:
    """Error naming the processes, if any use `prefix`."""
    found = users(prefix)
    if not found:
        return
    named = ", ".join(f"{user.pid} ({user.command})" for user in found[:_SHOWN])
    more = _(" and {count} more").format(count=len(found) - _SHOWN) if len(found) > _SHOWN else ""
    raise Error(
        _("the environment {prefix} is in use by process {processes}").format(
            prefix=prefix, processes=named + more
        ),
        _("end them, or install under another name (`--name NAME`); the environment was left as it was"),
    )


def _uses(process: Path, root: str) -> bool:
    inside = root + "/"
    for link in ("exe", "cwd"):
        try:
            target = str((process / link).readlink())
        except OSError:
            continue
        if target == root or target.startswith(inside):
            return True
    try:
        # Lines are "address perms offset dev inode   path"; a path is the only place with a slash.
        return f" {inside}".encode() in (process / "maps").read_bytes()
    except OSError:
        return False


def _command(process: Path) -> str:
    try:
        words = (process / "cmdline").read_bytes().split(b"\0")
        text = b" ".join(words).decode(errors="replace").strip()
        text = text or (process / "comm").read_text(errors="replace").strip()
    except OSError:
        text = "?"
    text = "".join(character if character.isprintable() else " " for character in text)
    return text if len(text) <= 60 else text[:57] + "..."
