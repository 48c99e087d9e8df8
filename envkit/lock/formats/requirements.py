"""requirements.txt and the like, with the files that it names, as an environment with a pip section."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from envkit.lock.formats.channel_list import DEFAULT_CHANNEL
from envkit.lock.formats.conda_specs import CondaSpec
from envkit.lock.formats.foreign import Foreign
from envkit.lock.formats.naming import environment_name
from envkit.lock.formats.pip_lines import PipReader
from envkit.lock.formats.rendering import environment_text
from envkit.lock.formats.source import Source, read_source
from envkit.messages import _

__all__ = ["read_requirements_file"]

_PYTHON = re.compile(r"#.*(?:\b[Pp]ython |--python-version[ =])(?P<version>3\.\d+)")
"""What pip-compile ("with Python 3.11") and uv ("--python-version 3.11") write at the top."""


def read_requirements_file(source: Source, *, python: str | None = None) -> Foreign:
    """The environment for a file of requirements: Python, pip and those.

    Python is `python`, or the version that the file's own header names, or any. Raises InputError with the
    file and the line for what cannot be locked.
    """
    reader = PipReader(source)
    _read(source, reader, (source.path.absolute(),))
    specs, indexes, accelerator = reader.finish()
    if not specs:
        raise source.refusal(_("no packages are asked for"), _("write one requirement a line"))
    version = python or _said_python(source)
    if version is None:
        source.warn(_("no Python version is named, so the newest is taken; `--python 3.11` names one"))
    conda = [
        CondaSpec(name="python", constraint=f"={version}" if version else ""),
        CondaSpec(name="pip"),
    ]
    source.note(_("Python itself comes from the channel {channel}").format(channel=DEFAULT_CHANNEL))
    name = environment_name(None, source.path)
    return Foreign(
        path=source.path,
        kind="requirements",
        name=name,
        channels=(DEFAULT_CHANNEL,),
        text=environment_text(
            name=name, channels=(DEFAULT_CHANNEL,), specs=conda, pip=specs, indexes=indexes
        ),
        pip=indexes,
        hashes={spec.name: spec.hashes for spec in specs if spec.hashes},
        accelerator=accelerator,
        notes=source.said,
    )


def _read(source: Source, reader: PipReader, opened: tuple[Path, ...]) -> None:
    for line, text in _logical_lines(source):
        nested = reader.read(text, line, source=source)
        if nested is None:
            continue
        path = source.path.parent / nested
        # What it reads goes to an index as the names of packages: nobody's other files do.
        inside = (opened[0].parent.resolve(), Path.cwd())
        if "://" in nested or not any(path.resolve().is_relative_to(folder) for folder in inside):
            raise source.refusal(
                _("-r {value} lies outside of this folder").format(value=nested),
                _("copy it beside this file, or run this in a folder that holds both"),
                line,
            )
        if path.absolute() in opened:
            raise source.refusal(
                _("-r {value} names a file that names this one").format(value=nested),
                _("leave one of the two lines out"),
                line,
            )
        inner = read_source(path)
        _read(inner, reader, (*opened, path.absolute()))
        source.notes += inner.notes


def _logical_lines(source: Source) -> Iterator[tuple[int, str]]:
    """Lines with their continuations (a backslash at the end), each with the number of its first."""
    parts: list[str] = []
    first = 1
    for number, line in enumerate(source.lines, 1):
        if not parts:
            first = number
        stripped = line.rstrip()
        if stripped.endswith("\\") and not stripped.lstrip().startswith("#"):
            parts.append(stripped[:-1].strip())
            continue
        parts.append(line.strip())
        yield first, " ".join(part for part in parts if part)
        parts = []
    if parts:
        yield first, " ".join(parts)


def _said_python(source: Source) -> str | None:
    for line in source.lines[:20]:
        match = _PYTHON.search(line)
        if match:
            source.note(_("its header says Python {version}").format(version=match["version"]))
            return match["version"]
    return None
