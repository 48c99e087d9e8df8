"""The lock that lies where another is to be written: only its own file's lock is taken for an older one."""

from __future__ import annotations

from pathlib import Path

from envkit import lock, matrix
from envkit.errors import Error, InputError
from envkit.messages import _
from envkit.model import Lock
from envkit.up.request import shown

__all__ = ["earlier_lock"]


def earlier_lock(target: Path, file: Path) -> Lock | None:
    """The lock that was made of `file` before and lies at `target`; None where nothing lies there.

    Raises InputError where something else lies there, which is not to be written over unasked: a variant's
    lock, a lock of other sources, or what is no lock.
    """
    if not target.exists():
        return None
    hint = _("write it elsewhere with `-o FILE`; `-o {path} --fresh` replaces what lies there").format(
        path=shown(target)
    )
    if name := _variant_of(target):
        raise InputError(
            _("{path} is the lock of the variant {name}").format(path=shown(target), name=name),
            _("`envkit lock {name}` makes that; write this one elsewhere with `-o FILE`").format(name=name),
        )
    try:
        found = lock.read_lock(target)
    except Error as problem:
        raise InputError(
            _("{path} is there already and cannot be read as a lock ({reason})").format(
                path=shown(target), reason=problem
            ),
            hint,
        ) from None
    sources = _sources(found)
    if {Path(source).name for source in sources} != {file.name}:
        raise InputError(
            _("{path} is the lock of {sources}, not of {file}").format(
                path=shown(target), sources=", ".join(sources) or _("something else"), file=file.name
            ),
            hint,
        )
    return found


def _sources(found: Lock) -> tuple[str, ...]:
    sources = found.metadata.get("sources")
    return tuple(str(source) for source in sources) if isinstance(sources, list) else ()


def _variant_of(target: Path) -> str | None:
    """The variant whose committed lock the path is, in the project around it."""
    try:
        root = matrix.find_root(target.absolute().parent)
        known = matrix.read_matrix(root / "environments" / "matrix.yaml")
    except InputError:
        return None
    there = target.resolve()
    return next(
        (variant.name for variant in known.variants if lock.lock_path(root, variant).resolve() == there), None
    )
