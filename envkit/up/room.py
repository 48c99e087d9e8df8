"""Whether the disks hold what the wheel channel is about to do: download, pack and install."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from envkit.errors import Error
from envkit.fetch.disk import free_bytes
from envkit.install.work import GROWTH
from envkit.messages import _
from envkit.paths import existing_folder
from envkit.progress import Observer
from envkit.report.size import spoken

if TYPE_CHECKING:
    from envkit.wheels import Wheel

__all__ = ["require_room"]


def require_room(wheels: Sequence[Wheel], prefix: Path, cache: Path, observer: Observer) -> None:
    """Say what `wheels`, none of them packed yet, will take, and Error where it cannot be had.

    The wheels that are not here lie in the cache until they are packed, and the packages and what they hold
    stay there: about as much again, and GROWTH times that. The prefix takes the same once more where it is
    on another file system, since nothing can be linked to there. What is certain to be needed counts for the
    refusal: packages unpack to more than their own size. Wheels of unknown size count for nothing.
    """
    packed = sum(wheel.size or 0 for wheel in wheels)
    if not packed:
        return
    downloaded = sum(wheel.size or 0 for wheel in wheels if wheel.path is None)
    least = {cache: downloaded + 2 * packed}
    likely = {cache: downloaded + packed + int(GROWTH * packed)}
    if not _one_disk(cache, prefix.parent):
        least[prefix.parent] = packed
        likely[prefix.parent] = int(GROWTH * packed)
    for folder, needed in least.items():
        free = free_bytes(folder)
        if needed > free:
            raise Error(
                _("no room on the disk of {folder}: {free} free, {needed} needed at least").format(
                    folder=folder, free=spoken(free), needed=spoken(needed)
                ),
                _(
                    "free some space (`envkit clean`), or choose another disk: `--prefix`, "
                    "ENVKIT_HOME, ENVKIT_CACHE"
                ),
            )
        observer.note(
            _("{folder}: {free} free, about {needed} needed to download, pack and install").format(
                folder=folder, free=spoken(free), needed=spoken(likely[folder])
            )
        )


def _one_disk(one: Path, other: Path) -> bool:
    return existing_folder(one).stat().st_dev == existing_folder(other).stat().st_dev
