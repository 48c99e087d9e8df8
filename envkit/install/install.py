"""One lock, one prefix: the order of an installation."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from envkit.errors import Error, InputError
from envkit.host import read_host
from envkit.install import conda, marker
from envkit.install.busy import refuse_busy
from envkit.install.commit import commit
from envkit.install.current import is_current, read_environment
from envkit.install.hold import hold, sweep
from envkit.install.link import link
from envkit.install.own_index import take_from_own_index
from envkit.install.pip_section import install_wheels
from envkit.install.plan import Plan, plan
from envkit.install.preflight import preflight, refuse
from envkit.install.space import cannot_write, full_disk, is_full
from envkit.install.stage import Stage, left_behind, recover, staged
from envkit.install.sync import added_by_user
from envkit.install.target import check_name, check_target, normal
from envkit.install.work import Work, measure
from envkit.lock import download_size
from envkit.messages import _
from envkit.model import Environment, Host, Lock, Status, Variant
from envkit.progress import SILENT, Observer

if TYPE_CHECKING:
    from envkit.fetch import Routes

__all__ = ["install", "tidy"]


def install(
    lock: Lock,
    prefix: Path,
    *,
    name: str,
    variant: Variant | None,
    routes: Routes,
    cache: Path,
    observer: Observer = SILENT,
    platform: str | None = None,
    force: bool = False,
    sizes: Mapping[str, int] | None = None,
    host: Host | None = None,
) -> Environment:
    """Install the packages of `lock` for this machine at `prefix`, whole or not at all.

    An older environment that envkit made there is replaced at the last moment; one in use by running
    processes is not. A failure, Ctrl-C or SIGKILL leaves what was there, and running again finishes the
    work. If another process made the same environment while this one waited for it, that is the result,
    unless `force` asks for a new one all the same. A copy of the lock stays in the environment.

    What is known beforehand to fail (no room, a machine that cannot run the packages) fails before the
    first byte is fetched: `sizes` are bytes of archives by sha256 where they are known, `host` is this
    machine where it was looked at already. Raises InputError for a lock, name or prefix that cannot be;
    Error for what disk, network, machine or running processes did not allow.
    """
    check_name(name)
    wanted = plan(lock, platform)
    text = _bytes(lock)
    written = _marker(text, lock, wanted, name, variant)
    prefix = normal(prefix)
    check_target(prefix)
    with hold(prefix, observer) as waited:
        recover(prefix, observer)
        replaces = check_target(prefix)
        if waited and replaces and not force and is_current(Environment(name=name, prefix=prefix), lock):
            return read_environment(str(prefix))  # the process that was waited for made it
        if replaces:
            refuse_busy(prefix)
            if not force:
                _tell_added(prefix, wanted, observer)
        together = download_size(lock, wanted.platform)
        work = measure(wanted, cache=cache, routes=routes, sizes=sizes, together=together)
        report = preflight(work, lock, prefix, cache=cache, host=host or read_host())
        refuse(report)
        for check in report.checks:
            if check.status is Status.WARN:
                observer.note(check.summary)
        files = _fetch(wanted, work, routes, cache, observer)
        with staged(prefix, observer) as stage:
            _fill(stage, prefix, wanted, files, written, text, cache, observer)
            if replaces:
                refuse_busy(prefix)
            try:
                commit(stage, prefix)
            except OSError as problem:
                raise Error(
                    _("cannot put the environment in place at {prefix}: {reason}").format(
                        prefix=prefix, reason=problem.strerror or problem
                    ),
                    _("choose another folder with `--prefix DIR`; what was there is as it was"),
                ) from None
    conda.register(prefix)
    return Environment(name=name, prefix=prefix, asked=variant, lock_sha256=written.lock_sha256)


def tidy(prefix: Path, observer: Observer = SILENT) -> None:
    """Clear away what an installation left beside an environment that it had finished when it was killed.

    That may be the whole old environment, or the file of its lock alone. Costs one look at a folder where
    there is nothing.
    """
    prefix = normal(prefix)
    if left_behind(prefix):
        with hold(prefix, observer):
            recover(prefix, observer)
    sweep(prefix)


def _tell_added(prefix: Path, wanted: Plan, observer: Observer) -> None:
    """Name what a user added by pip to the environment that is to be replaced: it goes with it."""
    names = added_by_user(prefix, wanted)
    if names:
        observer.note(
            _(
                "in no lock, so gone with the old environment: {names} (added by pip; to keep them, add "
                "them to the pip packages in environments/matrix.yaml and run `envkit lock`)"
            ).format(names=", ".join(names))
        )


def _bytes(lock: Lock) -> bytes:
    try:
        return lock.path.read_bytes()
    except OSError as problem:
        raise InputError(
            _("cannot be read: {reason}").format(reason=problem.strerror or problem),
            _("make the lock again with `envkit lock`"),
            path=lock.path,
        ) from None


def _marker(text: bytes, lock: Lock, wanted: Plan, name: str, variant: Variant | None) -> marker.Marker:
    return marker.Marker(
        name=name,
        platform=wanted.platform,
        packages=len(wanted.conda) + len(wanted.pip),
        lock_sha256=hashlib.sha256(text).hexdigest(),
        lock_digest=lock.digest,
        variant=variant,
    )


def _fetch(wanted: Plan, work: Work, routes: Routes, cache: Path, observer: Observer) -> Mapping[str, Path]:
    """Have every package here; the files of the pip section by sha256."""
    from envkit.fetch import archives, wheels

    parts = (*work.fetch, *work.unpack, *work.pip)
    sizes = {part.package.sha256: part.bytes for part in parts if part.bytes is not None}
    archives(wanted.conda, routes=routes, cache=cache, observer=observer, sizes=sizes)
    take_from_own_index(wanted.pip, routes=routes, cache=cache, observer=observer)
    return wheels(wanted.pip, routes=routes, cache=cache, observer=observer, sizes=sizes)


def _fill(
    stage: Stage,
    final: Path,
    wanted: Plan,
    files: Mapping[str, Path],
    written: marker.Marker,
    text: bytes,
    cache: Path,
    observer: Observer,
) -> None:
    """Make the staged prefix complete; its marker comes last."""
    from envkit.fetch import package_cache

    packages = package_cache(cache)
    link(wanted.conda, stage.prefix, final, platform=wanted.platform, cache=packages, observer=observer)
    try:
        install_wheels(wanted.pip, files, stage.prefix, final, cache=cache, observer=observer)
        records = stage.prefix / "conda-meta"
        conda.settle_records(records)
        (records / "history").write_text(conda.history(wanted.conda), encoding="utf-8")
        marker.lock_copy(stage.prefix).write_bytes(text)
        marker.write(stage.prefix, written)
    except OSError as problem:
        if is_full(problem):
            raise full_disk(stage.folder, wanted.conda, packages) from None
        raise cannot_write(stage.folder, problem) from None
