"""conda-lock logs and warns about what it does; the user hears of problems as errors instead."""

from __future__ import annotations

import contextlib
import logging
import threading
import warnings
from collections.abc import Iterator

__all__ = ["without_chatter"]

_guard = threading.Lock()
_inside = 0
_quiet = contextlib.ExitStack()


@contextlib.contextmanager
def without_chatter() -> Iterator[None]:
    """Silence it. Several threads may be inside at once: the last one out restores what was before."""
    global _inside
    with _guard:
        _inside += 1
        if _inside == 1:
            _quiet.enter_context(_silence())
    try:
        yield
    finally:
        with _guard:
            _inside -= 1
            if _inside == 0:
                _quiet.close()


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    logger = logging.getLogger("conda_lock")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
