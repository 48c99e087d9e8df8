"""A bundle onto the disk: in one step, going on where a run that was killed left off."""

from __future__ import annotations

import hashlib
import os
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from envkit.errors import Error, InputError
from envkit.files import sha256_of
from envkit.install.bundle.contents import MANIFEST, Contents, Member
from envkit.install.bundle.layout import BLOCK, END, first_header, header, padding, total
from envkit.install.hold import hold
from envkit.install.space import is_full
from envkit.messages import _
from envkit.progress import Observer
from envkit.report.size import spoken

__all__ = ["Content", "check_output", "member_of", "write"]

Content = bytes | Path
"""What a member is made of: bytes, or a file."""

_BLOCK = 1 << 20


def member_of(path: str, content: Content) -> Member:
    """The member that a content becomes; a file is hashed."""
    if isinstance(content, bytes):
        return Member(path=path, sha256=hashlib.sha256(content).hexdigest(), size=len(content))
    return Member(path=path, sha256=sha256_of(content), size=content.stat().st_size)


def check_output(output: Path) -> None:
    """Raise InputError, before anything is fetched, for a place where no bundle can be written."""
    if output.is_dir() or not output.name:
        raise InputError(
            _("{path} is a folder").format(path=output),
            _("name a file: `-o {path}`").format(path=output / "env.tar"),
        )
    if os.path.lexists(output) and not output.is_file():
        raise InputError(_("{path} is no plain file").format(path=output), _("choose another name with `-o`"))
    if output.exists() and not _is_bundle(output):
        raise InputError(
            _("{path} is there already and is no bundle; it is not replaced").format(path=output),
            _("choose another name with `-o`, or move it away"),
        )
    parent = output.absolute().parent
    if not parent.is_dir():
        raise InputError(
            _("there is no folder {path}").format(path=parent), _("make it, or choose another name with `-o`")
        )
    if not os.access(parent, os.W_OK | os.X_OK):
        raise Error(
            _("cannot write to {path}").format(path=parent), _("choose a folder you may write to with `-o`")
        )


def _is_bundle(path: Path) -> bool:
    """Whether a file is empty or begins as a bundle does, be it whole or not."""
    try:
        with path.open("rb") as file:
            block = file.read(BLOCK)
        return not block or tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape").name == MANIFEST
    except (OSError, tarfile.TarError):
        return False


def write(contents: Contents, parts: Mapping[str, Content], output: Path, observer: Observer) -> str:
    """Write the tar of `contents` to `output` and return its sha256 (hex).

    What stood there is replaced at the last moment. Meanwhile the tar grows in a hidden file beside it, which
    a run that was killed leaves; the next one for the same contents hashes what is there and goes on behind
    it. A second process waits for the first. Raises Error for a disk without room or a file that changed.
    """
    raw = contents.text
    partial = output.with_name(f".{output.name}.partial")
    task = _("writing {file}").format(file=output.name)
    with hold(output.absolute(), observer), _explained(output, partial, total(raw, contents)):
        _require_room(partial, total(raw, contents), output)
        descriptor = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        with os.fdopen(descriptor, "r+b", buffering=0) as file:
            observer.start(task, total(raw, contents))
            try:
                tar = _Tar(file=file, observer=observer, task=task)
                tar.put(first_header(raw) + raw + padding(len(raw)))
                for member in contents.members:
                    tar.put(header(member))
                    tar.add(member, parts[member.path])
                    tar.put(padding(member.size))
                tar.put(END)
            finally:
                observer.finish(task)
            file.truncate(tar.place)
            os.fsync(file.fileno())
        partial.replace(output)
    return tar.digest.hexdigest()


@dataclass(kw_only=True, slots=True)
class _Tar:
    """A file that is written from its beginning, what already stands there being kept while it is right."""

    file: IO[bytes]
    observer: Observer
    task: str
    place: int = 0
    digest: hashlib._Hash = field(default_factory=hashlib.sha256)

    def put(self, raw: bytes) -> None:
        """These bytes next."""
        self.file.seek(self.place)
        if self.file.read(len(raw)) != raw:
            self.file.seek(self.place)
            _write(self.file, raw)
        self._passed(raw)

    def add(self, member: Member, content: Content) -> None:
        """The bytes of a member next."""
        if isinstance(content, bytes):
            self.put(content)
        elif not self._has(member):
            with content.open("rb") as source:
                self._copy(member, source)

    def _has(self, member: Member) -> bool:
        """Whether the member stands here already, whole; then it is behind us."""
        if os.fstat(self.file.fileno()).st_size < self.place + member.size:
            return False
        alone, all_of_it = hashlib.sha256(), self.digest.copy()
        self.file.seek(self.place)
        left = member.size
        while left and (block := self.file.read(min(_BLOCK, left))):
            alone.update(block)
            all_of_it.update(block)
            left -= len(block)
        if left or alone.hexdigest() != member.sha256:
            return False
        self.digest = all_of_it
        self.place += member.size
        self.observer.advance(self.task, member.size)
        return True

    def _copy(self, member: Member, source: IO[bytes]) -> None:
        alone, end = hashlib.sha256(), self.place + member.size
        self.file.seek(self.place)
        while block := source.read(_BLOCK):
            alone.update(block)
            _write(self.file, block)
            self._passed(block)
        if self.place != end or alone.hexdigest() != member.sha256:
            raise Error(
                _("{path} changed while it was put into the bundle").format(path=member.path),
                _("run the same command again"),
            )

    def _passed(self, block: bytes) -> None:
        self.digest.update(block)
        self.place += len(block)
        self.observer.advance(self.task, len(block))


def _write(file: IO[bytes], block: bytes) -> None:
    view = memoryview(block)
    while view:
        view = view[file.write(view) :]


def _require_room(partial: Path, needed: int, output: Path) -> None:
    state = os.statvfs(partial.absolute().parent)
    free = state.f_bavail * state.f_frsize
    have = partial.lstat().st_size if os.path.lexists(partial) else 0
    if needed - have > free:
        raise _no_room(output, needed, free)


def _no_room(output: Path, needed: int, free: int) -> Error:
    return Error(
        _("no room for {path}: {needed} needed, {free} free").format(
            path=output, needed=spoken(needed), free=spoken(free)
        ),
        _("free some space, or choose another disk with `-o`"),
    )


@contextmanager
def _explained(output: Path, partial: Path, needed: int) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        free = 0
        with suppress(OSError):
            state = os.statvfs(output.absolute().parent)
            free = state.f_bavail * state.f_frsize
        if is_full(problem):
            with suppress(OSError):  # what does not fit is in the way of everything else
                partial.unlink()
            raise _no_room(output, needed, free) from None
        raise Error(
            _("cannot write {path}: {reason}").format(path=output, reason=problem.strerror or problem),
            _("choose a folder you may write to with `-o`"),
        ) from None
