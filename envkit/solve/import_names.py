"""The conda package behind a name that people import or install by pip (data/import_names.yaml)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from envkit.files import load_yaml
from envkit.lock.pypi_names import conda_name

__all__ = ["meant_by"]


def meant_by(name: str) -> str | None:
    """The conda package that somebody means who writes `name`; None where no table knows better."""
    found = _table().get(name.lower().replace("-", "_"), conda_name(name))
    return None if found == name else found


@cache
def _table() -> Mapping[str, str]:
    text = (files("envkit") / "data" / "import_names.yaml").read_text(encoding="utf-8")
    return {name: row["package"] for name, row in load_yaml(text)["names"].items()}
