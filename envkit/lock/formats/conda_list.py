"""`conda list --export`: name=version=build lines, without channels."""

from __future__ import annotations

import re

from envkit.lock.formats.channel_list import DEFAULT_CHANNEL, Channels
from envkit.lock.formats.conda_specs import CondaSpec, merge_specs, read_conda_spec
from envkit.lock.formats.foreign import Foreign
from envkit.lock.formats.naming import environment_name
from envkit.lock.formats.pip_lines import PipReader
from envkit.lock.formats.platforms import platform_marks
from envkit.lock.formats.rendering import environment_text
from envkit.lock.formats.source import Source
from envkit.messages import _

__all__ = ["read_conda_list"]

_PLATFORM = re.compile(r"#\s*platform:\s*(?P<platform>\S+)")


def read_conda_list(source: Source) -> Foreign:
    """The environment that was exported: conda's packages with builds, pip's (`pypi_0`) in a section."""
    channels = Channels(source)
    channels.add(DEFAULT_CHANNEL, None)
    source.warn(
        _("the list names no channels, so {channel} is asked; `conda env export` names them").format(
            channel=DEFAULT_CHANNEL
        )
    )
    pip = PipReader(source)
    specs: list[CondaSpec] = []
    platforms: list[str] = []
    for number, line in enumerate(source.lines, 1):
        text = line.strip()
        match = _PLATFORM.match(text)
        if match:
            platforms.append(match["platform"])
        if not text or text.startswith("#"):
            continue
        name, version, build = text.split("=")
        if build.startswith("pypi"):
            pip.read(f"{name}=={version}", number)
        else:
            specs.append(read_conda_spec(text, source, channels, line=number))
    merged = merge_specs(specs, source)
    wanted, indexes, accelerator = pip.finish()
    name = environment_name(None, source.path)
    return Foreign(
        path=source.path,
        kind="conda-list",
        name=name,
        channels=channels.names,
        text=environment_text(
            name=name, channels=channels.names, specs=merged, pip=wanted, indexes=indexes, platforms=platforms
        ),
        platforms=tuple(platforms or list(platform_marks(spec.name for spec in merged))[:1]),
        pip=indexes,
        accelerator=accelerator,
        notes=source.said,
    )
