"""pixi.lock, versions 4 to 7: one of its environments, on all its platforms.

Versions 4 and 5 list packages with `kind:` and `url:`, versions 6 and 7 under the key of their kind
(https://github.com/conda/rattler, crate rattler_lock).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from envkit.channels import canonicalise_url
from envkit.errors import InputError
from envkit.lock.formats.archives import read_archive_url
from envkit.lock.formats.channel_list import Channels
from envkit.lock.formats.foreign import Foreign, Pinned
from envkit.lock.formats.naming import environment_name, usable
from envkit.lock.formats.source import Source
from envkit.messages import _

__all__ = ["read_pixi_lock"]

_VERSIONS = ("4", "5", "6", "7")
_DEFAULT = "default"


def read_pixi_lock(source: Source, *, environment: str | None = None) -> Foreign:
    """The packages of one environment: the one named, else `default`, else the only one there is.

    Raises InputError with the line for a package that is built from a folder or has no URL, and for an
    unknown version or environment.
    """
    root = _Map(source, source.nodes())
    version = root.text("version")
    if version not in _VERSIONS:
        raise source.refusal(
            _("version {version} of pixi.lock is not read").format(version=version),
            _("versions {known} are; make it again with `pixi lock`").format(known=", ".join(_VERSIONS)),
            root.line("version"),
        )
    environments = root.map("environments")
    name = _chosen(environments, environment, source)
    chosen = environments.map(name)
    channels = Channels(source)
    for item in chosen.list("channels"):
        entry = item if isinstance(item, yaml.ScalarNode) else _Map(source, item).node("url")
        channels.add(str(getattr(entry, "value", "")), _line(item))
    details = dict(_details(root, source))
    subdirs = dict(_named_platforms(root, source))
    pinned = []
    packages = chosen.map("packages")
    for platform in packages.keys:
        for item in packages.list(platform):
            found = _pinned(_Map(source, item), subdirs.get(platform, platform), details, source)
            pinned.append(usable(found, source))
    if not pinned:
        raise source.refusal(
            _("its environment {name} has no packages").format(name=name),
            _("lock the environment.yml or pixi.toml it came from"),
        )
    others = [key for key in environments.keys if key != name]
    if others:
        source.note(
            _("its environment {name} is taken; the others are {others}").format(
                name=name, others=", ".join(others)
            )
        )
    return Foreign(
        path=source.path,
        kind="pixi",
        name=environment_name(None if name == _DEFAULT else name, source.path),
        channels=channels.names,
        platforms=tuple(dict.fromkeys(package.platform for package in pinned)),
        pinned=tuple(pinned),
        notes=source.said,
    )


def _chosen(environments: _Map, asked: str | None, source: Source) -> str:
    names = environments.keys
    if not names:
        raise source.refusal(
            _("it has no environment"), _("make the file again with `pixi lock`"), environments.start
        )
    if asked is not None and asked not in names:
        raise source.refusal(
            _("it has no environment '{name}'").format(name=asked),
            _("choose one of {names}").format(names=", ".join(names)),
        )
    if asked is None and _DEFAULT not in names and len(names) != 1:
        raise source.refusal(
            _("it has several environments and none is called default"),
            _("choose one of {names}").format(names=", ".join(names)),
        )
    return asked or (_DEFAULT if _DEFAULT in names else names[0])


def _details(root: _Map, source: Source) -> Iterator[tuple[str, _Map]]:
    """What the lock says of each package, by the reference that environments use."""
    for item in root.list("packages"):
        entry = _Map(source, item)
        for key in ("conda", "pypi", "url", "path"):
            reference = entry.get(key)
            if reference is not None:
                yield reference, entry
                break


def _named_platforms(root: _Map, source: Source) -> Iterator[tuple[str, str]]:
    """Version 7 may call a platform by a name of its own."""
    if "platforms" not in root.keys:
        return
    for item in root.list("platforms"):
        if isinstance(item, yaml.MappingNode):
            entry = _Map(source, item)
            yield entry.text("name"), entry.get("subdir") or entry.text("name")


def _pinned(item: _Map, platform: str, details: Mapping[str, _Map], source: Source) -> Pinned:
    manager, reference = next(
        ((key, value) for key in ("conda", "pypi") if (value := item.get(key)) is not None), ("", "")
    )
    line = item.start
    if "://" not in reference or reference.startswith("file:"):
        raise source.refusal(
            _("'{package}' is built from a folder of one machine").format(package=reference or "?"),
            _("leave it out of the pixi environment, and install it in the environment afterwards"),
            line,
        )
    entry = details.get(reference)
    if entry is None:
        raise source.refusal(
            _("{url} is not described under `packages:`").format(url=reference),
            _("make the file again with `pixi lock`"),
            line,
        )
    found = canonicalise_url(reference.partition("#")[0])
    name, version = entry.get("name"), entry.get("version")
    if manager == "conda":
        archive = read_archive_url(found.url)
        if archive is None:
            raise source.refusal(
                _("{url} is not the archive of a conda package").format(url=found.url),
                _("leave it out of the pixi environment, and install it in the environment afterwards"),
                line,
            )
        name, version = name or archive.name, version or archive.version
    if not name or not version:
        raise source.refusal(
            _("{url} has no name or no version").format(url=found.url),
            _("make the file again with `pixi lock`"),
            entry.start,
        )
    return Pinned(
        name=name,
        version=version,
        manager="conda" if manager == "conda" else "pip",
        platform=platform,
        url=found.url,
        sha256=entry.get("sha256"),
        md5=entry.get("md5"),
        depends=dict(_depends(entry)) if manager == "conda" else {},
        line=entry.start,
    )


def _depends(entry: _Map) -> Iterator[tuple[str, str]]:
    """Names and version constraints; the build part has no place in a conda-lock file."""
    merged: dict[str, list[str]] = {}
    if "depends" in entry.keys:
        for item in entry.list("depends"):
            words = str(getattr(item, "value", "")).partition("[")[0].split()
            if words:
                merged.setdefault(words[0].rpartition("::")[2], []).extend(words[1:2])
    for name, constraints in merged.items():
        yield name, ",".join(dict.fromkeys(constraints))


class _Map:
    """A YAML mapping whose values are fetched by key, each refusal with its line."""

    def __init__(self, source: Source, node: yaml.Node) -> None:
        self._source = source
        self.start = _line(node)
        if not isinstance(node, yaml.MappingNode):
            raise self._refusal(_("expected a mapping"), self.start)
        self._nodes: dict[str, yaml.Node] = {str(key.value): value for key, value in node.value}

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(self._nodes)

    def node(self, key: str) -> yaml.Node:
        if key not in self._nodes:
            raise self._refusal(_("`{key}:` is missing").format(key=key), self.start)
        return self._nodes[key]

    def line(self, key: str) -> int:
        return _line(self.node(key))

    def map(self, key: str) -> _Map:
        return _Map(self._source, self.node(key))

    def list(self, key: str) -> list[yaml.Node]:
        node = self.node(key)
        if not isinstance(node, yaml.SequenceNode):
            raise self._refusal(_("`{key}:` must be a list").format(key=key), _line(node))
        return list(node.value)

    def text(self, key: str) -> str:
        node = self.node(key)
        if not isinstance(node, yaml.ScalarNode):
            raise self._refusal(_("`{key}:` must be plain text").format(key=key), _line(node))
        return str(node.value)

    def get(self, key: str) -> str | None:
        node = self._nodes.get(key)
        return str(node.value) if isinstance(node, yaml.ScalarNode) else None

    def _refusal(self, message: str, line: int) -> InputError:
        return self._source.refusal(message, _("make the file again with `pixi lock`"), line)


def _line(node: Any) -> int:
    return int(node.start_mark.line) + 1
