"""Read a conda-lock v1 file into a Lock, or say which place in the file is wrong.

A lock may come from a stranger: names, versions, URLs and hashes are checked here, once, so that the code
that builds paths and opens connections from them need not look again. What conda-lock itself writes
(categories, pip packages, environment variables in URLs) passes; unknown keys are ignored.

The format: https://github.com/conda/conda-lock/blob/main/conda_lock/lockfile/v1/models.py
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from envkit.errors import InputError
from envkit.files import read_text
from envkit.lock.document import load_document
from envkit.lock.fields import Fault, Fields, expected
from envkit.messages import _
from envkit.model import Lock, Manager, Package

__all__ = ["DIGEST_KEY", "SCHEMA", "SCHEMA_KEY", "Draft", "Entry", "parse_draft", "parse_lock", "read_lock"]

SCHEMA_KEY = "envkit-schema"
DIGEST_KEY = "envkit-spec"
SCHEMA = "1"
"""The version of what envkit adds to a lock, in `metadata.custom_metadata`."""

_NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]|\.(?!\.))*")
_VERSION = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_!+~-]|\.(?!\.))*")
_PLATFORM = re.compile(r"[a-z]+-[a-z0-9]+")
_CATEGORY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_. -]*")
_ENDINGS = (".conda", ".tar.bz2")
_SCHEMES = ("https", "http", "file")
_CONTROL = re.compile(r"[\x00-\x20\x7f]")


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One package of a lock with its place in the file, "package[3]", and what stands there."""

    place: str
    package: Package
    raw: Mapping[Any, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Draft:
    """A lock that was read to its end whatever is wrong with it; only an audit may look at one.

    `lock` holds what could be read, harmful values as they stand in the file. Nothing may be installed,
    fetched or written by it.
    """

    lock: Lock
    entries: tuple[Entry, ...]
    faults: tuple[Fault, ...]
    document: Mapping[Any, Any]


class _Stop(Exception):
    """The first fault, where one is enough."""


def read_lock(path: Path) -> Lock:
    """The lock in a file.

    Raises InputError, naming the file and the place in it (`package[3].hash.sha256`), for anything that is
    not a complete and harmless conda-lock v1 file.
    """
    return parse_lock(read_text(path), path)


def parse_lock(text: str, path: Path) -> Lock:
    """The lock in a text; `path` is where it comes from or will go, for messages and `Lock.path`."""

    def stop(fault: Fault) -> None:
        raise _Stop(str(fault))

    document = load_document(text, path)
    try:
        reader = _Reader(Fields(stop), document)
        return reader.lock(path, tuple(entry.package for entry in reader.entries()))
    except _Stop as problem:
        raise InputError(
            str(problem), _("make the lock again with `envkit lock`, or restore it"), path=path
        ) from None


def parse_draft(text: str, path: Path) -> Draft:
    """All that a text says and every fault in it; InputError where it is no conda-lock v1 file at all."""
    faults: list[Fault] = []
    document = load_document(text, path)
    reader = _Reader(Fields(faults.append), document)
    entries = tuple(reader.entries())
    return Draft(
        lock=reader.lock(path, tuple(entry.package for entry in entries)),
        entries=entries,
        faults=tuple(faults),
        document=document,
    )


class _Reader:
    """Walks through one document."""

    def __init__(self, fields: Fields, document: Mapping[Any, Any]) -> None:
        self._fields = fields
        self._document = document
        self._metadata = fields.mapping(document, "metadata", "")
        self._platforms = tuple(self._listed_platforms())

    def lock(self, path: Path, packages: tuple[Package, ...]) -> Lock:
        return Lock(
            path=path,
            digest=self._digest(),
            channels=tuple(self._channels()),
            platforms=self._platforms,
            packages=packages,
            metadata=self._metadata,
        )

    def entries(self) -> Iterator[Entry]:
        """The packages; one that stands there once for each of several categories comes once."""
        seen: dict[tuple[str, str, str], tuple[Package, set[str]]] = {}
        for index, raw in enumerate(self._fields.list(self._document, "package", "")):
            place = f"package[{index}]"
            if not isinstance(raw, dict):
                self._fields.fault("format", place, expected("mapping", raw))
                continue
            package = self._package(raw, place)
            if package.platform not in self._platforms:
                self._fields.fault("platform", f"{place}.platform", _("not listed in metadata.platforms"))
            key = (package.manager, package.name, package.platform)
            first, categories = seen.setdefault(key, (package, set()))
            # conda-lock repeats a package once for each category that needs it; then all else is the same.
            twice = (
                package.category in categories or package.url != first.url or package.sha256 != first.sha256
            )
            if twice:
                text = _("{name} stands twice for {platform}")
                self._fields.fault("twice", place, text.format(name=package.name, platform=package.platform))
            categories.add(package.category)
            if first is package or twice:
                yield Entry(place=place, package=package, raw=raw)

    def _digest(self) -> str | None:
        if self._metadata.get("custom_metadata") is None:
            return None
        custom = self._fields.mapping(self._metadata, "custom_metadata", "metadata")
        return self._fields.optional(custom, DIGEST_KEY, "metadata.custom_metadata")

    def _listed_platforms(self) -> Iterator[str]:
        platforms = self._fields.list(self._metadata, "platforms", "metadata")
        for index, platform in enumerate(platforms):
            place = f"metadata.platforms[{index}]"
            text = self._fields.text(platform, place)
            yield self._fields.matching(_PLATFORM, text, place, "platform", lambda: _("not a conda subdir"))
        if not platforms:
            self._fields.fault("format", "metadata.platforms", _("at least one platform is needed"))

    def _channels(self) -> Iterator[str]:
        for index, channel in enumerate(self._fields.list(self._metadata, "channels", "metadata")):
            place = f"metadata.channels[{index}]"
            if isinstance(channel, dict):
                yield self._fields.string(channel, "url", place)
            else:
                yield self._fields.text(channel, place)

    def _package(self, raw: Mapping[Any, Any], place: str) -> Package:
        manager = self._manager(raw, place)
        hashes = self._fields.mapping(raw, "hash", place)
        name = self._matching(_NAME, raw, "name", place, lambda: _("not a package name"))
        version = self._matching(_VERSION, raw, "version", place, lambda: _("not a version"))
        text = self._fields.string(raw, "platform", place)
        platform = self._fields.matching(
            _PLATFORM, text, f"{place}.platform", "platform", lambda: _("not a conda subdir")
        )
        url = self._url(raw, place)
        if manager == "conda":
            self._check_archive(url, name, version, platform, f"{place}.url")
        sha256 = self._fields.digest(hashes, "sha256", f"{place}.hash")
        if sha256 is None:
            self._fields.fault(
                "hash", f"{place}.hash.sha256", _("missing: the archive could not be verified")
            )
        category = self._fields.optional(raw, "category", place) or "main"
        return Package(
            name=name,
            version=version,
            manager=manager,
            platform=platform,
            url=url,
            sha256=sha256 or "",
            md5=self._fields.digest(hashes, "md5", f"{place}.hash"),
            depends=self._depends(raw, place) if manager == "conda" else {},
            category=self._fields.matching(
                _CATEGORY, category, f"{place}.category", "name", lambda: _("not a category")
            ),
        )

    def _matching(
        self, pattern: re.Pattern[str], raw: Mapping[Any, Any], key: str, place: str, words: Callable[[], str]
    ) -> str:
        value = self._fields.string(raw, key, place)
        return self._fields.matching(pattern, value, f"{place}.{key}", "name", words)

    def _manager(self, raw: Mapping[Any, Any], place: str) -> Manager:
        manager = self._fields.string(raw, "manager", place)
        if manager == "pip":
            return "pip"
        if manager != "conda":
            text = _("expected conda or pip, found {found}").format(found=repr(manager))
            self._fields.fault("format", f"{place}.manager", text)
        return "conda"

    def _url(self, raw: Mapping[Any, Any], place: str) -> str:
        url = self._fields.string(raw, "url", place)
        problem = _url_problem(url)
        if problem:
            self._fields.fault("url", f"{place}.url", problem)
        return url

    def _check_archive(self, url: str, name: str, version: str, platform: str, place: str) -> None:
        """The archive must be the package it is listed as, or another one would be installed in its name."""
        try:
            parts = unquote(urlsplit(url).path).split("/")
        except ValueError:
            return  # told already
        file_name, subdir = parts[-1], parts[-2] if len(parts) > 1 else ""
        ending = next((ending for ending in _ENDINGS if file_name.endswith(ending)), None)
        if ending is None:
            self._fields.fault("file", place, _("must end in .conda or .tar.bz2"))
            return
        if subdir not in (platform, "noarch"):
            text = _("from the folder {subdir}, but listed for {platform}")
            self._fields.fault("platform", place, text.format(subdir=subdir, platform=platform))
        stem = file_name.removesuffix(ending).rsplit("-", 2)
        if len(stem) != 3 or stem[0] != name or stem[1] != version:
            text = _("{file} is not {name} {version}")
            self._fields.fault("file", place, text.format(file=file_name, name=name, version=version))

    def _depends(self, raw: Mapping[Any, Any], place: str) -> Mapping[str, str]:
        if raw.get("dependencies") is None:
            return {}
        found = {}
        inside = f"{place}.dependencies"
        for name, constraint in self._fields.mapping(raw, "dependencies", place).items():
            if not isinstance(name, str) or not isinstance(constraint, str) or not _NAME.fullmatch(name):
                name = self._fields.text(name, inside)
                self._fields.matching(_NAME, name, inside, "name", lambda: _("not a package name"))
                constraint = self._fields.text(constraint, f"{inside}.{name}")
            found[name] = constraint
        return found


def _url_problem(url: str) -> str:
    """Why a text is not the URL of a file; empty where it is one."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return _("not a URL")
    if parts.scheme not in _SCHEMES:
        return _("expected a URL of https, http or file")
    segments = unquote(parts.path).split("/")
    harmless = not _CONTROL.search(url) and "\\" not in unquote(url)
    if not harmless or ".." in segments or "." in segments or not segments[-1]:
        return _("not the URL of a file")
    if len(segments) != len(parts.path.split("/")):
        return _("a quoted slash in a path")
    return ""
