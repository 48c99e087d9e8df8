"""Staging folders beside a prefix: made, recognised, recovered from, and removed.

.NAME.envkit-stage-PID/owner.json    who made it
                       prefix/       the new environment; after the commit, the old one
                       old/          the old one, while there is only `rename` to swap them with
                       gone/         an environment that is being removed
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from envkit.files import parse_json
from envkit.install.space import cannot_write
from envkit.messages import _
from envkit.progress import Observer

__all__ = ["Stage", "left_behind", "recover", "remove_tree", "staged"]

_OWNER = "owner.json"
_SCHEMA = 1
_PATIENCE_S = 5.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """A staging folder on the file system of the prefix it is for."""

    folder: Path

    @property
    def prefix(self) -> Path:
        return self.folder / "prefix"

    @property
    def old(self) -> Path:
        return self.folder / "old"

    @property
    def gone(self) -> Path:
        return self.folder / "gone"


@contextmanager
def staged(prefix: Path, observer: Observer) -> Iterator[Stage]:
    """A new staging folder for `prefix`, removed at the end, whatever happened. Needs the prefix's lock."""
    stage = Stage(folder=prefix.parent / f".{prefix.name}.envkit-stage-{os.getpid()}")
    owner = {"schema": _SCHEMA, "prefix": str(prefix), **_identity(os.getpid())}
    try:
        stage.folder.mkdir(mode=0o700)
    except OSError as problem:
        raise cannot_write(prefix.parent, problem) from None
    try:
        try:
            (stage.folder / _OWNER).write_text(json.dumps(owner, sort_keys=True) + "\n", encoding="utf-8")
        except OSError as problem:
            raise cannot_write(prefix.parent, problem) from None
        yield stage
    finally:
        _restore(stage, prefix)
        _discard(stage, prefix, observer)


def left_behind(prefix: Path) -> tuple[Stage, ...]:
    """Staging folders for `prefix` that dead processes of this user left. Needs the prefix's lock."""
    pattern = re.compile(re.escape(f".{prefix.name}.envkit-stage-") + r"(\d+)\Z")
    found = []
    with suppress(OSError):
        for entry in sorted(os.scandir(prefix.parent), key=lambda entry: entry.name):
            named = pattern.match(entry.name)
            if not named or not entry.is_dir(follow_symlinks=False):
                continue
            if entry.stat(follow_symlinks=False).st_uid == os.getuid() and _dead(Path(entry.path), prefix):
                found.append(Stage(folder=Path(entry.path)))
    return tuple(found)


def recover(prefix: Path, observer: Observer) -> None:
    """Undo what a killed process left: an old environment moved away comes back, its stage goes."""
    for stage in left_behind(prefix):
        _restore(stage, prefix)
        if not _discard(stage, prefix, observer):
            continue
        observer.note(
            _("cleared away what an interrupted installation left in {path}").format(path=stage.folder)
        )


def _discard(stage: Stage, prefix: Path, observer: Observer) -> bool:
    """Delete a stage; whether it is gone, else the observer hears why. Its owner goes last, by whom a
    half-deleted one is known.

    What a user put into the old environment is moved aside first; what cannot be stays where it is. A tree
    without such files is called `gone` before it is deleted: what is left of it after a kill is nobody's.
    """
    from envkit.install.keep import keep_strays

    try:
        for folder in (stage.prefix, stage.old):
            if folder.exists():
                keep_strays(folder, prefix, observer)
                remove_tree(stage.gone)
                folder.rename(stage.gone)
    except OSError as problem:
        observer.note(
            _("{path} holds files of yours that cannot be moved: {reason}").format(
                path=stage.folder, reason=problem.strerror or problem
            )
        )
        return False
    if remove_tree(stage.gone) and remove_tree(stage.folder):
        return True
    observer.note(_("{path} could not be removed and may be deleted").format(path=stage.folder))
    return False


def remove_tree(folder: Path, patience: float = _PATIENCE_S) -> bool:
    """Delete a folder, read-only subfolders included; whether it is gone.

    Tries again for `patience` seconds: threads of a cancelled installation may still be writing into it.
    """
    until = time.monotonic() + patience
    while True:
        shutil.rmtree(folder, onerror=partial(_make_writable, folder))
        if not folder.exists():
            return True
        if time.monotonic() > until:
            return False
        time.sleep(0.05)


def _make_writable(top: Path, function: Callable[..., Any], path: str, _problem: object) -> None:
    """rmtree's error hook: allow what a read-only folder at or below `top` forbade, and do it once more."""
    with suppress(OSError):
        for place in (Path(path).parent, Path(path)):
            if place.is_relative_to(top) and stat.S_ISDIR(place.lstat().st_mode):
                place.chmod(0o700)
        if function in (os.unlink, os.rmdir):
            function(path)
        else:
            shutil.rmtree(path, ignore_errors=True)


def _restore(stage: Stage, prefix: Path) -> None:
    """Bring the old environment back if a commit without an exchange stopped between its two renames."""
    if stage.old.is_dir() and not prefix.exists():
        with suppress(OSError):
            stage.old.rename(prefix)


def _identity(pid: int) -> dict[str, object]:
    """What tells one process from a later one with the same id, also on another boot or in a container."""
    with suppress(OSError, IndexError, ValueError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return {
            "pid": pid, "started": int(fields[19]), "boot": boot,
            "namespace": str(Path("/proc/self/ns/pid").readlink()),
        }  # fmt: skip
    return {"pid": pid}


def _dead(folder: Path, prefix: Path) -> bool:
    try:
        owner = parse_json((folder / _OWNER).read_text(encoding="utf-8"))
        pid = int(owner["pid"])
        ours = owner["schema"] == _SCHEMA and Path(owner["prefix"]).name == prefix.name
    except (OSError, ValueError, TypeError, KeyError):
        # Killed before the owner was written down: then there is nothing else in it.
        return {path.name for path in folder.iterdir()} <= {_OWNER}
    if not ours:
        return False
    here = _identity(os.getpid())
    if any(owner.get(key) != here.get(key) for key in ("boot", "namespace")):
        # Its process cannot be looked for from here, but it held the lock that we hold now.
        return True
    return pid == os.getpid() or _identity(pid) != {
        key: owner.get(key) for key in ("pid", "started", "boot", "namespace")
    }
