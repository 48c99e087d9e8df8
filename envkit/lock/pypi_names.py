"""Which conda package a Python package goes by, where the two names differ (data/pypi_to_conda.yaml).

conda-lock fetches such a map from GitHub at run time unless it is given one; this one is shipped, so that
locking opens no connection of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path

import yaml
from packaging.utils import canonicalize_name

__all__ = ["conda_lock_map", "conda_name"]


def conda_name(pypi: str) -> str:
    """The conda name of a Python package: its own in normal form, unless the table knows another."""
    normal = canonicalize_name(pypi)
    return _table().get(normal, normal)


def conda_lock_map() -> str:
    """The path of the table, which is in the form that conda-lock's `mapping_url` takes."""
    return str(files("envkit") / "data" / "pypi_to_conda.yaml")


@cache
def _table() -> Mapping[str, str]:
    rows = yaml.load(Path(conda_lock_map()).read_bytes(), Loader=yaml.CSafeLoader)
    return {canonicalize_name(row["pypi_name"]): row["conda_name"] for row in rows.values()}
