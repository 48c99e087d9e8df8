"""What a prefix's own records say of its files: conda's in `conda-meta`, pip's in each `RECORD`.

Of a conda package, py-rattler and conda write one row a file into `paths_data.paths`: its path, its kind, the
size and sha256 it had in the package and, where the prefix was written into it, `sha256_in_prefix`, the
hash it has here. Source: https://docs.conda.io/projects/conda-build/en/stable/resources/package-spec.html
and conda/core/path_actions.py. pip's format is
https://packaging.python.org/en/latest/specifications/recording-installed-packages/.
"""

from __future__ import annotations

import base64
import binascii
import csv
import io
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envkit.errors import InputError
from envkit.files import read_plain
from envkit.install.pip_section import distributions
from envkit.lock.installed import read_record
from envkit.messages import _

__all__ = ["Fault", "Record", "Row", "conda_files", "normalised", "pip_records", "read_records"]

_SHA256 = re.compile(r"[0-9a-f]{64}\Z")
_LINK, _FOLDER = "softlink", "directory"


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One file as its record has it, by its path in the prefix.

    `size` in bytes and `sha256` (hex) are of the file in the prefix, `packed` is the sha256 it had before the
    prefix was written into it; None where the record does not say.
    """

    path: str
    kind: str
    size: int | None = None
    sha256: str | None = None
    packed: str | None = None

    @property
    def known(self) -> frozenset[str]:
        """The hashes that what is at the path may have; of a link, what it leads to."""
        hashes = (self.sha256, self.packed) if self.is_link else (self.sha256,)
        return frozenset(one for one in hashes if one)

    @property
    def is_link(self) -> bool:
        return self.kind == _LINK

    @property
    def is_folder(self) -> bool:
        return self.kind == _FOLDER


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """One installed package. `written` is when its record was, in ns since the epoch: after its files."""

    name: str
    version: str
    file: Path
    written: int
    rows: tuple[Row, ...]
    document: Mapping[str, Any]

    @property
    def key(self) -> str:
        """The name as PEP 503 normalises it."""
        return normalised(self.name)

    @property
    def label(self) -> str:
        return f"{self.name} {self.version}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """A record that cannot be read, and why."""

    path: Path
    reason: str


def normalised(name: str) -> str:
    """The name of a distribution as PEP 503 has it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read_records(prefix: Path) -> tuple[tuple[Record, ...], tuple[Fault, ...]]:
    """Every conda record of a prefix that can be read, sorted, and those that cannot."""
    records, faults = [], []
    for file in sorted((prefix / "conda-meta").glob("*.json")):
        try:
            document = read_record(file)
            records.append(
                Record(
                    name=document["name"],
                    version=document["version"],
                    file=file,
                    written=file.stat().st_mtime_ns,
                    rows=tuple(_rows(document)),
                    document=document,
                )
            )
        except InputError as problem:
            faults.append(Fault(path=file, reason=problem.message))
        except (OSError, ValueError, TypeError, AttributeError, KeyError) as problem:
            faults.append(Fault(path=file, reason=str(problem) or type(problem).__name__))
    return tuple(records), tuple(faults)


def conda_files(records: Iterable[Record]) -> set[str]:
    """All paths that conda records own."""
    owned = {row.path for record in records for row in record.rows}
    return owned | {str(path) for record in records for path in record.document.get("files") or ()}


def pip_records(prefix: Path, claimed: Collection[str]) -> tuple[tuple[Record, ...], tuple[Fault, ...]]:
    """The distributions that no conda record accounts for, and those without a RECORD that can be read.

    `claimed` are the files of the conda records.
    """
    records, faults = [], []
    for folder in distributions(prefix):
        place = folder.relative_to(prefix).as_posix()
        if f"{place}/METADATA" in claimed:
            continue
        name, _dash, version = folder.name.removesuffix(".dist-info").partition("-")
        file = folder / "RECORD"
        try:
            text = read_plain(file).decode("utf-8", "surrogateescape")
            rows = tuple(_pip_rows(prefix, folder.parent, text))
            written = file.stat().st_mtime_ns
        except (OSError, csv.Error, ValueError) as problem:
            faults.append(Fault(path=file, reason=str(problem)))
            rows, written = (), 0
        records.append(Record(name=name, version=version, file=file, written=written, rows=rows, document={}))
    return tuple(records), tuple(faults)


def _rows(document: Mapping[str, Any]) -> Iterator[Row]:
    listed = (document.get("paths_data") or {}).get("paths")
    if listed is None:
        listed = [{"_path": path, "path_type": "hardlink"} for path in document.get("files") or ()]
    for row in listed:
        path, kind = _inside(row["_path"]), str(row.get("path_type") or "")
        if _is_bytecode(path):
            continue
        # The size is that in the package: with the prefix written into text it is another here.
        rewritten = row.get("prefix_placeholder") and row.get("file_mode") != "binary"
        size = None if rewritten else row.get("size_in_bytes")
        packed, here = _digest(row.get("sha256")), _digest(row.get("sha256_in_prefix"))
        yield Row(
            path=path,
            kind=kind,
            size=size if isinstance(size, int) else None,
            sha256=here or (None if row.get("prefix_placeholder") else packed),
            packed=packed,
        )


def _pip_rows(prefix: Path, site: Path, text: str) -> Iterator[Row]:
    base = site.relative_to(prefix).as_posix()
    for fields in csv.reader(io.StringIO(text, newline="")):
        if not fields or fields[0].startswith("/"):
            continue
        path = os.path.normpath(f"{base}/{fields[0]}")
        if path.startswith("..") or _is_bytecode(path):
            continue
        digest, size = ([*fields[1:], "", ""])[:2]
        yield Row(
            path=path, kind="hardlink", size=int(size) if size.isdecimal() else None, sha256=_hex(digest)
        )


def _digest(value: object) -> str | None:
    return value if isinstance(value, str) and _SHA256.match(value) else None


def _hex(digest: str) -> str | None:
    """The hex form of RECORD's `sha256=<urlsafe base64 without padding>`."""
    kind, _equals, value = digest.partition("=")
    try:
        raw = base64.urlsafe_b64decode(value + "=" * (-len(value) % 4)) if kind == "sha256" else b""
    except (binascii.Error, ValueError):
        return None
    return raw.hex() if len(raw) == 32 else None


def _inside(path: object) -> str:
    """`path`, if it is one in a prefix: a record may be anybody's."""
    if not isinstance(path, str) or not path or "\0" in path or path.startswith("/"):
        raise ValueError(_("it names a file outside the environment: {path}").format(path=ascii(path)))
    if ".." in path.split("/"):
        raise ValueError(_("it names a file outside the environment: {path}").format(path=ascii(path)))
    return path


def _is_bytecode(path: str) -> bool:
    """Whether Python writes this file again as it likes."""
    return path.endswith((".pyc", ".pyo")) or "/__pycache__/" in path
