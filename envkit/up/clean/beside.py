"""Staging folders and lock files that killed installations left beside named environments."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from envkit.install.hold import hold, is_held, lock_file
from envkit.install.stage import left_behind, recover
from envkit.progress import SILENT
from envkit.up.clean.found import Found, Place

__all__ = ["alone", "staging"]

_LEFT = re.compile(r"\.(?P<name>.+)\.envkit-(?:stage-\d+|lock)\Z")


def staging(place: Place) -> Iterator[Found]:
    """What dead processes left; where one of them was killed in the middle of an exchange, deleting it
    brings the old environment back."""
    try:
        found = {
            match["name"] for entry in os.scandir(place.environments) if (match := _LEFT.match(entry.name))
        }
    except OSError:
        return
    for prefix in (place.environments / name for name in sorted(found)):
        if is_held(prefix):
            continue
        folders = tuple(stage.folder for stage in left_behind(prefix))
        left = [*folders, *(path for path in (lock_file(prefix),) if path.exists())]
        if left:
            yield Found(path=left[0], others=tuple(left[1:]), delete=partial(_recover, prefix))


@contextmanager
def alone(_place: Place) -> Iterator[bool]:
    """Each environment has a lock of its own, which `staging` asks for."""
    yield True


def _recover(prefix: Path) -> None:
    with hold(prefix, SILENT):
        recover(prefix, SILENT)
