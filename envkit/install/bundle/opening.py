"""A bundle as something to install from: its lock, and the root of its channels."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from envkit import paths
from envkit.errors import InputError
from envkit.install.bundle.contents import LOCK, Contents, Member
from envkit.install.bundle.members import paths_of
from envkit.install.bundle.reading import Checked, check_folder, check_tar, copy_members, read_member
from envkit.install.bundle.scratch import scratch
from envkit.install.plan import plan, this_platform
from envkit.lock import parse_lock
from envkit.messages import _
from envkit.model import Lock
from envkit.progress import SILENT, Observer

__all__ = ["Opened", "host_bound_warning", "opened"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Opened:
    """A bundle for this machine.

    `root` is a tree of channels that has every package of `lock` for it; `name` is the environment's,
    `sha256` (hex) the tar's.
    """

    name: str
    lock: Lock
    root: Path
    sha256: str
    host_bound: bool


@contextmanager
def opened(
    path: Path, sha256: str | None = None, *, observer: Observer = SILENT, dry_run: bool = False
) -> Iterator[Opened]:
    """A bundle, or the folder one was unpacked into, for as long as the context lasts.

    It is read to its end first: InputError where it is not whole and sound, where its sha256 is not `sha256`
    (the hashes inside authenticate nothing), where it is for another platform or lacks a package of its own
    lock. Till then nothing is written. Then the packages in a tar are copied into the cache, to be removed
    when the context ends; with `dry_run` they get their sizes and no content, in a temporary folder.
    """
    folder = path.is_dir()
    checked = check_folder(path, observer) if folder else check_tar(path, observer)
    if sha256 is None:
        observer.note(
            _(
                "the bundle's sha256 is {sha256}: compare it with what `envkit bundle` printed (--sha256 "
                "does), for the hashes inside authenticate nothing"
            ).format(sha256=checked.sha256)
        )
    elif checked.sha256 == sha256:
        observer.note(_("the bundle's sha256 is {sha256}, as demanded").format(sha256=sha256))
    else:
        raise InputError(
            _("its sha256 is {found}, not {expected}").format(found=checked.sha256, expected=sha256),
            _("nothing was written; ask whoever made the bundle which of the two is right"),
            path=path,
        )
    contents = checked.contents
    _refuse_elsewhere(contents, path)
    if contents.host_bound:
        observer.note(host_bound_warning())
    raw = read_member(path, contents, contents[LOCK])
    lock = _lock(raw, path)
    members = _members(lock, contents, path)
    if folder:
        yield _opened(checked, lock, path.absolute())
        return
    with _place(dry_run) as place:
        root = place / contents.name
        if dry_run:
            _pretend(members, root)
        else:
            _copy(path, contents, members, root, observer)
        (root / LOCK).write_bytes(raw)
        yield _opened(checked, lock, root)


def host_bound_warning() -> str:
    """What must be said of a bundle of the wheel channel."""
    return _(
        "made from the interpreter and the wheels of one machine: it works on machines with the same system, "
        "and is not the team's lock"
    )


def _opened(checked: Checked, lock: Lock, root: Path) -> Opened:
    return Opened(
        name=checked.contents.name,
        lock=replace(lock, path=root / LOCK),
        root=root,
        sha256=checked.sha256,
        host_bound=checked.contents.host_bound,
    )


def _refuse_elsewhere(contents: Contents, path: Path) -> None:
    here = this_platform()
    if contents.platform != here:
        raise InputError(
            _("the bundle is for {platform}, this machine is {here}").format(
                platform=contents.platform, here=here
            ),
            _("make one for this machine: `envkit bundle {name} --platform {here} -o FILE`").format(
                name=contents.name, here=here
            ),
            path=path,
        )


def _lock(raw: bytes, path: Path) -> Lock:
    try:
        return parse_lock(raw.decode(), path / LOCK)
    except UnicodeDecodeError:
        problem = InputError(_("not UTF-8"), path=path / LOCK)
    except InputError as found:
        problem = found
    raise InputError(
        problem.message,
        _("nothing was written; have the bundle made again, from a lock that `envkit audit` passes"),
        path=problem.path,
        line=problem.line,
    )


def _members(lock: Lock, contents: Contents, path: Path) -> tuple[Member, ...]:
    """The members that have the packages to install."""
    wanted = plan(lock, contents.platform)
    known = {member.path: member for member in contents.members}
    found = []
    for place, package in paths_of((*wanted.conda, *wanted.pip)).items():
        member = known.get(place)
        if member is None or member.sha256 != package.sha256:
            raise InputError(
                _("its lock names {file}, which is not in it").format(file=place)
                if member is None
                else _("{file} in it is not the one that its lock names").format(file=place),
                _("make the bundle again, or get it again from where it was made"),
                path=path,
            )
        found.append(member)
    return tuple(found)


@contextmanager
def _place(dry_run: bool) -> Iterator[Path]:
    if dry_run:
        with tempfile.TemporaryDirectory(prefix="envkit-bundle-") as folder:
            yield Path(folder)
    else:
        with scratch(paths.cache()) as place:
            yield place


def _pretend(members: tuple[Member, ...], root: Path) -> None:
    """Files of the right sizes: what a plan counts."""
    for member in members:
        path = root / member.path
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            file.truncate(member.size)


def _copy(
    path: Path, contents: Contents, members: tuple[Member, ...], root: Path, observer: Observer
) -> None:
    from envkit.fetch.disk import require_room, writing

    size = sum(member.size for member in members)
    require_room(root.parent, size)
    task = _("unpacking the bundle")
    observer.start(task, size)
    try:
        with writing(root.parent):
            copy_members(path, contents, members, root, lambda count: observer.advance(task, count))
    finally:
        observer.finish(task)
