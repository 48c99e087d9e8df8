"""Option lines in a pip section, and the index that pip's own configuration names.

conda accepts `- --index-url URL` among the requirements; conda-lock 4.0.3 dies of it (conda-lock#171, #187,
#488). An index is lifted into what conda-lock calls pip repositories; `-r` and `-f`, which bring in more
requirements or a bare folder of files, cannot be locked and are refused with their line.
"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from envkit.errors import InputError
from envkit.messages import _

__all__ = ["PipLines", "configured_indexes", "lift_pip_options"]

_OPTION = re.compile(
    r"""^\s*-\s+(?P<quote>["']?)(?P<option>-[A-Za-z-]+)(?:[ =]\s*(?P<value>.*?))?(?P=quote)\s*$"""
)
_INDEX = ("-i", "--index-url", "--pypi-url")
_EXTRA_INDEX = ("--extra-index-url",)
_IGNORED = ("-e", "--editable")
_CONFIGURED = re.compile(r"^(?P<section>[a-z:]+)\.(?P<key>(?:extra-)?index-url)='(?P<value>.*)'$")
_SECTIONS = (":env:", "install", "global")  # the first that names a key wins


@dataclass(frozen=True, kw_only=True, slots=True)
class PipLines:
    """Indexes to ask, in order. `default_index` is whether the public one is asked as well."""

    indexes: tuple[str, ...] = ()
    default_index: bool = True

    def before(self, others: PipLines) -> PipLines:
        """These indexes first, then `others`; those alone that replace the public one by name."""
        if not self.default_index:
            return self
        return PipLines(
            indexes=tuple(dict.fromkeys((*self.indexes, *others.indexes))), default_index=others.default_index
        )


def lift_pip_options(text: str) -> tuple[str, PipLines]:
    """The text with option lines blanked (so that line numbers stay), and the indexes they named.

    Raises InputError with the line for an option that a lock cannot honour.
    """
    lines = text.splitlines()
    indexes: list[str] = []
    default_index = True
    for number, line in enumerate(lines, 1):
        match = _OPTION.match(line)
        if match is None or match["option"] in _IGNORED:
            continue
        option, value = match["option"], (match["value"] or "").strip()
        if option not in (*_INDEX, *_EXTRA_INDEX) or not value:
            raise InputError(
                _("the pip option {option} cannot be locked").format(option=option),
                _("write the requirements out, or name an index with `- --extra-index-url URL`"),
                path=Path("environment.yml"),
                line=number,
            )
        if option in _INDEX:
            indexes.insert(0, value)
            default_index = False
        else:
            indexes.append(value)
        lines[number - 1] = ""
    return "\n".join(lines) + "\n", PipLines(indexes=tuple(indexes), default_index=default_index)


def configured_indexes() -> PipLines:
    """What `pip config` and pip's environment variables name, `file://` indexes left out.

    conda-lock's resolver speaks HTTP alone: a local folder or `find-links` cannot be asked by it.
    """
    asked = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False
    )
    found: dict[tuple[str, str], str] = {}
    for line in asked.stdout.splitlines():
        match = _CONFIGURED.match(line)
        if match is not None:
            found[match["section"], match["key"]] = match["value"].replace("\\n", " ")
    urls, default_index = [], True
    for key in ("index-url", "extra-index-url"):
        value = next((found[section, key] for section in _SECTIONS if (section, key) in found), "")
        urls += value.split()
        default_index &= not (key == "index-url" and value)
    return PipLines(
        indexes=tuple(url for url in urls if url.startswith(("https://", "http://"))),
        default_index=default_index,
    )
