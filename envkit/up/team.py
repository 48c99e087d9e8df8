"""The team's way to a lock: the one committed for a listed variant, or one solved from the channels."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from envkit import lock, matrix, paths
from envkit.errors import Error, Findings
from envkit.matrix import Matrix
from envkit.messages import _
from envkit.model import Lock, Spec, Variant
from envkit.progress import Observer
from envkit.render import render
from envkit.up.request import shown

if TYPE_CHECKING:
    from envkit import fetch
    from envkit.lock import Diff
    from envkit.solve.shelf import Shelf

__all__ = [
    "Relocked",
    "found_lock",
    "kept_lock",
    "listed",
    "lock_variant",
    "lock_variants",
    "old_lock",
    "project",
    "ready_lock",
    "with_cause",
]

_AT_ONCE = 2


def project() -> tuple[Path, Matrix]:
    """The project folder, found upward from here, and its matrix."""
    root = matrix.find_root()
    return root, matrix.read_matrix(root / "environments" / "matrix.yaml")


def listed(known: Matrix, variant: Variant) -> bool:
    """Whether the matrix lists the variant; its lock is then a committed file."""
    return variant in known.variants


def kept_lock(root: Path, known: Matrix, variant: Variant) -> tuple[Lock | None, bool]:
    """The lock of a variant as it lies on disk, None where there is none, and whether it is fresh."""
    path = lock.lock_path(root, variant, listed=listed(known, variant))
    if not path.exists():
        return None, False
    found = lock.read_lock(path)
    return found, lock.is_fresh(found, render(known, variant))


@dataclass(frozen=True, kw_only=True, slots=True)
class Relocked:
    """A lock as it is now, and as it was before (None where there was none that could be read).

    `held` says of the packages to be updated what kept them where they are, where nothing changed at all.
    """

    lock: Lock
    before: Lock | None
    held: tuple[str, ...] = ()

    @property
    def diff(self) -> Diff:
        """What changed; everything is new where there was nothing."""
        return lock.diff(() if self.before is None else self.before.packages, self.lock.packages)

    @property
    def rehead(self) -> bool:
        """Whether the lock says something else of itself than before; its packages aside."""
        return self.before is None or self.before.metadata != self.lock.metadata


def old_lock(path: Path) -> Lock | None:
    """The lock in a file, None where there is none or it cannot be read."""
    try:
        return lock.read_lock(path)
    except Error:
        return None


def lock_variant(
    root: Path,
    known: Matrix,
    variant: Variant,
    *,
    routes: fetch.Routes,
    observer: Observer,
    update: Collection[str] = (),
    fresh: bool = False,
    shelf: Shelf | None = None,
) -> Relocked:
    """Lock a variant where its lock belongs: pins stay while the spec does, `update` and `fresh` aside."""
    from envkit import solve

    path = lock.lock_path(root, variant, listed=listed(known, variant))
    before = old_lock(path)
    spec = render(known, variant)
    shelf = shelf or solve.open_shelf(routes=routes, cache=paths.cache(), observer=observer)
    made = solve.write_lock(
        spec,
        path,
        routes=routes,
        cache=paths.cache(),
        observer=observer,
        update=update,
        fresh=fresh,
        shelf=shelf,
    )
    return with_cause(Relocked(lock=made, before=before), spec, update, shelf)


def with_cause(made: Relocked, spec: Spec, update: Collection[str], shelf: Shelf) -> Relocked:
    """The same with what held the packages that were to be updated, where nothing changed."""
    if not update or made.before is None or made.diff:
        return made
    from envkit.up.held import held_by

    return replace(made, held=held_by(spec, made.lock, update, shelf))


def lock_variants(
    root: Path,
    known: Matrix,
    variants: Sequence[Variant],
    *,
    routes: fetch.Routes,
    observer: Observer,
    update: Collection[str] = (),
    fresh: bool = False,
) -> Iterator[tuple[Variant, Relocked | Findings, float]]:
    """Lock several variants in one process, over repodata that is read once; in the order given.

    Each with what became of it and its seconds. One that cannot be solved does not keep the others from
    being locked. While one is being solved, which is rattler's work, another is read or written.
    """
    from envkit import solve

    shelf = solve.open_shelf(routes=routes, cache=paths.cache(), observer=observer)

    def one(variant: Variant) -> tuple[Variant, Relocked | Findings, float]:
        began = time.monotonic()
        made: Relocked | Findings
        try:
            made = lock_variant(
                root,
                known,
                variant,
                routes=routes,
                observer=observer,
                update=update,
                fresh=fresh,
                shelf=shelf,
            )
        except Findings as problem:
            made = problem
        return variant, made, time.monotonic() - began

    pool = ThreadPoolExecutor(max_workers=_AT_ONCE)
    try:
        yield from pool.map(one, variants)
    finally:
        pool.shutdown(cancel_futures=True)


def ready_lock(
    root: Path, known: Matrix, variant: Variant, *, routes: fetch.Routes, observer: Observer
) -> Lock:
    """The lock to install from.

    A fresh one is taken as it is. A stale one of the team is never replaced behind its back (Findings);
    what has no committed lock is solved into the state folder, for this machine alone.
    """
    found = found_lock(root, known, variant)
    if found is not None:
        return found
    observer.note(_("{name} has no committed lock; solving one for this machine").format(name=variant.name))
    from envkit import solve

    path = lock.lock_path(root, variant, listed=False)
    return solve.write_lock(
        render(known, variant), path, routes=routes, cache=paths.cache(), observer=observer
    )


def found_lock(root: Path, known: Matrix, variant: Variant) -> Lock | None:
    """The lock to install from, if there is a fresh one: the team's, or one made for this machine.

    Raises Findings for a stale one of the team.
    """
    found, fresh = kept_lock(root, known, variant)
    if found is not None and fresh:
        return found
    if found is not None and listed(known, variant):
        raise Findings(
            _("{path} was made for another environment.yml than the matrix renders now").format(
                path=shown(found.path)
            ),
            _("run `envkit lock {name}` and review what changes").format(name=variant.name),
        )
    path = lock.lock_path(root, variant, listed=False)
    if path.exists() and lock.is_fresh(own := lock.read_lock(path), render(known, variant)):
        return own
    return None
