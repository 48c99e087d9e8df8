"""A local conda channel of the running Python and the wheels of a plan, packed once and kept."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envkit.errors import Error
from envkit.files import parse_json, sha256_of
from envkit.messages import _
from envkit.progress import Observer
from envkit.wheels.cache import PackageCache, digest_of, link_or_copy
from envkit.wheels.download import at_hand, download
from envkit.wheels.hashes import recalled, settled
from envkit.wheels.interpreter import Interpreter, running_interpreter
from envkit.wheels.plan import Wheel, WheelPlan
from envkit.wheels.record import about, headers_index, wheel_index
from envkit.wheels.repack import contents, python_abi_index, python_stem
from envkit.wheels.wheel import HEADERS, Layout, left_out, pack_headers, pack_wheel
from envkit.wheels.writer import Index, PackageWriter

__all__ = ["build", "unpacked"]

_WRITER_VERSION = 1
"""Goes into every key of the cache: raise it with every change to what is written."""

_EPOCH, _SPREAD = 1_500_000_000, 1 << 27
_AT_ONCE = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class _Job:
    """One package to be: the key it is kept under, the name it gets, and what packs it.

    `write` is given the archive's path and the wheel, where the package is made of one.
    """

    key: str
    file_name: str
    write: Callable[[Path, Path | None], Index]
    wheel: Wheel | None = None


def build(plan: WheelPlan, *, cache: Path, observer: Observer, level: int = 1, headers: bool = False) -> Path:
    """The folder of a channel that holds the plan, made from the cache where it can be.

    `level` is zstd's: 1 for this machine, 3 for a channel to share. `headers` adds packages of the headers
    that C++ extensions are compiled against (`pytorch-headers`). Raises Error where a wheel cannot be had or
    is unsound, or the disk refuses; nothing half-made is left in the cache.
    """
    store = PackageCache(cache)
    with store.held(observer):
        plan, files = settled(plan, store, observer)
        jobs = _jobs(plan, running_interpreter(), level, headers)
        folder = store.channel(digest_of([job.key for job in jobs]))
        if not _is_complete(folder):
            missing = [job for job in jobs if store.record(job.key) is None]
            _pack(missing, files | _wheels(plan, missing, files, store, observer), store, observer)
            _publish(store, folder, jobs)
    return folder


def unpacked(plan: WheelPlan, *, cache: Path, level: int = 1) -> tuple[Wheel, ...]:
    """The wheels of a plan that `build` would still have to pack, and to download if they are not here."""
    store = PackageCache(cache)
    plan = recalled(plan, store)
    return tuple(
        wheel
        for wheel in plan.items
        if not wheel.sha256 or store.record(_wheel_job(plan, wheel, level).key) is None
    )


def _jobs(plan: WheelPlan, interpreter: Interpreter, level: int, headers: bool) -> list[_Job]:
    jobs = [_python_job(interpreter, plan.platform, level), _python_abi_job(interpreter, level)]
    for wheel in plan.items:
        jobs.append(_wheel_job(plan, wheel, level))
        if headers and wheel.key in HEADERS:
            jobs.append(_headers_job(plan, wheel, level))
    return sorted(jobs, key=lambda job: job.file_name)


def _python_job(interpreter: Interpreter, platform: str, level: int) -> _Job:
    identity = interpreter.identity()

    def write(path: Path, wheel: Path | None) -> Index:
        parts = contents(interpreter)
        index = parts.index(platform, identity)
        with PackageWriter(path, index, level=level, mtime=_mtime(identity)) as package:
            parts.write(package)
        return index

    key = digest_of(_WRITER_VERSION, level, platform, identity)
    return _Job(key=key, file_name=f"{python_stem(interpreter, identity)}.conda", write=write)


def _python_abi_job(interpreter: Interpreter, level: int) -> _Job:
    index = python_abi_index(interpreter)

    def write(path: Path, wheel: Path | None) -> Index:
        with PackageWriter(path, index, level=level):
            return index

    key = digest_of(_WRITER_VERSION, level, index.to_json())
    return _Job(key=key, file_name=f"{index.stem}.conda", write=write)


def _wheel_job(plan: WheelPlan, wheel: Wheel, level: int) -> _Job:
    index = wheel_index(plan, wheel, _WRITER_VERSION)
    layout = Layout.of(plan.python, noarch=index.noarch is not None)

    def write(path: Path, source: Path | None) -> Index:
        assert source is not None
        with PackageWriter(path, index, level=level, mtime=_mtime(wheel.sha256)) as package:
            pack_wheel(source, wheel.key, layout, package)
            package.info("about.json", about(wheel))
        return index

    key = digest_of(_WRITER_VERSION, level, plan.python, wheel.sha256, left_out(wheel.key), index.to_json())
    return _Job(key=key, file_name=f"{index.stem}.conda", write=write, wheel=wheel)


def _headers_job(plan: WheelPlan, wheel: Wheel, level: int) -> _Job:
    index = headers_index(plan, wheel, _WRITER_VERSION)
    layout = Layout.of(plan.python, noarch=False)

    def write(path: Path, source: Path | None) -> Index:
        assert source is not None
        with PackageWriter(path, index, level=level, mtime=_mtime(wheel.sha256)) as package:
            pack_headers(source, wheel.key, layout, package)
            package.info("about.json", about(wheel))
        return index

    key = digest_of(_WRITER_VERSION, level, plan.python, wheel.sha256, index.to_json())
    return _Job(key=key, file_name=f"{index.stem}.conda", write=write, wheel=wheel)


def _mtime(digest: str) -> int:
    """A time for each source of its own, so that bytecode of another build is never taken for fresh."""
    return _EPOCH + int(digest[:12], 16) % _SPREAD


def _wheels(
    plan: WheelPlan,
    jobs: Sequence[_Job],
    there: Mapping[str, Path],
    store: PackageCache,
    observer: Observer,
) -> dict[str, Path]:
    """The files of the wheels that the jobs need and that are not there yet, by sha256."""
    wanted = (job.wheel for job in jobs if job.wheel is not None)
    needed = {wheel.sha256: wheel for wheel in wanted if wheel.sha256 not in there}
    files = {sha256: path for sha256, wheel in needed.items() if (path := at_hand(wheel)) is not None}
    remote = [wheel for sha256, wheel in needed.items() if sha256 not in files]
    if remote:
        found = download(remote, store.scratch(), options=plan.options, observer=observer)
        files |= {wheel.sha256: found[wheel.url] for wheel in remote}
    return files


def _pack(jobs: Sequence[_Job], files: dict[str, Path], store: PackageCache, observer: Observer) -> None:
    """Pack everything, the largest first, a few at a time; what is slow runs outside Python's lock."""
    if not jobs:
        return
    task = _("packing")
    observer.start(task, len(jobs), _("packages"))
    jobs = sorted(jobs, key=lambda job: -_weight(job, files))
    pool = ThreadPoolExecutor(min(_AT_ONCE, len(os.sched_getaffinity(0))))
    try:
        for done in as_completed([pool.submit(_pack_one, job, files, store) for job in jobs]):
            done.result()
            observer.advance(task)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        observer.finish(task)


def _weight(job: _Job, files: dict[str, Path]) -> int:
    """About how much there is to pack, in bytes; an interpreter counts as a middling wheel."""
    return files[job.wheel.sha256].stat().st_size if job.wheel is not None else 20_000_000


def _pack_one(job: _Job, files: dict[str, Path], store: PackageCache) -> None:
    source = files[job.wheel.sha256] if job.wheel is not None else None
    if job.wheel is not None and source is not None and sha256_of(source) != job.wheel.sha256:
        raise Error(
            _("{path} is not the file that pip's index names: its sha256 differs").format(path=source),
            _("remove the file and run the same command again"),
        )
    store.make(job.key, job.file_name, lambda path: job.write(path, source).to_json())


def _is_complete(folder: Path) -> bool:
    """Whether the channel lies there with every archive that its repodata names, in its full size."""
    for subdir in sorted(folder.iterdir()) if folder.is_dir() else ():
        try:
            packages = parse_json((subdir / "repodata.json").read_bytes())["packages.conda"]
            if any((subdir / name).stat().st_size != record["size"] for name, record in packages.items()):
                return False
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return False
    return folder.is_dir()


def _publish(store: PackageCache, folder: Path, jobs: Sequence[_Job]) -> None:
    """Lay out the channel beside its place, then move it there in one step."""
    new = store.scratch()
    repodata: dict[str, dict[str, Any]] = {"noarch": {}}
    for job in jobs:
        record = store.record(job.key)
        assert record is not None
        subdir = new / record["subdir"]
        subdir.mkdir(exist_ok=True)
        link_or_copy(store.archive(job.key, record), subdir / record["fn"])
        repodata.setdefault(record["subdir"], {})[record["fn"]] = {
            key: value for key, value in record.items() if key != "fn"
        }
    for name, packages in repodata.items():
        document = {
            "info": {"subdir": name},
            "packages": {},
            "packages.conda": packages,
            "removed": [],
            "repodata_version": 1,
        }
        (new / name).mkdir(exist_ok=True)
        (new / name / "repodata.json").write_text(json.dumps(document, indent=1, sort_keys=True))
    store.publish(new, folder)
