"""The bytes of a bundle's tar around its files: they follow from `bundle.json` alone.

So a bundle is the same bytes whoever makes it, its length is known before it is written, and a reader need
not judge what a tar may contain: it works out what must stand at each place, and refuses anything else.
"""

from __future__ import annotations

import tarfile

from envkit.install.bundle.contents import MANIFEST, Contents, Member

__all__ = ["BLOCK", "END", "first_header", "header", "padding", "total"]

BLOCK = tarfile.BLOCKSIZE
END = bytes(2 * BLOCK)
"""What ends a tar."""


def first_header(contents: bytes) -> bytes:
    """The header of bundle.json, given its bytes."""
    return header(Member(path=MANIFEST, sha256="", size=len(contents)))


def header(member: Member) -> bytes:
    """What stands before the bytes of a member: owner, group and time are nobody's and never."""
    info = tarfile.TarInfo(member.path)
    info.size, info.mode = member.size, member.mode
    return info.tobuf(tarfile.GNU_FORMAT, "utf-8", "strict")


def padding(size: int) -> bytes:
    """What stands behind `size` bytes of a member."""
    return bytes(-size % BLOCK)


def total(raw: bytes, contents: Contents) -> int:
    """The bytes of the whole tar; `raw` are those of its bundle.json."""
    sizes = (len(first_header(raw)) + len(raw) + len(padding(len(raw))), len(END))
    return sum(sizes) + sum(
        len(header(member)) + member.size + len(padding(member.size)) for member in contents.members
    )
