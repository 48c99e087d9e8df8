"""A full disk, said with numbers."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable
from pathlib import Path

from envkit.errors import Error
from envkit.files import parse_json
from envkit.install.conda import stem
from envkit.messages import _
from envkit.model import Package
from envkit.report.size import spoken

__all__ = ["cannot_write", "full_disk", "is_full"]

_FULL = (errno.ENOSPC, errno.EDQUOT)
_OS_ERROR = re.compile(r"\(os error (\d+)\)")  # how Rust's io::Error, and so rattler, prints errno


def is_full(problem: BaseException) -> bool:
    """Whether an error, of Python or of rattler, says that disk or quota are exhausted."""
    if isinstance(problem, OSError):
        return problem.errno in _FULL
    return any(int(number) in _FULL for number in _OS_ERROR.findall(str(problem)))


def cannot_write(place: Path, problem: OSError) -> Error:
    """The error for a file or folder in `place` that could not be written."""
    if is_full(problem):
        return full_disk(place)
    return Error(
        _("cannot write to {path}: {reason}").format(
            path=problem.filename or place, reason=problem.strerror or problem
        ),
        _("choose a folder you may write to with `--prefix DIR` or ENVKIT_HOME"),
    )


def full_disk(place: Path, packages: Iterable[Package] = (), cache: Path | None = None) -> Error:
    """The error for a disk that was full while `packages`, unpacked in `cache`, were put into `place`.

    Call it before anything is removed: the numbers are those of the moment.
    """
    state = os.statvfs(place)
    if state.f_files and not state.f_favail:
        shortage = _("no inodes left of {total}").format(total=state.f_files)
    else:
        shortage = _("{free} free of {total}").format(
            free=spoken(state.f_bavail * state.f_frsize), total=spoken(state.f_blocks * state.f_frsize)
        )
    message = _("the disk of {place} is full: {shortage}").format(place=place, shortage=shortage)
    needed = sum(_installed_size(cache / stem(package)) for package in packages) if cache else 0
    if needed:
        message = _("{message}; the environment needs about {needed}").format(
            message=message, needed=spoken(needed)
        )
    return Error(message, _("free some space or choose another disk with `--prefix DIR` or ENVKIT_HOME"))


def _installed_size(package: Path) -> int:
    try:
        document = parse_json((package / "info" / "paths.json").read_bytes())
        return sum(row.get("size_in_bytes") or 0 for row in document["paths"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return 0
