"""An environment.yml from anywhere: exports, hand-written files, files for another system."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import yaml

from envkit.lock.formats.channel_list import DEFAULT_CHANNEL, Channels
from envkit.lock.formats.conda_specs import CondaSpec, merge_specs, read_conda_spec
from envkit.lock.formats.foreign import Foreign
from envkit.lock.formats.naming import environment_name
from envkit.lock.formats.pip_lines import PipReader, PipSpec
from envkit.lock.formats.pip_options import why_refused
from envkit.lock.formats.platforms import platform_marks
from envkit.lock.formats.rendering import environment_text
from envkit.lock.formats.source import Source
from envkit.messages import _

__all__ = ["read_environment_file"]

_SELECTOR = re.compile(r"#.*\[\s*(?P<selector>[^\[\]]+?)\s*\][^()]*$")
SELECTORS = (
    "linux", "linux64", "aarch64", "ppc64le", "unix", "osx", "osx64", "arm64", "win", "win64",
)  # fmt: skip
"""What conda-lock understands in `# [linux]` (src_parser/selectors.py); conda itself reads none of them."""

_PLATFORM = re.compile(r"(linux|osx|win)-[a-z0-9]+")
_NULL = "tag:yaml.org,2002:null"
_MERGE = "tag:yaml.org,2002:merge"


def read_environment_file(source: Source) -> Foreign:
    """The environment that a file describes. Raises InputError with the line for what cannot be locked."""
    return _Reader(source).read()


class _Reader:
    def __init__(self, source: Source) -> None:
        self._source = source
        self._channels = Channels(source)
        self._pip = PipReader(source)
        self._specs: list[CondaSpec] = []
        self._name: str | None = None
        self._platforms: list[str] = []
        self._variables: dict[str, str] = {}

    def read(self) -> Foreign:
        source = self._source
        values = self._top_level()
        handlers: Mapping[str, Callable[[yaml.Node, int], None]] = {
            "name": self._read_name,
            "channels": self._read_channels,
            "platforms": self._read_platforms,
            "pip-repositories": self._read_repositories,
            "variables": self._read_variables,
            "dependencies": self._read_dependencies,
        }
        # Channels come first, so that `channel::package` knows which are listed, wherever the keys stand.
        for key in (*handlers, *(key for key in values if key not in handlers)):
            if key not in values:
                continue
            line, node = values[key]
            if key in handlers:
                handlers[key](node, line)
            else:
                self._read_other(key, node, line)
        if "channels" not in values:
            self._channels.add(DEFAULT_CHANNEL, None)
            source.warn(
                _("no channels are named, so {channel} is asked; list others under `channels:`").format(
                    channel=DEFAULT_CHANNEL
                )
            )
        if "dependencies" not in values:
            raise source.refusal(
                _("not an environment: `dependencies:` is missing"),
                _("list the packages under `dependencies:`"),
            )
        return self._result()

    def _result(self) -> Foreign:
        source = self._source
        specs = merge_specs(self._specs, source)
        pip, indexes, accelerator = self._pip.finish()
        if not specs and not pip:
            raise source.refusal(_("no packages are asked for"), _("list them under `dependencies:`"))
        name = environment_name(self._name, source.path)
        if name != self._name:
            source.note(_("it is called {name} here").format(name=name))
        platforms = tuple(dict.fromkeys(self._platforms)) or self._given_away(specs, pip)
        self._tell_of_builds(specs)
        return Foreign(
            path=source.path,
            kind="environment",
            name=name,
            channels=self._channels.names,
            text=environment_text(
                name=name,
                channels=self._channels.names,
                specs=specs,
                pip=pip,
                indexes=indexes,
                platforms=self._platforms,
            ),
            platforms=platforms,
            pip=indexes,
            hashes={spec.name: spec.hashes for spec in pip if spec.hashes},
            accelerator=accelerator,
            variables=self._variables,
            notes=source.said,
        )

    def _top_level(self) -> dict[str, tuple[int, yaml.Node]]:
        node = self._source.nodes()
        if not isinstance(node, yaml.MappingNode):
            raise self._source.refusal(
                _("not an environment: the document must be a mapping"),
                _("begin with `channels:` and `dependencies:`"),
                _line(node),
            )
        values: dict[str, tuple[int, yaml.Node]] = {}
        merged: list[tuple[yaml.Node, yaml.Node]] = []
        for key, value in node.value:
            if key.tag == _MERGE:
                merged += _merged_in(value)
                continue
            if not isinstance(key, yaml.ScalarNode):
                raise self._source.refusal(_("a key must be plain text"), _("mend the YAML"), _line(key))
            if key.value in values:
                raise self._source.refusal(
                    _("the key '{key}' stands twice (first in line {line})").format(
                        key=key.value, line=values[key.value][0]
                    ),
                    _("keep one of the two"),
                    _line(key),
                )
            values[str(key.value)] = (_line(key), value)
        for key, value in merged:
            values.setdefault(str(key.value), (_line(key), value))
        return values

    def _read_name(self, node: yaml.Node, line: int) -> None:
        self._name = self._scalar(node, "name") if node.tag != _NULL else None

    def _read_channels(self, node: yaml.Node, line: int) -> None:
        if isinstance(node, yaml.ScalarNode) and node.tag != _NULL:
            self._channels.add(node.value, line)
        elif node.tag != _NULL:
            for item in self._items(node, "channels"):
                self._channels.add(self._scalar(item, "channels"), _line(item))
        if not self._channels.names:
            raise self._source.refusal(
                _("`channels:` names no channel, so there is nothing to take packages from"),
                _("list at least one, such as `- conda-forge`"),
                line,
            )

    def _read_platforms(self, node: yaml.Node, line: int) -> None:
        for item in self._items(node, "platforms"):
            platform = self._scalar(item, "platforms")
            if not _PLATFORM.fullmatch(platform):
                raise self._source.refusal(
                    _("'{platform}' is no platform").format(platform=platform),
                    _("write linux-64, linux-aarch64, osx-64, osx-arm64 or win-64"),
                    _line(item),
                )
            self._platforms.append(platform)

    def _read_repositories(self, node: yaml.Node, line: int) -> None:
        for item in self._items(node, "pip-repositories"):
            self._pip.add_index(self._scalar(item, "pip-repositories"), _line(item))

    def _read_variables(self, node: yaml.Node, line: int) -> None:
        if not isinstance(node, yaml.MappingNode):
            return
        for key, value in node.value:
            self._variables[str(key.value)] = str(getattr(value, "value", ""))
        self._source.warn(
            _("a lock holds no variables; set {names} yourself").format(names=", ".join(self._variables)),
            line,
        )

    def _read_other(self, key: str, node: yaml.Node, line: int) -> None:
        if key == "prefix":
            self._source.note(_("`prefix:` is a folder of one machine and is left out"), line)
        elif key == "allow-pypi-requests":
            if str(getattr(node, "value", "")).lower() in ("false", "no", "off"):
                self._pip.forbid_default_index()
        else:
            self._source.note(_("`{key}:` means nothing to a lock").format(key=key), line)

    def _read_dependencies(self, node: yaml.Node, line: int) -> None:
        for item in self._items(node, "dependencies"):
            selector = self._selector(item)
            if isinstance(item, yaml.MappingNode):
                self._read_section(item, selector)
                continue
            self._specs.append(
                read_conda_spec(
                    self._scalar(item, "dependencies"),
                    self._source,
                    self._channels,
                    line=_line(item),
                    selector=selector,
                )
            )

    def _read_section(self, node: yaml.MappingNode, selector: str) -> None:
        for key, value in node.value:
            if key.value != "pip":
                shown = (
                    f"{key.value}: {value.value}" if isinstance(value, yaml.ScalarNode) else f"{key.value}:"
                )
                raise self._source.refusal(
                    _("`{written}` is neither a package nor a pip section").format(written=shown),
                    _("write `{name}={value}`").format(
                        name=key.value, value=value.value if isinstance(value, yaml.ScalarNode) else "1.2"
                    ),
                    _line(key),
                )
            if value.tag == _NULL:
                continue
            items = [value] if isinstance(value, yaml.ScalarNode) else self._items(value, "pip")
            for item in items:
                nested = self._pip.read(
                    self._scalar(item, "pip"), _line(item), selector=self._selector(item) or selector
                )
                if nested is not None:
                    raise self._source.refusal(*why_refused("-r", nested), _line(item))

    def _items(self, node: yaml.Node, key: str) -> Iterator[yaml.Node]:
        if node.tag == _NULL:
            return
        if not isinstance(node, yaml.SequenceNode):
            raise self._source.refusal(
                _("`{key}:` must be a list").format(key=key), _("write one `- item` a line"), _line(node)
            )
        yield from node.value

    def _scalar(self, node: yaml.Node, key: str) -> str:
        if not isinstance(node, yaml.ScalarNode) or node.tag == _NULL or not node.value.strip():
            raise self._source.refusal(
                _("an entry of `{key}:` is empty or no plain text").format(key=key),
                _("write one `- item` a line"),
                _line(node),
            )
        return str(node.value).strip()

    def _selector(self, node: yaml.Node) -> str:
        """The platform that a comment behind an entry limits it to."""
        match = _SELECTOR.search(self._source.lines[node.start_mark.line])
        if match is None:
            return ""
        selector = match["selector"]
        if selector in SELECTORS:
            return selector
        self._source.warn(
            _("the selector [{selector}] is not understood and is ignored, as conda does").format(
                selector=selector
            ),
            _line(node),
        )
        return ""

    def _given_away(self, specs: list[CondaSpec], pip: tuple[PipSpec, ...]) -> tuple[str, ...]:
        everything: list[CondaSpec | PipSpec] = [*specs, *pip]
        names = {spec.name: spec.line for spec in everything if not spec.selector}
        marks = platform_marks(names)
        if not marks:
            return ()
        platform, name = next(iter(marks.items()))
        if len(marks) > 1:
            other, second = list(marks.items())[1]
            raise self._source.refusal(
                _("{first} exists on {platform} alone and {second} on {other} alone").format(
                    first=name, platform=platform, second=second, other=other
                ),
                _("put `# [win]` or `# [linux]` behind those lines, or leave them out"),
                names[second],
            )
        self._source.warn(
            _("{name} exists on {platform} alone, so the lock is made for {platform}").format(
                name=name, platform=platform
            ),
            names[name],
        )
        return (platform,)

    def _tell_of_builds(self, specs: list[CondaSpec]) -> None:
        pinned = [spec for spec in specs if spec.exact_build]
        if pinned:
            self._source.note(
                _(
                    "{count} packages are pinned to builds of one platform; "
                    "`conda env export --no-builds` leaves those out"
                ).format(count=len(pinned)),
                pinned[0].line,
            )


def _merged_in(node: yaml.Node) -> Iterator[tuple[yaml.Node, yaml.Node]]:
    """The keys that `<<:` brings in from an anchor, or from a list of them."""
    for mapping in node.value if isinstance(node, yaml.SequenceNode) else (node,):
        if isinstance(mapping, yaml.MappingNode):
            yield from mapping.value


def _line(node: Any) -> int:
    return int(node.start_mark.line) + 1
