"""Bytes as people read them."""

from __future__ import annotations

__all__ = ["shown"]

_STEP = 1024


def shown(size: float) -> str:
    """Bytes in binary units: "64 MiB", "1.5 GiB"."""
    amount = float(size)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(amount) < _STEP or unit == "TiB":
            break
        amount /= _STEP
    return f"{amount:.0f} {unit}" if amount >= 10 or amount == int(amount) else f"{amount:.1f} {unit}"
