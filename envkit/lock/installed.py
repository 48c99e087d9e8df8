"""The packages of an installed environment, from conda's records and pip's, in the words of a lock."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from envkit.errors import InputError
from envkit.files import parse_json, read_plain
from envkit.messages import _
from envkit.model import Package

__all__ = ["installed_packages", "packages_of", "read_record"]

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_SITE = "lib/python3*/site-packages"


def installed_packages(prefix: Path, platform: str | None = None) -> tuple[Package, ...]:
    """What `conda-meta` records, then the distributions in site-packages that no record accounts for (pip's).

    `platform` is the environment's, where that is known; else that of most of its records. Hashes and URLs
    that a record lacks are empty. Raises InputError for a record that cannot be read.
    """
    records = [read_record(path) for path in sorted((prefix / "conda-meta").glob("*.json"))]
    return packages_of(prefix, records, platform)


def packages_of(
    prefix: Path, records: Sequence[Mapping[str, Any]], platform: str | None = None
) -> tuple[Package, ...]:
    """The same, for records that were read already."""
    subdirs = Counter(str(record.get("subdir", "")) for record in records)
    own = platform or next(
        (name for name, _n in subdirs.most_common() if name not in ("", "noarch")), "noarch"
    )
    conda = [_conda(record, own) for record in records]
    claimed = {str(file) for record in records for file in record.get("files") or ()}
    return (*conda, *_pip(prefix, claimed, own))


def read_record(path: Path) -> Mapping[str, Any]:
    """One record of conda-meta. Raises InputError for one that cannot be read."""
    try:
        record = parse_json(read_plain(path))
        if not isinstance(record, dict) or not all(
            isinstance(record[key], str) for key in ("name", "version")
        ):
            raise ValueError(_("no record of a package"))
        if not all(isinstance(record.get(key) or [], list) for key in ("depends", "files")):
            raise ValueError(_("no record of a package"))
    except (OSError, ValueError, KeyError) as problem:
        raise InputError(
            _("the record cannot be read: {reason}").format(reason=problem),
            _("the environment is damaged; make it again with `envkit up` or `envkit install`"),
            path=path,
        ) from None
    return record


def _conda(record: Mapping[str, Any], platform: str) -> Package:
    depends = [str(depend).split(None, 1) for depend in record.get("depends") or ()]
    return Package(
        name=_clean(record["name"]),
        version=_clean(record["version"]),
        manager="conda",
        platform=platform,
        url=_clean(record.get("url") or ""),
        sha256=_clean(record.get("sha256") or ""),
        md5=_clean(record.get("md5") or "") or None,
        depends={words[0]: " ".join(words[1:]) for words in depends if words},
    )


def _pip(prefix: Path, claimed: Collection[str], platform: str) -> Iterator[Package]:
    for folder in sorted(prefix.glob(f"{_SITE}/*.dist-info")):
        place = folder.relative_to(prefix).as_posix()
        if f"{place}/METADATA" in claimed or _text(folder / "INSTALLER").strip() == "conda":
            continue
        name, version = _identity(folder)
        url, sha256 = _origin(folder)
        yield Package(name=name, version=version, manager="pip", platform=platform, url=url, sha256=sha256)


def _identity(folder: Path) -> tuple[str, str]:
    """Name and version by the metadata's header, else by the folder's name."""
    header = _text(folder / "METADATA").split("\n\n", 1)[0]
    fields = dict(re.findall(r"^(Name|Version):[ \t]*(\S+)", header, re.MULTILINE))
    stem_name, _dash, stem_version = folder.name.removesuffix(".dist-info").partition("-")
    return _clean(fields.get("Name", stem_name)), _clean(fields.get("Version", stem_version))


def _origin(folder: Path) -> tuple[str, str]:
    """URL and sha256 of the wheel, where pip wrote them down (it does for `name @ URL`): PEP 610."""
    try:
        origin = json.loads(_text(folder / "direct_url.json") or "{}")
        archive = origin.get("archive_info")
        if not isinstance(archive, dict):
            return "", ""
        sha256 = (archive.get("hashes") or {}).get("sha256") or str(archive.get("hash", "")).removeprefix(
            "sha256="
        )
        return _clean(origin.get("url", "")), _clean(sha256)
    except (ValueError, AttributeError):
        return "", ""


def _text(path: Path) -> str:
    try:
        return read_plain(path).decode("utf-8", "replace")
    except OSError:
        return ""


def _clean(value: object) -> str:
    """A value that may be shown on a terminal, whoever wrote it."""
    return _CONTROL.sub("?", str(value))
