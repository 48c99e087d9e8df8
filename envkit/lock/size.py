"""How much a lock has to download, as its maker noted it: the v1 format has no place for sizes of packages.

One line a platform in `metadata.custom_metadata`, which conda-lock keeps and never reads:
`envkit-bytes-linux-64: '2134567890'`. It is no part of the digest, and nothing is ever verified by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from envkit.model import Lock

__all__ = ["download_size", "size_notes"]

_KEY = "envkit-bytes-"


def size_notes(sizes: Mapping[str, Iterable[int | None]]) -> dict[str, str]:
    """The notes for a lock, given the sizes in bytes of each platform's archives.

    Channels leave the size of a rare archive out; it then counts as nothing.
    """
    sums = {platform: sum(size or 0 for size in each) for platform, each in sorted(sizes.items())}
    return {f"{_KEY}{platform}": str(total) for platform, total in sums.items() if total}


def download_size(lock: Lock, platform: str) -> int | None:
    """How many bytes the conda archives of one platform are, at least; None where the lock does not say."""
    notes = lock.metadata.get("custom_metadata")
    noted = notes.get(f"{_KEY}{platform}") if isinstance(notes, Mapping) else None
    return int(noted) if isinstance(noted, str) and noted.isascii() and noted.isdecimal() else None
