"""What a user put into an environment by hand outlives the environment: it is moved aside, never deleted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from envkit.install import marker
from envkit.messages import _
from envkit.progress import Observer

__all__ = ["keep_strays"]

_SETTINGS = ("conda-meta/pinned", "conda-meta/state")
"""What users of conda have there: pins, and the variables of `conda env config vars set`."""


def keep_strays(tree: Path, prefix: Path, observer: Observer) -> None:
    """Move what belongs to no package of the old environment in `tree` to `<prefix>.kept`, and say so.

    `tree` is about to be deleted; a half-made one (it has no record of ours) holds nothing of a user's.
    What stands at the path of a package of the new environment is the package's, whatever became of its
    record in the old one. Links are moved as links. Raises OSError where something cannot be moved: then
    nothing may be deleted.
    """
    from envkit.install.drift.files import strays
    from envkit.install.drift.records import conda_files, pip_records, read_records

    if not marker.path(tree).is_file():
        return
    records, _faults = read_records(tree)
    owned = conda_files(records) | conda_files(read_records(prefix)[0])
    by_pip, _faults = pip_records(tree, owned)
    found = strays(tree, owned | {row.path for record in by_pip for row in record.rows})
    found |= {path: 1 for path in _SETTINGS if (tree / path).is_file()}
    if not found:
        return
    place = next(path for path in _places(prefix) if not path.exists() and not path.is_symlink())
    for path in found:
        target = place / path
        target.parent.mkdir(parents=True, exist_ok=True)
        (tree / path).rename(target)
    observer.note(
        _("{count} files that belong to no package were moved to {place}").format(
            count=sum(found.values()), place=place
        )
    )


def _places(prefix: Path) -> Iterator[Path]:
    yield prefix.with_name(f"{prefix.name}.kept")
    number = 1
    while True:
        number += 1
        yield prefix.with_name(f"{prefix.name}.kept-{number}")
