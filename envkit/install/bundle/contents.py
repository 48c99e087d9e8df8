"""What a bundle says of itself: `bundle.json`, its first member."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envkit.errors import InputError
from envkit.files import parse_json
from envkit.install.target import check_name
from envkit.messages import _

__all__ = ["ENVKIT", "INSTALLER", "LOCK", "MANIFEST", "PIP", "SPEC", "Contents", "Member"]

MANIFEST = "bundle.json"
LOCK = "conda-lock.yml"
SPEC = "environment.yml"
INSTALLER = "install.sh"
PIP = "pip"
ENVKIT = "envkit-wheels"
"""Files and folders of a bundle. All others are channels: `<channel>/<subdir>/<archive>`."""

SCHEMA = 1
LARGEST = 16 << 20
"""Bytes of a bundle.json: a hundred thousand members."""

_KEYS = {"schema", "envkit", "name", "platform", "host_bound", "pythons", "members"}
_SHA256 = re.compile(r"[0-9a-f]{64}")
_PLATFORM = re.compile(r"linux-[a-z0-9]+")
_UNFIT = re.compile(r"[\x00-\x1f\x7f\\]")
_LONGEST_PATH = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class Member:
    """A file of a bundle: its path below the bundle's root, the sha256 (hex) and the bytes it has."""

    path: str
    sha256: str
    size: int

    @property
    def mode(self) -> int:
        """The permissions it is unpacked with."""
        return 0o755 if self.path == INSTALLER else 0o644


@dataclass(frozen=True, kw_only=True, slots=True)
class Contents:
    """All that a bundle has, in the order of the file.

    `name` is the environment's, `platform` a conda subdir. `host_bound` says that the packages were made from
    the interpreter and the wheels of one machine. `pythons` are the minor versions that `install.sh` runs
    with, `envkit` is the version that made it. The hashes tell damage; they authenticate nothing.
    """

    name: str
    platform: str
    host_bound: bool
    pythons: tuple[str, ...]
    envkit: str
    members: tuple[Member, ...]

    def __getitem__(self, path: str) -> Member:
        return next(member for member in self.members if member.path == path)

    @property
    def text(self) -> bytes:
        """The bytes of bundle.json: the same for the same contents."""
        document = {
            "schema": SCHEMA,
            "envkit": self.envkit,
            "name": self.name,
            "platform": self.platform,
            "host_bound": self.host_bound,
            "pythons": list(self.pythons),
            "members": [
                {"path": member.path, "sha256": member.sha256, "size": member.size} for member in self.members
            ],
        }
        return json.dumps(document, indent=1, ensure_ascii=False).encode() + b"\n"

    @staticmethod
    def parse(raw: bytes, path: Path) -> Contents:
        """What a bundle.json says; `path` is the bundle's, for messages. InputError where it is not sound."""
        try:
            found = _contents(raw)
            if found.text != raw:
                raise _Fault(_("it is not written as envkit writes it"))
            return found
        except _Fault as fault:
            raise InputError(
                _("{file} in it is not sound: {reason}").format(file=MANIFEST, reason=fault),
                _("this is no bundle of envkit, or it was changed; get it again from where it was made"),
                path=path,
            ) from None


class _Fault(Exception):
    """What is wrong with a bundle.json."""


def _contents(raw: bytes) -> Contents:
    try:
        document = parse_json(raw)
    except ValueError as problem:
        raise _Fault(_("no JSON: {reason}").format(reason=problem)) from None
    if not isinstance(document, dict):
        raise _Fault(_("no JSON object"))
    schema = document.get("schema")
    if schema != SCHEMA or isinstance(schema, bool):
        raise _Fault(
            _("it has schema {found}, this envkit reads {known}").format(
                found=ascii(schema)[:20], known=SCHEMA
            )
        )
    if set(document) != _KEYS:
        odd = ascii(sorted(set(document) ^ _KEYS))[:80]
        raise _Fault(_("keys that are missing or unknown: {keys}").format(keys=odd))
    try:
        name = check_name(_text(document, "name"))
    except InputError as problem:
        raise _Fault(problem.message) from None
    pythons = document["pythons"]
    if not isinstance(pythons, list) or not all(isinstance(python, str) for python in pythons):
        raise _Fault(_("`{key}` must be a list of texts").format(key="pythons"))
    if not isinstance(document["host_bound"], bool):
        raise _Fault(_("`{key}` must be true or false").format(key="host_bound"))
    platform = _text(document, "platform")
    if not _PLATFORM.fullmatch(platform):
        raise _Fault(_("'{platform}' is no platform that envkit installs on").format(platform=platform[:40]))
    return Contents(
        name=name,
        platform=platform,
        host_bound=document["host_bound"],
        pythons=tuple(pythons),
        envkit=_text(document, "envkit"),
        members=tuple(_members(document["members"])),
    )


def _text(document: Mapping[str, Any], key: str) -> str:
    if not isinstance(document[key], str):
        raise _Fault(_("`{key}` must be a text").format(key=key))
    return str(document[key])


def _members(rows: object) -> Iterator[Member]:
    if not isinstance(rows, list):
        raise _Fault(_("`{key}` must be a list").format(key="members"))
    previous, folders, files = "", set(), set()
    for row in rows:
        if not isinstance(row, dict) or set(row) != {"path", "sha256", "size"}:
            raise _Fault(_("a member must have a path, a sha256 and a size, and nothing else"))
        path, sha256, size = row["path"], row["sha256"], row["size"]
        if not isinstance(path, str) or not _is_safe(path):
            raise _Fault(_("{path} cannot be the path of a member").format(path=ascii(path)[:80]))
        if path <= previous:
            raise _Fault(_("{path} stands twice, or not in order").format(path=path))
        if not isinstance(sha256, str) or not _SHA256.fullmatch(sha256):
            raise _Fault(_("{path} has no sha256").format(path=path))
        if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size < 1 << 62:
            raise _Fault(_("{path} has no size").format(path=path))
        parts = path.split("/")
        folders |= {"/".join(parts[:depth]) for depth in range(1, len(parts))}
        files.add(path)
        previous = path
        yield Member(path=path, sha256=sha256, size=size)
    if folders & (files | {MANIFEST}) or MANIFEST in files:
        raise _Fault(_("a member is a file and a folder at once"))
    for needed in (LOCK, INSTALLER):
        if needed not in files:
            raise _Fault(_("it does not list {file}").format(file=needed))


def _is_safe(path: str) -> bool:
    """Whether a path stays below the root of a bundle, and is spelt in the one plain way."""
    try:
        long = len(path.encode()) > _LONGEST_PATH
    except UnicodeEncodeError:
        return False
    return not long and not _UNFIT.search(path) and not {"", ".", ".."} & set(path.split("/"))
