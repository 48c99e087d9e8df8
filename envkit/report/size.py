"""Numbers of bytes as people read them."""

from __future__ import annotations

__all__ = ["spoken"]

_UNITS = ((10**9, "GB", 1), (10**6, "MB", 0), (10**3, "kB", 0))


def spoken(size: int) -> str:
    """A number of bytes: "812 kB", "241 MB", "1.9 GB"."""
    for scale, unit, digits in _UNITS:
        if size >= scale:
            return f"{size / scale:.{digits}f} {unit}"
    return f"{size} B"
