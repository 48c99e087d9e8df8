"""Option lines in a pip section, and the index that pip's own configuration names.

conda accepts `- --index-url URL` among the requirements; conda-lock 4.0.3 dies of it (conda-lock#171, #187,
#488). An index is lifted into what conda-lock calls pip repositories; any other option
is refused with its line.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from envkit.lock.formats import PipIndexes
from envkit.lock.formats.pip_options import OPTIONS, Indexes, split_option, why_refused
from envkit.lock.formats.source import Source

__all__ = ["configured_indexes", "lift_pip_options"]

_OPTION = re.compile(r"""^\s*-\s+(?P<quote>["']?)(?P<option>-[A-Za-z-].*?)(?P=quote)\s*(?:\s#.*)?$""")
_CONFIGURED = re.compile(r"^(?P<section>[a-z:]+)\.(?P<key>(?:extra-)?index-url)='(?P<value>.*)'$")
_SECTIONS = (":env:", "install", "global")  # the first that names a key wins


def lift_pip_options(text: str) -> tuple[str, PipIndexes]:
    """The text with option lines blanked (so that line numbers stay), and the indexes they named.

    Options mean what they mean in a stranger's file. Raises InputError with the line for one that a lock
    cannot honour.
    """
    source = Source(path=Path("environment.yml"), text=text)
    lines, indexes = list(source.lines), Indexes(source)
    for number, line in enumerate(lines, 1):
        match = _OPTION.match(line)
        if match is None:
            continue
        name, value, _rest = split_option(match["option"].split(maxsplit=1))
        option = OPTIONS.get(name)
        if option is None or option.action not in ("index", "extra") or not value:
            raise source.refusal(*why_refused(name, value), number)
        indexes.add(value, number, replaces=option.action == "index")
        lines[number - 1] = ""
    return "\n".join(lines), indexes.result


def configured_indexes() -> PipIndexes:
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
    return PipIndexes(
        indexes=tuple(url for url in urls if url.startswith(("https://", "http://"))),
        default_index=default_index,
    )
