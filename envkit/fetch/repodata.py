"""The index of a channel's subdir as a local, plain repodata.json: fetched, checked, cached, not made up."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from envkit.channels import shown
from envkit.errors import Error
from envkit.fetch.disk import private_folder, writing
from envkit.fetch.failures import FetchError, NoSubdir
from envkit.fetch.indexes import LARGEST, CachedIndex, check_index, decompress
from envkit.fetch.routes import Routes, Source
from envkit.fetch.transfer import fetch
from envkit.fetch.use import use
from envkit.fetch.wanted import Candidate, Rejected, Wanted
from envkit.messages import _
from envkit.progress import SILENT, Observer

__all__ = ["MAX_AGE", "repodata"]

MAX_AGE = 600.0
"""Seconds for which an index is used again without asking its host."""

_PACKED = (b"\x28\xb5\x2f\xfd",)
_PLAIN = (b"{", b" ", b"\t", b"\r", b"\n")


def repodata(
    channel: str,
    subdir: str,
    *,
    routes: Routes,
    cache: Path,
    observer: Observer = SILENT,
    max_age: float = MAX_AGE,
) -> Path:
    """A plain repodata.json of one subdir of a channel (a name or a URL), on this machine.

    From a server it is cached with its ETag and asked for again after `max_age` seconds; where no host
    answers, the newest cached one serves and the observer is told its age. From a `file://` directory
    that has the channel it is read there and nowhere else; a missing `noarch` counts as empty, for
    sampled trees leave it out. Raises NoSubdir where every host lacks the subdir (it is never taken for
    an empty channel), FetchError, Unreachable, Offline, and Error for a directory without the subdir or a
    full disk.
    """
    use(cache, observer)
    folder = cache / "repodata"
    sources = routes.sources(channel, subdir)
    label = f"{shown(channel)}/{subdir}"
    if (directory := sources[0].directory) is not None:
        return _from_directory(directory, subdir, label, folder)
    entries = {
        source: CachedIndex.of(folder, f"{source.url}/{subdir}")
        for source in sources
        if source.directory is None
    }
    first = entries[sources[0]]
    if first.age is not None and 0 <= first.age < max_age:
        return first.path
    try:
        return _from_hosts(entries, subdir, label, folder, routes, observer)
    except FetchError as problem:
        if problem.attempts and all(attempt.kind == "missing" for attempt in problem.attempts):
            raise _no_subdir(channel, subdir, problem) from None
        for source in sources:
            if source.directory is not None:
                return _from_directory(source.directory, subdir, label, folder)
        return _kept(entries.values(), problem, label, observer)


def _from_hosts(
    entries: Mapping[Source, CachedIndex],
    subdir: str,
    label: str,
    folder: Path,
    routes: Routes,
    observer: Observer,
) -> Path:
    owners = {
        candidate: entry
        for source, entry in entries.items()
        for candidate in _candidates(source, subdir, entry)
    }
    with _scratch(folder) as scratch:
        plain = scratch / "repodata.json"

        def accept(path: Path, candidate: Candidate) -> None:
            if candidate.url.endswith(".zst"):
                decompress(path, plain)
            else:
                path.replace(plain)
            check_index(plain)

        wanted = Wanted(
            name=f"{label}/repodata.json",
            candidates=tuple(owners),
            accept=accept,
            largest=LARGEST,
            missing=_("the channel has no subdir '{subdir}' there").format(subdir=subdir),
        )
        served = fetch(routes.session, wanted, scratch / "partial", observer=observer)
        entry = owners[served.candidate]
        if served.path is None:
            entry.vouched()
        else:
            entry.put(
                plain,
                served.candidate.url,
                etag=served.headers.get("etag", ""),
                last_modified=served.headers.get("last-modified", ""),
            )
    return entry.path


def _candidates(source: Source, subdir: str, entry: CachedIndex) -> Iterator[Candidate]:
    plain = f"{source.url}/{subdir}/repodata.json"
    forms = ((f"{plain}.zst", _PACKED, "identity"), (plain, _PLAIN, "gzip"))
    for url, magic, encoding in forms if source.zst else forms[1:]:
        headers = {"Accept-Encoding": encoding, **entry.conditions(url)}
        yield Candidate(url=url, magic=magic, headers=tuple(headers.items()))


def _kept(entries: Iterable[CachedIndex], problem: FetchError, label: str, observer: Observer) -> Path:
    """The newest index of an earlier run, in place of an error."""
    known = [(entry.age, entry) for entry in entries if entry.age is not None]
    if not known:
        raise problem
    age, entry = min(known, key=lambda pair: pair[0])
    observer.note(
        _("{label}: no host gives the index; using the one of {hours:.1f} hours ago").format(
            label=label, hours=age / 3600
        )
    )
    return entry.path


def _from_directory(directory: Path, subdir: str, label: str, folder: Path) -> Path:
    plain = directory / subdir / "repodata.json"
    packed = plain.with_name("repodata.json.zst")
    try:
        if plain.is_file() and not (packed.is_file() and _changed(packed) > _changed(plain)):
            check_index(plain)
            return plain
        if packed.is_file():
            return _unpacked(packed, folder)
    except Rejected as rejected:
        raise Error(
            _("{path} is no channel index: {reason}").format(path=plain, reason=rejected),
            _("index the directory again, or choose another mirror"),
        ) from None
    except OSError as problem:
        raise Error(
            _("{path} cannot be read: {reason}").format(path=plain.parent, reason=problem.strerror)
        ) from None
    if subdir == "noarch" and directory.is_dir():
        return _empty(folder)
    raise Error(
        _("{directory} has no '{subdir}' ({label})").format(directory=directory, subdir=subdir, label=label),
        _("take the platform out of the variant, or choose a mirror that has it"),
    )


def _unpacked(packed: Path, folder: Path) -> Path:
    version = f"{_changed(packed)} {packed.stat().st_size}"
    entry = CachedIndex.of(folder, packed.resolve().as_uri())
    if entry.conditions(packed.as_uri()).get("If-None-Match") == version:
        return entry.path
    with _scratch(folder) as scratch:
        plain = scratch / "repodata.json"
        decompress(packed, plain)
        check_index(plain)
        entry.put(plain, packed.as_uri(), etag=version)
    return entry.path


def _empty(folder: Path) -> Path:
    entry = CachedIndex.of(folder, "empty://noarch")
    if entry.age is None:
        with _scratch(folder) as scratch:
            plain = scratch / "repodata.json"
            index = {"info": {"subdir": "noarch"}, "packages": {}, "packages.conda": {}}
            with writing(folder):
                plain.write_text(json.dumps(index), encoding="utf-8")
            entry.put(plain, "empty://noarch")
    return entry.path


def _changed(path: Path) -> int:
    return path.stat().st_mtime_ns


def _no_subdir(channel: str, subdir: str, problem: FetchError) -> NoSubdir:
    hosts = ", ".join(dict.fromkeys(attempt.host for attempt in problem.attempts))
    return NoSubdir(
        _("the channel '{channel}' has no subdir '{subdir}' on {hosts}").format(
            channel=shown(channel), subdir=subdir, hosts=hosts
        )
        + " (CHANNEL_SUBDIR_MISSING)",
        _("check the channel's name, take the platform out of the variant, or choose another mirror"),
        attempts=problem.attempts,
    )


@contextmanager
def _scratch(folder: Path) -> Iterator[Path]:
    """A folder for one download on the cache's file system, gone afterwards whatever happens."""
    private_folder(folder)
    with writing(folder):
        scratch = tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder, ignore_cleanup_errors=True)
    with scratch as path:
        yield Path(path)
