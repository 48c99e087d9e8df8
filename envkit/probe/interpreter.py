"""Which Python this is and where it would find torch, before anything is imported."""

from __future__ import annotations

import importlib.util
import os
import platform
import site
import sys
from typing import List, Optional

from .channel import Emit


def describe(emit: Emit) -> None:
    version = ".".join(str(part) for part in sys.version_info[:3])
    prefixes = [os.path.realpath(sys.prefix), os.path.realpath(sys.base_prefix)]
    emit(
        "interpreter.runs",
        {
            "version": version,
            "implementation": platform.python_implementation(),
            "executable": sys.executable,
            "prefix": prefixes[0],
            "machine": platform.machine(),
            "pythonhome": os.environ.get("PYTHONHOME"),
        },
    )
    emit("interpreter.version", {"version": version})
    emit(
        "interpreter.isolated",
        {
            "prefixes": prefixes,
            "path": sys.path,
            "pythonpath": [os.path.realpath(part) for part in _split(os.environ.get("PYTHONPATH"))],
            "user_site": os.path.realpath(site.getusersitepackages()) if site.ENABLE_USER_SITE else None,
            "torch": folder_of("torch"),
        },
    )


def folder_of(name: str) -> Optional[str]:
    """The folder on `sys.path` that a top-level module would come from, without importing it.

    The folder's links are followed, those of the files in it are not: some installers link each to a cache.
    """
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    places = list(spec.submodule_search_locations or [])
    if places:
        return os.path.realpath(os.path.dirname(places[0]))
    return os.path.realpath(os.path.dirname(spec.origin)) if spec.origin else None


def _split(value: Optional[str]) -> List[str]:
    return [part for part in (value or "").split(os.pathsep) if part]
