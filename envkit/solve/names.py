"""Which conda package a Python package goes by, where the two names differ.

conda-lock fetches such a map from GitHub at run time unless it is given one; this one is shipped
(`data/pypi_to_conda.yaml`), so that locking opens no connection of its own.
"""

from __future__ import annotations

from importlib.resources import files

__all__ = ["conda_lock_map"]


def conda_lock_map() -> str:
    """The path of the shipped map, in the form that conda-lock's `mapping_url` takes."""
    return str(files("envkit") / "data" / "pypi_to_conda.yaml")
