"""Which conda package a Python package is (data/pypi_to_conda.yaml), for looking a lock over."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import yaml
from packaging.utils import canonicalize_name

__all__ = ["conda_name"]


def conda_name(pypi: str) -> str:
    """The conda name of a Python package: its own in normal form, unless the table knows another."""
    normal = canonicalize_name(pypi)
    return _table().get(normal, normal)


@cache
def _table() -> Mapping[str, str]:
    text = (files("envkit") / "data" / "pypi_to_conda.yaml").read_text(encoding="utf-8")
    rows = yaml.load(text, Loader=yaml.CSafeLoader)
    return {canonicalize_name(row["pypi_name"]): row["conda_name"] for row in rows.values()}
