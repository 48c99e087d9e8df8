"""Running processes that use files of a prefix, those of other users as far as they can be seen."""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass
from pathlib import Path

from envkit.errors import Error
from envkit.messages import _

__all__ = ["User", "refuse_busy", "users"]

_PROC = Path("/proc")
_SHOWN = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class User:
    """A process that uses the prefix: through its executable, its working folder or a mapped file.

    `owner` is whose it is, None for our own.
    """

    pid: int
    command: str
    owner: str | None = None

    def __str__(self) -> str:
        if self.owner is None:
            return f"{self.pid} ({self.command})"
        return _("{pid} ({command}, of user {user})").format(
            pid=self.pid, command=self.command, user=self.owner
        )


def users(prefix: Path) -> tuple[User, ...]:
    """The processes that may be seen and that use `prefix`, by process id.

    Processes of other users keep their maps to themselves (unless this is root); they are known by a path
    of the prefix in their command line, as a script or an interpreter of it has.
    """
    root = os.path.realpath(prefix)
    found = []
    for entry in os.scandir(_PROC):
        process = Path(entry.path)
        if entry.name.isdecimal() and _uses(process, root):
            found.append(User(pid=int(entry.name), command=_command(process), owner=_owner(process)))
    return tuple(sorted(found, key=lambda user: user.pid))


def refuse_busy(prefix: Path) -> None:
    """Error naming the processes, if any use `prefix`."""
    found = users(prefix)
    if not found:
        return
    named = ", ".join(map(str, found[:_SHOWN]))
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
        except PermissionError:
            return any(word == root or word.startswith(inside) for word in _words(process))
        except OSError:
            continue
        if target == root or target.startswith(inside):
            return True
    try:
        # Lines are "address perms offset dev inode   path"; a path is the only place with a slash.
        return f" {inside}".encode() in (process / "maps").read_bytes()
    except OSError:
        return False


def _words(process: Path) -> list[str]:
    try:
        return [os.fsdecode(word) for word in (process / "cmdline").read_bytes().split(b"\0")]
    except OSError:
        return []


def _owner(process: Path) -> str | None:
    """The name of another user whose process it is."""
    try:
        number = process.stat().st_uid
        return None if number == os.geteuid() else pwd.getpwuid(number).pw_name
    except OSError:
        return None
    except KeyError:
        return str(number)


def _command(process: Path) -> str:
    text = os.fsencode(" ".join(_words(process))).decode(errors="replace").strip()
    try:
        text = text or (process / "comm").read_text(errors="replace").strip()
    except OSError:
        text = "?"
    text = "".join(character if character.isprintable() else " " for character in text)
    return text if len(text) <= 60 else text[:57] + "..."
