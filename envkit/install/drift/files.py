"""The files of a prefix against its records: what is missing, what is another, what belongs to nobody.

Quickly, each file is looked at and few are read: a size that differs is a change, and so may be a file that
is younger than the record of its package, which is written after all of its files; those are hashed, as are
small files that hold the prefix, whose size the record does not know. A change that keeps the size and puts
the time back is only seen when everything is hashed (`deep`).
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from envkit.files import sha256_of
from envkit.install.drift.records import Record, Row

__all__ = ["Files", "examine", "strays"]

_MAKERS = ("conda-meta", "CACHEDIR.TAG")
"""What whoever made the prefix wrote there of its own."""
_EMPTY = hashlib.sha256().hexdigest()
_SMALL = 1 << 20
_FEW = 32
"""Bytes up to which a file of unknown size is hashed; files from which on several threads hash."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Files:
    """Paths in the prefix by package: gone, other than recorded, and impossible to read. `hashed` counts."""

    missing: Mapping[str, tuple[str, ...]]
    changed: Mapping[str, tuple[str, ...]]
    unreadable: Mapping[str, tuple[str, ...]]
    looked_at: int
    hashed: int


@dataclass(frozen=True, kw_only=True, slots=True)
class _Claim:
    """What one package says of a file."""

    label: str
    row: Row
    written: int


def examine(
    prefix: Path,
    records: Sequence[Record],
    *,
    deep: bool,
    advance: Callable[[int], None] = lambda _size: None,
) -> Files:
    """Compare the files that `records` name with those in `prefix`; with `deep`, hash every one.

    `advance` hears of the bytes that were hashed, from several threads. Bytecode is left out: Python
    writes it anew.
    """
    claims: dict[str, list[_Claim]] = defaultdict(list)
    for record in records:
        for row in record.rows:
            claims[row.path].append(_Claim(label=record.label, row=row, written=record.written))
    found: dict[str, dict[str, list[str]]] = {kind: defaultdict(list) for kind in ("missing", "changed", "?")}
    to_hash: list[tuple[str, list[_Claim]]] = []
    root = os.path.realpath(prefix)
    for path, said in claims.items():
        verdict = _look(root, path, said, deep=deep)
        if verdict == "hash":
            to_hash.append((path, said))
        elif verdict:
            found[verdict][said[-1].label].append(path)
    for (path, said), verdict in zip(to_hash, _hashed(root, to_hash, advance), strict=True):
        if verdict:
            found[verdict][said[-1].label].append(path)
    return Files(
        missing=_frozen(found["missing"]),
        changed=_frozen(found["changed"]),
        unreadable=_frozen(found["?"]),
        looked_at=len(claims),
        hashed=len(to_hash),
    )


def strays(prefix: Path, known: Collection[str]) -> dict[str, int]:
    """What belongs to no package: topmost paths in the prefix, with how many files.

    `known` are the files that packages own. Bytecode and `conda-meta` are left out.
    """
    folders = {folder for path in known for folder in _parents(path)}
    return dict(_unowned(str(prefix), "", {*known, *_MAKERS}, folders))


def _look(root: str, path: str, said: Sequence[_Claim], *, deep: bool) -> str:
    """What a look at a file says of it: "missing", "changed", "?", that it must be hashed, or nothing."""
    full = f"{root}/{path}"
    try:
        seen = os.lstat(full)
    except (FileNotFoundError, NotADirectoryError):
        return "missing"
    except OSError:
        return "?"
    verdicts = [_one(root, full, seen, claim, deep=deep) for claim in said]
    # Packages may share a path: then it is as the last of them that was linked has it.
    return next((verdict for verdict in ("", "hash") if verdict in verdicts), verdicts[-1])


def _one(root: str, full: str, seen: os.stat_result, claim: _Claim, *, deep: bool) -> str:
    row = claim.row
    younger = seen.st_mtime_ns > claim.written
    if row.is_folder:
        return "" if stat.S_ISDIR(seen.st_mode) else "changed"
    if stat.S_ISLNK(seen.st_mode):
        return _link(root, full, row, read=deep or younger)
    if not stat.S_ISREG(seen.st_mode):
        return "changed"
    if row.is_link:
        return "hash" if row.known else ""  # a copy, where the file system has no links
    if row.size is not None and row.size != seen.st_size:
        return "changed"
    unknown = row.size is None and seen.st_size <= _SMALL
    return "hash" if row.sha256 and (deep or younger or unknown) else ""


def _link(root: str, full: str, row: Row, *, read: bool) -> str:
    """A symbolic link: rattler records the hash of its text, conda and packages that of what it leads to."""
    if row.is_link and hashlib.sha256(bytes(Path(full).readlink())).hexdigest() == row.sha256:
        return ""
    target = os.path.realpath(full)
    if not row.is_link:  # the file itself lies in a cache on another file system, or somebody moved it away
        return "hash" if row.sha256 else "changed"
    if target != root and not target.startswith(root + "/"):
        return "changed"
    if not os.path.lexists(target):
        return "changed" if row.known - {_EMPTY} else ""  # conda-build hashes a link to nowhere as nothing
    return "hash" if read and row.known and Path(target).is_file() else ""


def _hashed(
    root: str, wanted: Sequence[tuple[str, list[_Claim]]], advance: Callable[[int], None]
) -> Iterator[str]:
    """The verdict on each of the files; what several names lead to is read once."""
    places = [os.path.realpath(f"{root}/{path}") for path, _said in wanted]
    # A link's sha256 is of its target in the package, which may have had the prefix written into it since.
    rewritten = {
        (place, row.sha256): row.packed
        for place, (_path, said) in zip(places, wanted, strict=True)
        for claim in said
        if not (row := claim.row).is_link
    }

    def digest(place: str) -> str | None:
        try:
            result = sha256_of(Path(place))
            advance(Path(place).stat().st_size)
        except OSError:
            return None
        return result

    unique = sorted(set(places))
    if len(unique) < _FEW:
        digests = dict(zip(unique, map(digest, unique), strict=True))
    else:
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(max(1, len(os.sched_getaffinity(0)))) as pool:
            digests = dict(zip(unique, pool.map(digest, unique), strict=True))
    for place, (_path, said) in zip(places, wanted, strict=True):
        found = digests[place]
        right = set().union(*(claim.row.known for claim in said))
        as_packed = rewritten.get((place, found)) if any(claim.row.is_link for claim in said) else None
        yield "?" if found is None else "" if {found, as_packed} & right else "changed"


def _unowned(
    root: str, folder: str, known: Collection[str], folders: Collection[str]
) -> Iterator[tuple[str, int]]:
    try:
        entries = sorted(os.scandir(f"{root}/{folder}"), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        path = f"{folder}/{entry.name}" if folder else entry.name
        if entry.name == "__pycache__" or entry.name.endswith((".pyc", ".pyo")) or path in known:
            continue
        if not entry.is_dir(follow_symlinks=False):
            yield path, 1
        elif path in folders:
            yield from _unowned(root, path, known, folders)
        elif count := _count(entry.path):
            yield f"{path}/", count


def _count(folder: str) -> int:
    return sum(
        not name.endswith((".pyc", ".pyo")) for _path, _folders, names in os.walk(folder) for name in names
    )


def _parents(path: str) -> Iterator[str]:
    while path := path.rpartition("/")[0]:
        yield path


def _frozen(by_package: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    return {label: tuple(sorted(paths)) for label, paths in sorted(by_package.items())}
