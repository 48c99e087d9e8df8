"""What is in an environment, as checks: its records, packages and files, and the place it was made for."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from envkit.install.drift.files import Files
from envkit.install.drift.packages import Packages, said
from envkit.install.drift.records import Fault
from envkit.install.drift.subject import Subject
from envkit.install.drift.verdicts import bad, ok, some, warn
from envkit.messages import _
from envkit.model import Check

__all__ = ["files", "packages", "place", "records", "strays"]

_NAMED_IN_A_COMMAND = 20


def records(subject: Subject, read: int, faults: Sequence[Fault]) -> Check:
    """`drift.records`"""
    if faults:
        text = _("{count} records cannot be read: {names}").format(
            count=len(faults), names=some([_name(fault.path) for fault in faults])
        )
        lines = [f"{fault.path}: {fault.reason}" for fault in faults]
        return bad("drift.records", text, subject.repair, lines, {"records": lines})
    if not read:
        return bad("drift.records", _("it has no record of any package"), subject.repair)
    return ok("drift.records", _("{count} records can be read").format(count=read), {"records": read})


def place(subject: Subject, other: Path | None) -> Check:
    """`drift.place`"""
    if other is None:
        return ok("drift.place", _("it is where it was installed"))
    text = _("it was made for {place} and is at {prefix}: its scripts lead there").format(
        place=other, prefix=subject.prefix
    )
    return bad("drift.place", text, subject.repair, data={"made_for": str(other)})


def packages(subject: Subject, found: Packages) -> Iterator[Check]:
    """`drift.missing`, `drift.extra`, `drift.added`, `drift.other`"""
    rows = (
        (
            "drift.missing",
            said(found.missing),
            _("{count} packages of its lock are missing: {names}"),
            _("no package of its lock is missing"),
            subject.repair,
        ),
        (
            "drift.extra",
            said(found.extra),
            _("{count} conda packages are not in its lock: {names}"),
            _("no conda package too many"),
            subject.repair,
        ),
        (
            "drift.added",
            said(found.added),
            _("{count} packages were added by pip: {names}"),
            _("nothing was added by pip"),
            _to_keep(subject, found) if found.added else "",
        ),
        (
            "drift.other",
            said(found.other),
            _("{count} packages are not those of its lock: {names}"),
            _("versions, builds and archives are those of its lock"),
            subject.repair,
        ),
    )
    for id, names, text, well, hint in rows:
        if names:
            text = text.format(count=len(names), names=some(names))
            yield bad(id, text, hint, names, {"packages": list(names)})
        else:
            yield ok(id, well)


def files(subject: Subject, found: Files, *, deep: bool) -> Iterator[Check]:
    """`drift.files-missing`, `drift.files-changed`"""
    counts = {"looked_at": found.looked_at, "hashed": found.hashed}
    if found.missing:
        text = _("{count} files are missing, of {names}")
        yield _listed("drift.files-missing", text, subject, found.missing)
    else:
        text = _("none of {count} files is missing").format(count=found.looked_at)
        yield ok("drift.files-missing", text, counts)
    if found.changed:
        text = _("{count} files are not as they were installed, of {names}")
        yield _listed("drift.files-changed", text, subject, found.changed)
    elif found.unreadable:
        text = _("{count} files cannot be read, of {names}")
        yield _listed("drift.files-changed", text, subject, found.unreadable)
    else:
        text = (
            _("no file was changed ({count} hashed)").format(count=found.hashed)
            if deep
            else _("no file was changed, by size and time; `--deep` hashes them all")
        )
        yield ok("drift.files-changed", text, counts)


def strays(subject: Subject, found: Mapping[str, int]) -> Check:
    """`drift.strays`"""
    if not found:
        return ok("drift.strays", _("every file belongs to a package"))
    text = _("{count} files belong to no package: {names}").format(
        count=sum(found.values()), names=some([path.rpartition("site-packages/")[2] for path in found])
    )
    hint = _("if nobody needs them: `rm -r {paths}`").format(paths=paths_of(subject, list(found)))
    names = [f"{path} ({count})" if count > 1 else path for path, count in found.items()]
    return warn("drift.strays", text, hint, names, {"files": dict(found)})


def paths_of(subject: Subject, inside: Sequence[str]) -> str:
    """Paths in the environment as words of a shell command; of very many only the first."""
    named = inside[:_NAMED_IN_A_COMMAND]
    return " ".join(shlex.quote(str(subject.prefix / path)) for path in named)


def _listed(id: str, text: str, subject: Subject, by_package: Mapping[str, Sequence[str]]) -> Check:
    lines = [f"{label}: {path}" for label, paths in by_package.items() for path in paths]
    data = {"files": {label: list(paths) for label, paths in by_package.items()}}
    text = text.format(count=len(lines), names=some(list(by_package)))
    return bad(id, text, subject.repair, lines, data)


def _to_keep(subject: Subject, found: Packages) -> str:
    names = " ".join(shlex.quote(package.name) for package in found.added)
    return _(
        "`envkit run {name} -- python -m pip uninstall -y {packages}` takes them out; "
        "to keep them, add them to the matrix and lock"
    ).format(name=subject.call, packages=names)


def _name(path: Path) -> str:
    """A record's file; pip's are all called RECORD, in a folder that says more."""
    return path.parent.name if path.name == "RECORD" else path.name
