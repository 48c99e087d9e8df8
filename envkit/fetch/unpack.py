"""Archives into folders: rattler unpacks, this module decides what an archive may contain."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from envkit.fetch.wanted import Rejected
from envkit.files import parse_json
from envkit.messages import _

__all__ = ["entries", "unpack"]

_OF_THE_DISK = frozenset(
    (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE)
)
"""Errors that are this machine's and never an archive's."""

_OS_ERROR = re.compile(r"\(os error (\d+)\)")


def unpack(archive: Path, into: Path) -> str:
    """Extract a .conda or .tar.bz2 into the new folder `into`; the sha256 (hex) of what was read.

    Raises Rejected for an archive that is damaged or has what a package must not have, and OSError for
    the disk. Absolute names, `..`, devices and set-id bits never reach the disk: rattler 0.28 strips,
    skips or flattens them, and refuses to write through links. What it lets through is refused here:
    links that lead out of the package, and lists of files (which decide what is linked into an
    environment, and as what) that name a path outside it or a file that is not there.
    """
    from rattler.package_streaming import extract

    try:
        sha256, _md5 = extract(archive, into)
    except Exception as problem:  # rattler raises OSError without errno, ValueError and its own types
        number = _OS_ERROR.search(str(problem))
        if number and int(number.group(1)) in _OF_THE_DISK:
            code = int(number.group(1))
            raise OSError(code, os.strerror(code), str(into)) from None
        raise Rejected(_("damaged: {reason}").format(reason=problem)) from None
    _check_tree(into)
    _check_lists(into)
    return bytes(sha256).hex()


def entries(folder: Path) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Everything below a folder but directories, in a fixed order, with its path relative to it."""
    pending = [("", str(folder))]
    while pending:
        prefix, path = pending.pop()
        with os.scandir(path) as found:
            children = sorted(found, key=lambda entry: entry.name)
        for entry in children:
            if entry.is_dir(follow_symlinks=False):
                pending.append((f"{prefix}{entry.name}/", entry.path))
            else:
                yield prefix + entry.name, entry


def _check_tree(folder: Path) -> None:
    root = folder.resolve()
    for name, entry in entries(folder):
        mode = entry.stat(follow_symlinks=False).st_mode
        if stat.S_ISLNK(mode):
            target = PurePosixPath(name).parent / Path(entry.path).readlink()
            if not _inside(str(target)) or not Path(entry.path).resolve().is_relative_to(root):
                raise Rejected(_("the link {name} leads out of the package").format(name=name))
        elif not stat.S_ISREG(mode) or mode & (stat.S_ISUID | stat.S_ISGID):
            raise Rejected(_("{name} is a device or runs as another user").format(name=name))


def _check_lists(folder: Path) -> None:
    for name in _listed(folder):
        if not _inside(name) or "\0" in name:
            raise Rejected(_("it lists {name}, outside the package").format(name=name))
        if not os.path.lexists(folder / name):
            raise Rejected(_("it lists {name}, which is not in it").format(name=name))
    link = _document(folder / "info" / "link.json")
    noarch = link.get("noarch") if isinstance(link, dict) else None
    for point in (noarch or {}).get("entry_points") or ():
        command = str(point).partition("=")[0].strip()
        if "/" in command or command in ("", ".", ".."):
            raise Rejected(_("its entry point {name} is not the name of a command").format(name=command))


def _listed(folder: Path) -> list[str]:
    document = _document(folder / "info" / "paths.json")
    if document is None:
        try:
            return (folder / "info" / "files").read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            raise Rejected(_("it has no list of its files")) from None
    try:
        return [str(row["_path"]) for row in document["paths"]]
    except (KeyError, TypeError, AttributeError):
        raise Rejected(_("its list of files cannot be read")) from None


def _document(path: Path) -> Any:
    try:
        return parse_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        raise Rejected(_("its {name} cannot be read").format(name=path.name)) from None


def _inside(path: str) -> bool:
    """Whether a path, read from the root of the package without following links, stays in it."""
    depth = 0
    if path.startswith("/"):
        return False
    for part in path.split("/"):
        depth += -1 if part == ".." else 0 if part in ("", ".") else 1
        if depth < 0:
            return False
    return True
