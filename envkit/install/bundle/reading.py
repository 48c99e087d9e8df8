"""A bundle looked through from end to end before anything is taken from it."""

from __future__ import annotations

import hashlib
import os
import stat
import tarfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from envkit.errors import InputError
from envkit.install.bundle.contents import LARGEST, MANIFEST, Contents, Member
from envkit.install.bundle.layout import BLOCK, END, first_header, header, padding, total
from envkit.messages import _
from envkit.progress import Observer

__all__ = ["Checked", "check_folder", "check_tar", "copy_members", "read_member"]

LARGEST_TEXT = 64 << 20
"""Bytes of a member that is read whole."""

_READ = 1 << 20
_PACKED = {
    b"\x1f\x8b": "gzip -d",
    b"BZh": "bzip2 -d",
    b"\xfd7zXZ": "xz -d",
    b"\x28\xb5\x2f\xfd": "zstd -d",
    b"PK\x03\x04": "unzip",
}
"""How compressed files begin, and what unpacks them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Checked:
    """A whole bundle. `sha256` (hex) is that of the tar, also where it lies unpacked in a folder."""

    contents: Contents
    sha256: str


def check_tar(path: Path, observer: Observer) -> Checked:
    """Read a bundle to its end, writing nothing.

    InputError, saying what is wrong and where, for a file that is not, byte for byte, the tar that its
    bundle.json describes: one that was cut or padded, with members that are changed, swapped, doubled or
    not listed, with links, devices or paths that lead elsewhere.
    """
    with _opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        raw = _manifest(file, path)
        contents = Contents.parse(raw, path)
        expected = total(raw, contents)
        if size < expected:
            raise _fault(
                path,
                _("it is cut off: {size} of {expected} bytes are there").format(size=size, expected=expected),
            )
        if size > expected:
            raise _fault(path, _("{count} bytes too many stand behind its end").format(count=size - expected))
        file.seek(0)
        task = _("checking the bundle")
        observer.start(task, size)
        try:
            reader = _Reader(path=path, file=file, digest=hashlib.sha256(), observer=observer, task=task)
            reader.expect(first_header(raw) + raw + padding(len(raw)), MANIFEST)
            for member in contents.members:
                reader.member(member)
            reader.expect(END, _("its end"))
        finally:
            observer.finish(task)
    return Checked(contents=contents, sha256=reader.digest.hexdigest())


def check_folder(folder: Path, observer: Observer) -> Checked:
    """Read an unpacked bundle; what else lies in the folder is not looked at. Raises as `check_tar` does."""
    with _opened(folder / MANIFEST) as file:
        raw = file.read(LARGEST + 1)
    if len(raw) > LARGEST:
        raise _too_large(folder, MANIFEST, LARGEST)
    contents = Contents.parse(raw, folder)
    task = _("checking the bundle")
    observer.start(task, total(raw, contents))
    digest = hashlib.sha256(first_header(raw) + raw + padding(len(raw)))
    try:
        for member in contents.members:
            digest.update(header(member))
            with _opened(folder / member.path, of=folder) as file:
                size = os.fstat(file.fileno()).st_size
                if size != member.size:
                    raise _fault(
                        folder,
                        _("{member} has {size} bytes instead of {expected}").format(
                            member=member.path, size=size, expected=member.size
                        ),
                    )
                reader = _Reader(path=folder, file=file, digest=digest, observer=observer, task=task)
                reader.content(member)
            digest.update(padding(member.size))
    finally:
        observer.finish(task)
    digest.update(END)
    return Checked(contents=contents, sha256=digest.hexdigest())


def read_member(path: Path, contents: Contents, member: Member) -> bytes:
    """The bytes of a small member of a bundle that was checked, a tar or a folder. Raises InputError."""
    if member.size > LARGEST_TEXT:
        raise _too_large(path, member.path, LARGEST_TEXT)
    unpacked = path.is_dir()
    with _opened(path / member.path if unpacked else path) as file:
        file.seek(0 if unpacked else _places(contents)[member.path])
        raw = file.read(member.size)
    if hashlib.sha256(raw).hexdigest() != member.sha256:
        raise _fault(path, _("it changed while it was read"))
    return raw


def copy_members(
    path: Path, contents: Contents, members: Iterable[Member], root: Path, advance: Callable[[int], None]
) -> None:
    """Copy members of a tar that was checked below a folder. OSError for the disk, InputError for the tar."""
    places = _places(contents)
    with _opened(path) as file:
        for member in members:
            target = root / member.path
            target.parent.mkdir(parents=True, exist_ok=True)
            file.seek(places[member.path])
            left = member.size
            with target.open("xb") as copy:
                while left and (block := file.read(min(_READ, left))):
                    copy.write(block)
                    advance(len(block))
                    left -= len(block)
            if left:
                raise _fault(path, _("it changed while it was read"))


def _places(contents: Contents) -> dict[str, int]:
    """Where the bytes of each member begin."""
    raw = contents.text
    found, place = {}, len(first_header(raw)) + len(raw) + len(padding(len(raw)))
    for member in contents.members:
        place += len(header(member))
        found[member.path] = place
        place += member.size + len(padding(member.size))
    return found


@dataclass(frozen=True, kw_only=True, slots=True)
class _Reader:
    """Reads on in a file, comparing what comes with what must come."""

    path: Path
    file: IO[bytes]
    digest: hashlib._Hash
    observer: Observer
    task: str

    def expect(self, raw: bytes, what: str) -> None:
        """Read exactly these bytes."""
        found = self.file.read(len(raw))
        self._passed(found)
        if found != raw:
            raise _fault(self.path, _("{what} is not as it was written").format(what=what))

    def member(self, member: Member) -> None:
        """Read a member: its header, its bytes, what fills the last block."""
        wanted = header(member)
        found = self.file.read(len(wanted))
        self._passed(found)
        if found != wanted:
            raise _fault(self.path, _unexpected(found, member))
        self.content(member)
        self.expect(padding(member.size), _("the end of {member}").format(member=member.path))

    def content(self, member: Member) -> None:
        """Read the bytes of a member."""
        alone, left = hashlib.sha256(), member.size
        while left and (block := self.file.read(min(_READ, left))):
            alone.update(block)
            self._passed(block)
            left -= len(block)
        if left or alone.hexdigest() != member.sha256:
            raise _fault(
                self.path, _("{member} is damaged: its sha256 is another").format(member=member.path)
            )

    def _passed(self, block: bytes) -> None:
        self.digest.update(block)
        self.observer.advance(self.task, len(block))


def _manifest(file: IO[bytes], path: Path) -> bytes:
    """The bytes of bundle.json, if that is what a tar begins with."""
    block = file.read(BLOCK)
    for magic, program in _PACKED.items():
        if block.startswith(magic):
            raise InputError(
                _("it is compressed; a bundle is a plain tar of archives that are compressed already"),
                _("unpack it first: {program} {file}").format(program=program, file=path.name),
                path=path,
            )
    try:
        found = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except tarfile.TarError:
        raise InputError(
            _("it is no bundle: it does not begin like a tar"),
            _("name the file that `envkit bundle` wrote"),
            path=path,
        ) from None
    if found.name != MANIFEST or not found.isreg():
        raise InputError(
            _("it is no bundle: its first member is {name}, not {file}").format(
                name=ascii(found.name)[:80], file=MANIFEST
            ),
            _("name the file that `envkit bundle` wrote; a tar of an unpacked bundle is another file"),
            path=path,
        )
    if found.size > LARGEST:
        raise _too_large(path, MANIFEST, LARGEST)
    raw = file.read(found.size)
    if len(raw) < found.size:
        raise _fault(path, _("it is cut off inside {file}").format(file=MANIFEST))
    return raw


def _unexpected(block: bytes, wanted: Member) -> str:
    """What stands where the header of a member should."""
    where = _("where {member} should be").format(member=wanted.path)
    try:
        found = tarfile.TarInfo.frombuf(block[:BLOCK], "utf-8", "surrogateescape")
    except tarfile.TarError:
        return _("no member stands {where}").format(where=where)
    name = ascii(found.name)[:80]
    if found.issym() or found.islnk():
        return _("the link {name} stands {where}").format(name=name, where=where)
    if not found.isreg():
        return _("{name}, which is no plain file, stands {where}").format(name=name, where=where)
    if found.name == wanted.path:
        return _("the header of {member} is not as it was written").format(member=wanted.path)
    return _("{name} stands {where}").format(name=name, where=where)


@contextmanager
def _opened(path: Path, of: Path | None = None) -> Iterator[IO[bytes]]:
    """A plain file to read; a link, a pipe or a device in its place is not opened, or not waited for.

    `of` is the unpacked bundle that it is a member of.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise InputError(_("it is no plain file"), _("name a bundle or the folder of one"), path=path)
            yield file
    except FileNotFoundError:
        if of is not None:
            raise InputError(
                _("{member} is missing from it").format(member=path.relative_to(of)),
                _("nothing was written; copy or unpack the bundle again"),
                path=of,
            ) from None
        raise InputError(
            _("there is no such file"), _("name a bundle, or a folder that one was unpacked into"), path=path
        ) from None
    except OSError as problem:
        raise InputError(
            _("cannot be read: {reason}").format(reason=problem.strerror or problem),
            _("name a bundle, or a folder that one was unpacked into"),
            path=path,
        ) from None


def _fault(path: Path, reason: str) -> InputError:
    return InputError(
        reason,
        _("nothing was written; copy the bundle again and compare its sha256 with the one that was printed"),
        path=path,
    )


def _too_large(path: Path, member: str, largest: int) -> InputError:
    return InputError(
        _("{file} in it is larger than {size} MB").format(file=member, size=largest >> 20),
        _("this is no bundle of envkit, or it was changed; get it again from where it was made"),
        path=path,
    )
