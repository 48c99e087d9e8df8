"""An environment.yml that conda-lock can parse, written from what was read."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from envkit.lock.formats.conda_specs import CondaSpec
from envkit.lock.formats.foreign import PipIndexes
from envkit.lock.formats.pip_lines import PipSpec

__all__ = ["environment_text"]

_PLAIN = re.compile(r"[A-Za-z_./][\w./=<>:+-]*")


def environment_text(
    *,
    name: str,
    channels: Sequence[str],
    specs: Sequence[CondaSpec],
    pip: Sequence[PipSpec] = (),
    indexes: PipIndexes | None = None,
    platforms: Sequence[str] = (),
) -> str:
    """The text, the same for the same contents. Indexes go under conda-lock's own key `pip-repositories`."""
    indexes = indexes or PipIndexes()
    lines = [f"name: {_scalar(name)}", "channels:", *(f"  - {_scalar(each)}" for each in channels)]
    lines.append("  - nodefaults")
    if platforms:
        lines += ["platforms:", *(f"  - {_scalar(each)}" for each in platforms)]
    if indexes.indexes:
        lines += ["pip-repositories:", *(f"  - {_scalar(each)}" for each in indexes.indexes)]
    if not indexes.default_index:
        lines.append("allow-pypi-requests: false")
    lines += ["dependencies:", *(f"  - {_scalar(str(each))}{_selector(each.selector)}" for each in specs)]
    if pip:
        lines += ["  - pip:", *(f"      - {_scalar(each.text)}{_selector(each.selector)}" for each in pip)]
    return "\n".join(lines) + "\n"


def _scalar(value: str) -> str:
    return (
        value
        if _PLAIN.fullmatch(value) and not value.endswith(":")
        else json.dumps(value, ensure_ascii=False)
    )


def _selector(selector: str) -> str:
    return f"  # [{selector}]" if selector else ""
