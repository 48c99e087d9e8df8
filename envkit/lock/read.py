"""Read a conda-lock v1 file into a Lock, or say which place in the file is wrong.

A lock may come from a stranger: names, versions, URLs and hashes are checked here, once, so that the code
that builds paths and opens connections from them need not look again. What conda-lock itself writes
(categories, pip packages, environment variables in URLs) passes; unknown keys are ignored.

The format: https://github.com/conda/conda-lock/blob/main/conda_lock/lockfile/v1/models.py
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import yaml

from envkit.errors import InputError
from envkit.files import ScalarErrors, read_text, refuse_bomb
from envkit.messages import _
from envkit.model import Lock, Manager, Package

__all__ = ["DIGEST_KEY", "SCHEMA", "SCHEMA_KEY", "parse_lock", "read_lock"]

SCHEMA_KEY = "envkit-schema"
DIGEST_KEY = "envkit-spec"
SCHEMA = "1"
"""The version of what envkit adds to a lock, in `metadata.custom_metadata`."""

_LARGEST = 64 << 20
_LONGEST = 300  # characters of a message: a stranger's text may be any length

_NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]|\.(?!\.))*")
_VERSION = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_!+~-]|\.(?!\.))*")
_PLATFORM = re.compile(r"[a-z]+-[a-z0-9]+")
_CATEGORY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_. -]*")
_HEX = {"md5": re.compile(r"[0-9a-f]{32}"), "sha256": re.compile(r"[0-9a-f]{64}")}
_ENDINGS = (".conda", ".tar.bz2")
_SCHEMES = ("https", "http", "file")
_CONTROL = re.compile(r"[\x00-\x20\x7f]")


class _Problem(Exception):
    """A mistake at a place in the document, before the file's name is known."""

    def __init__(self, place: str, text: str) -> None:
        text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
        super().__init__(f"{place}: {text}" if place else text)


class _Loader(ScalarErrors, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """The C parser (twelve times faster), refusing a key that stands twice in one mapping."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        mapping: dict[Any, Any] = super().construct_mapping(node, deep=deep)
        if len(mapping) != len(node.value):
            raise yaml.constructor.ConstructorError(
                None, None, _("a key stands twice in one mapping"), node.start_mark
            )
        return mapping


def read_lock(path: Path) -> Lock:
    """The lock in a file.

    Raises InputError, naming the file and the place in it (`package[3].hash.sha256`), for anything that is
    not a complete and harmless conda-lock v1 file.
    """
    return parse_lock(read_text(path), path)


def parse_lock(text: str, path: Path) -> Lock:
    """The lock in a text; `path` is where it comes from or will go, for messages and `Lock.path`."""
    try:
        return _lock(_document(text, path), path)
    except _Problem as problem:
        raise InputError(
            str(problem), _("make the lock again with `envkit lock`, or restore it"), path=path
        ) from None


def _document(text: str, path: Path) -> Mapping[Any, Any]:
    if len(text) > _LARGEST:
        raise _Problem("", _("too large to be a lock ({size} MB)").format(size=len(text) >> 20))
    try:
        loader = _Loader(text)  # type: ignore[call-arg]  # the parser's, which mypy does not see
        try:
            node = loader.get_single_node()
            if "&" in text:
                refuse_bomb(node)
            document = loader.construct_document(node) if node is not None else None
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        raise InputError(
            str(problem.problem or problem), path=path, line=mark.line + 1 if mark else None
        ) from None
    except RecursionError:
        raise _Problem("", _("nested too deeply")) from None
    except (yaml.YAMLError, ValueError) as problem:
        raise InputError(" ".join(str(problem).split()), path=path) from None
    if document is None:
        raise _Problem("", _("the file is empty"))
    if not isinstance(document, dict):
        raise _Problem("", _("not a lock: the document must be a mapping"))
    return document


def _lock(document: Mapping[Any, Any], path: Path) -> Lock:
    version = document.get("version")
    if version != 1 or isinstance(version, bool):
        raise _Problem(
            "version",
            _("expected 1, found {found}: not a lock of conda-lock's first format").format(
                found=repr(version)
            ),
        )
    metadata = _get_mapping(document, "metadata", "")
    platforms = tuple(_platforms(metadata))
    return Lock(
        path=path,
        digest=_digest(metadata),
        channels=tuple(_channels(metadata)),
        platforms=platforms,
        packages=tuple(_packages(document, platforms)),
        metadata=metadata,
    )


def _digest(metadata: Mapping[Any, Any]) -> str | None:
    if metadata.get("custom_metadata") is None:
        return None
    return _get_optional_string(
        _get_mapping(metadata, "custom_metadata", "metadata"), DIGEST_KEY, "metadata.custom_metadata"
    )


def _platforms(metadata: Mapping[Any, Any]) -> Iterator[str]:
    platforms = _get_list(metadata, "platforms", "metadata")
    for index, platform in enumerate(platforms):
        place = f"metadata.platforms[{index}]"
        yield _matching(_PLATFORM, _string(platform, place), place, _("not a conda subdir"))
    if not platforms:
        raise _Problem("metadata.platforms", _("at least one platform is needed"))


def _channels(metadata: Mapping[Any, Any]) -> Iterator[str]:
    for index, channel in enumerate(_get_list(metadata, "channels", "metadata")):
        place = f"metadata.channels[{index}]"
        if isinstance(channel, dict):
            yield _get_string(channel, "url", place)
        else:
            yield _string(channel, place)


def _packages(document: Mapping[Any, Any], platforms: tuple[str, ...]) -> Iterator[Package]:
    seen: dict[tuple[str, str, str], tuple[Package, set[str]]] = {}
    for index, entry in enumerate(_get_list(document, "package", "")):
        place = f"package[{index}]"
        if not isinstance(entry, dict):
            raise _Problem(place, _expected("mapping", entry))
        package = _package(entry, place)
        if package.platform not in platforms:
            raise _Problem(f"{place}.platform", _("not listed in metadata.platforms"))
        key = (package.manager, package.name, package.platform)
        first, categories = seen.setdefault(key, (package, set()))
        # conda-lock repeats a package once for each category that needs it; then all else is the same.
        if package.category in categories or package.url != first.url or package.sha256 != first.sha256:
            raise _Problem(
                place,
                _("{name} stands twice for {platform}").format(name=package.name, platform=package.platform),
            )
        categories.add(package.category)
        if first is package:
            yield package


def _package(entry: Mapping[Any, Any], place: str) -> Package:
    manager = _get_manager(entry, place)
    hashes = _get_mapping(entry, "hash", place)
    name = _get_matching(_NAME, entry, "name", place, _("not a package name"))
    version = _get_matching(_VERSION, entry, "version", place, _("not a version"))
    platform = _get_matching(_PLATFORM, entry, "platform", place, _("not a conda subdir"))
    url = _get_url(entry, place)
    if manager == "conda":
        _check_conda_url(url, name, version, platform, f"{place}.url")
    sha256 = _get_hash(hashes, "sha256", f"{place}.hash")
    if sha256 is None:
        raise _Problem(f"{place}.hash.sha256", _("missing: the archive could not be verified"))
    category = _get_optional_string(entry, "category", place) or "main"
    return Package(
        name=name,
        version=version,
        manager=manager,
        platform=platform,
        url=url,
        sha256=sha256,
        md5=_get_hash(hashes, "md5", f"{place}.hash"),
        depends=_get_depends(entry, place) if manager == "conda" else {},
        category=_matching(_CATEGORY, category, f"{place}.category", _("not a category")),
    )


def _check_conda_url(url: str, name: str, version: str, platform: str, place: str) -> None:
    """The archive must be the package it is listed as, or another one would be installed in its name."""
    parts = unquote(urlsplit(url).path).split("/")
    file_name, subdir = parts[-1], parts[-2] if len(parts) > 1 else ""
    ending = next((ending for ending in _ENDINGS if file_name.endswith(ending)), None)
    if ending is None:
        raise _Problem(place, _("must end in .conda or .tar.bz2"))
    if subdir not in (platform, "noarch"):
        raise _Problem(
            place,
            _("from the folder {subdir}, but listed for {platform}").format(subdir=subdir, platform=platform),
        )
    stem = file_name.removesuffix(ending).rsplit("-", 2)
    if len(stem) != 3 or stem[0] != name or stem[1] != version:
        raise _Problem(
            place,
            _("{file} is not {name} {version}").format(file=file_name, name=name, version=version),
        )


def _get_manager(entry: Mapping[Any, Any], place: str) -> Manager:
    manager = _get_string(entry, "manager", place)
    if manager == "conda":
        return "conda"
    if manager == "pip":
        return "pip"
    raise _Problem(f"{place}.manager", _("expected conda or pip, found {found}").format(found=repr(manager)))


def _get_url(entry: Mapping[Any, Any], place: str) -> str:
    url = _get_string(entry, "url", place)
    try:
        parts = urlsplit(url)
    except ValueError:
        raise _Problem(f"{place}.url", _("not a URL")) from None
    if parts.scheme not in _SCHEMES:
        raise _Problem(f"{place}.url", _("expected a URL of https, http or file"))
    segments = unquote(parts.path).split("/")
    if (
        _CONTROL.search(url)
        or ".." in segments
        or "." in segments
        or not segments[-1]
        or "\\" in unquote(url)
    ):
        raise _Problem(f"{place}.url", _("not the URL of a file"))
    if len(segments) != len(parts.path.split("/")):
        raise _Problem(f"{place}.url", _("a quoted slash in a path"))
    return url


def _get_depends(entry: Mapping[Any, Any], place: str) -> Mapping[str, str]:
    if entry.get("dependencies") is None:
        return {}
    place = f"{place}.dependencies"
    return {
        _matching(_NAME, _string(name, place), place, _("not a package name")): _string(
            constraint, f"{place}.{name}"
        )
        for name, constraint in _get_mapping(entry, "dependencies", place.rpartition(".")[0]).items()
    }


def _get_hash(hashes: Mapping[Any, Any], kind: str, place: str) -> str | None:
    value = _get_optional_string(hashes, kind, place)
    if not value:
        return None
    return _matching(
        _HEX[kind], value, f"{place}.{kind}", _("not a {kind} in lower-case hex").format(kind=kind)
    )


def _get(mapping: Mapping[Any, Any], key: str, place: str) -> Any:
    if key not in mapping:
        raise _Problem(_at(place, key), _("missing"))
    return mapping[key]


def _get_mapping(mapping: Mapping[Any, Any], key: str, place: str) -> Mapping[Any, Any]:
    value = _get(mapping, key, place)
    if not isinstance(value, dict):
        raise _Problem(_at(place, key), _expected("mapping", value))
    return value


def _get_list(mapping: Mapping[Any, Any], key: str, place: str) -> list[Any]:
    value = _get(mapping, key, place)
    if not isinstance(value, list):
        raise _Problem(_at(place, key), _expected("list", value))
    return value


def _get_string(mapping: Mapping[Any, Any], key: str, place: str) -> str:
    return _string(_get(mapping, key, place), _at(place, key))


def _get_optional_string(mapping: Mapping[Any, Any], key: str, place: str) -> str | None:
    value = mapping.get(key)
    return None if value is None else _string(value, _at(place, key))


def _get_matching(
    pattern: re.Pattern[str], mapping: Mapping[Any, Any], key: str, place: str, problem: str
) -> str:
    return _matching(pattern, _get_string(mapping, key, place), _at(place, key), problem)


def _matching(pattern: re.Pattern[str], value: str, place: str, problem: str) -> str:
    if not pattern.fullmatch(value):
        raise _Problem(place, f"{problem}: {_shown(value)}")
    return value


def _string(value: object, place: str) -> str:
    if not isinstance(value, str):
        raise _Problem(place, _expected("string", value))
    return value


def _expected(kind: str, value: object) -> str:
    names = {"mapping": _("a mapping"), "list": _("a list"), "string": _("a string")}
    return _("expected {kind}, found {found}").format(kind=names[kind], found=_shown(value))


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _at(place: str, key: str) -> str:
    return f"{place}.{key}" if place else key
