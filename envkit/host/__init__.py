"""Facts of this machine, read once and never guessed: what could not be read is None."""

from __future__ import annotations

from envkit.host.read import read_host

__all__ = ["read_host"]
