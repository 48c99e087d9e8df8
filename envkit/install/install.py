"""One lock, one prefix: the order of an installation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from envkit.errors import Error, InputError
from envkit.files import sha256_of
from envkit.install import conda, marker
from envkit.install.busy import refuse_busy
from envkit.install.commit import commit
from envkit.install.current import is_current, read_environment
from envkit.install.hold import hold
from envkit.install.link import link
from envkit.install.pip_section import install_wheels
from envkit.install.plan import Plan, plan
from envkit.install.space import cannot_write, full_disk, is_full
from envkit.install.stage import Stage, left_behind, recover, staged
from envkit.install.target import check_name, check_target, normal
from envkit.messages import _
from envkit.model import Environment, Lock, Variant
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
) -> Environment:
    """Install the packages of `lock` for this machine at `prefix`, whole or not at all.

    An older environment that envkit made there is replaced at the last moment; one in use by running
    processes is not. A failure, Ctrl-C or SIGKILL leaves what was there, and running again finishes the
    work. If another process made the same environment while this one waited for it, that is the result.

    Raises InputError for a lock, name or prefix that cannot be; Error for what disk, network or running
    processes did not allow.
    """
    check_name(name)
    wanted = plan(lock, platform)
    written = _marker(lock, wanted, name, variant)
    prefix = normal(prefix)
    check_target(prefix)
    with hold(prefix, observer) as waited:
        recover(prefix, observer)
        replaces = check_target(prefix)
        if waited and replaces and is_current(Environment(name=name, prefix=prefix), lock):
            return read_environment(str(prefix))  # the process that was waited for made it
        if replaces:
            refuse_busy(prefix)
        _fetch(wanted, routes, cache, observer)
        with staged(prefix, observer) as stage:
            _fill(stage, prefix, wanted, written, cache, observer)
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

    That may be the whole old environment. Costs one look at a folder where there is nothing.
    """
    prefix = normal(prefix)
    if left_behind(prefix):
        with hold(prefix, observer):
            recover(prefix, observer)


def _marker(lock: Lock, wanted: Plan, name: str, variant: Variant | None) -> marker.Marker:
    try:
        digest = sha256_of(lock.path)
    except OSError as problem:
        raise InputError(
            _("cannot be read: {reason}").format(reason=problem.strerror or problem),
            _("make the lock again with `envkit lock`"),
            path=lock.path,
        ) from None
    return marker.Marker(
        name=name,
        platform=wanted.platform,
        packages=len(wanted.conda) + len(wanted.pip),
        lock_sha256=digest,
        lock_digest=lock.digest,
        variant=variant,
    )


def _fetch(wanted: Plan, routes: Routes, cache: Path, observer: Observer) -> None:
    from envkit.fetch import archives

    archives(wanted.conda, routes=routes, cache=cache, observer=observer)


def _fill(
    stage: Stage, final: Path, wanted: Plan, written: marker.Marker, cache: Path, observer: Observer
) -> None:
    """Make the staged prefix complete; its marker comes last."""
    from envkit.fetch import package_cache

    packages = package_cache(cache)
    link(wanted.conda, stage.prefix, final, platform=wanted.platform, cache=packages, observer=observer)
    try:
        install_wheels(wanted.pip, stage.prefix, final, cache=cache, observer=observer)
        records = stage.prefix / "conda-meta"
        readable = stage.prefix.stat().st_mode & 0o666
        for record in records.glob("*.json"):
            record.chmod(readable)  # rattler makes them private; who may read the prefix may list it
        (records / "history").write_text(conda.history(wanted.conda), encoding="utf-8")
        marker.write(stage.prefix, written)
    except OSError as problem:
        if is_full(problem):
            raise full_disk(stage.folder, wanted.conda, packages) from None
        raise cannot_write(stage.folder, problem) from None
