"""The Python that runs envkit, repacked as the conda package `python`.

What comes along: the executable, its shared library and what else it needs from its own prefix, the standard
library, the headers. What does not: installed packages, tests, the graphical parts and static libraries.
Libraries of the system (OpenSSL, libffi …) stay where they are, so that the package is bound to this machine.
Compiled-in prefixes are left alone too: Python finds its own from where the executable lies.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from envkit.errors import Error
from envkit.messages import _
from envkit.wheels.elf import Elf, is_elf, read_elf, with_runpath
from envkit.wheels.interpreter import Interpreter
from envkit.wheels.writer import PREFIX_PLACEHOLDER, Index, PackageWriter

__all__ = ["Contents", "contents", "python_abi_index", "python_stem"]

_DEBIAN_SCHEME = (b"prefix_scheme = 'posix_local'", b"prefix_scheme = 'posix_prefix'")
"""Debian's sysconfig sends packages to local/lib/python3.11/dist-packages; its text, and the usual one."""

_DEBIAN_PATH = "lib/python3/dist-packages/envkit.pth"
"""Debian's `site`, frozen into the executable, knows no site-packages; it reads `.pth` files here."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Binary:
    """An ELF file that goes into the package, and the search path it gets there (None: as it is)."""

    source: Path
    elf: Elf
    runpath: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Contents:
    """What a package of an interpreter is made of; `glibc` is the floor of its symbols, "2.35"."""

    interpreter: Interpreter
    files: dict[str, Path]
    binaries: dict[str, _Binary]
    glibc: str | None

    def index(self, subdir: str, identity: str) -> Index:
        """The package's record. Its build string, `envkit_h…`, says whose it is."""
        interpreter = self.interpreter
        depends = ["__linux"]
        if self.glibc:
            depends.append(f"__glibc >={self.glibc}")
        return Index(
            name="python",
            version=interpreter.version,
            build=_build(identity),
            subdir=subdir,
            depends=tuple(sorted(depends)),
            constrains=(f"python_abi {interpreter.minor}.* *_{interpreter.abi}",),
            license="PSF-2.0",
            extra={"python_site_packages_path": f"lib/python{interpreter.minor}/site-packages"},
        )

    def write(self, package: PackageWriter) -> None:
        """Put everything into the package. Error where the interpreter is one that cannot be moved."""
        minor = self.interpreter.minor
        links = {"bin/python": f"python{minor}", "bin/python3": f"python{minor}"}
        if self.interpreter.platlibdir != "lib":
            links[self.interpreter.platlibdir] = "lib"
        links |= _library_links(self.binaries)
        for target in sorted({*self.files, *links}):
            if target in links:
                package.link(target, links[target])
            elif binary := self.binaries.get(target):
                raw = (
                    binary.source.read_bytes()
                    if binary.runpath is None
                    else with_runpath(binary.source, binary.elf, binary.runpath)
                )
                package.add(target, [raw], len(raw), executable=True)
            else:
                self._write_text(package, target)
        if self.interpreter.debian:
            path_file = _path_file(self.interpreter)
            package.add(_DEBIAN_PATH, [path_file], len(path_file))
        for name, content in _licences(self.interpreter):
            package.info(f"licenses/{name}", content)
        package.info("about.json", _about(self.interpreter))

    def _write_text(self, package: PackageWriter, target: str) -> None:
        source = self.files[target]
        raw = source.read_bytes()
        if self.interpreter.debian and target == f"lib/python{self.interpreter.minor}/sysconfig.py":
            raw = _usual_scheme(raw)
        moved = _with_placeholder(raw, self.interpreter)
        executable = bool(source.stat().st_mode & 0o111)
        package.add(target, [moved], len(moved), executable=executable, prefix=moved != raw)


def contents(interpreter: Interpreter) -> Contents:
    """Everything that the package of this interpreter will hold, read but not yet packed."""
    files = dict(interpreter.files())
    binaries: dict[str, _Binary] = {}
    pending = [(target, source) for target, source in files.items() if is_elf(source)]
    while pending:
        target, source = pending.pop()
        elf = read_elf(source)
        binaries[target] = _Binary(
            source=source, elf=elf, runpath=_moved_runpath(interpreter.prefix, source, target, elf)
        )
        for library, path in _own_libraries(interpreter.prefix, source, elf):
            if library not in files:
                files[library] = path
                pending.append((library, path))
    floor = max((binary.elf.glibc for binary in binaries.values() if binary.elf.glibc), default=None)
    glibc = f"{floor[0]}.{floor[1]}" if floor else None
    return Contents(interpreter=interpreter, files=files, binaries=binaries, glibc=glibc)


def _own_libraries(prefix: Path, source: Path, elf: Elf) -> Iterator[tuple[str, Path]]:
    """The needed libraries that lie in the interpreter's own prefix; the system's are not ours to move."""
    folders = [Path(entry.replace("$ORIGIN", str(source.parent))) for entry in elf.runpath]
    if str(prefix) == "/usr":
        folders = []
    for name in elf.needed:
        for folder in folders:
            path = folder / name
            inside = os.path.normpath(path)
            if path.is_file() and Path(inside).is_relative_to(prefix):
                below = PurePosixPath(Path(inside).relative_to(prefix))
                if below.parts[0] == "lib64":  # which is a link to lib in the package
                    below = PurePosixPath("lib", *below.parts[1:])
                yield str(below), path
                break


def _moved_runpath(prefix: Path, source: Path, target: str, elf: Elf) -> str | None:
    """The search path with every folder of the old prefix written relative to the file in the new one."""
    entries = []
    for entry in elf.runpath:
        if not entry.startswith("$") and Path(entry).is_relative_to(prefix) and str(prefix) != "/usr":
            inside = Path(entry).relative_to(prefix)
            relative = os.path.relpath(inside, PurePosixPath(target).parent)
            entry = "$ORIGIN" if relative == "." else f"$ORIGIN/{relative}"
        if entry not in entries:
            entries.append(entry)
    new = ":".join(entries)
    return None if new == ":".join(elf.runpath) else new


def _library_links(binaries: dict[str, _Binary]) -> dict[str, str]:
    """`libpython3.11.so` beside `libpython3.11.so.1.0`, which is what programs that embed Python link to."""
    links = {}
    for target in binaries:
        found = re.fullmatch(r"(lib/libpython[\d.]+\.so)\.[\d.]+", target)
        if found:
            links[found[1]] = PurePosixPath(target).name
    return links


def _with_placeholder(raw: bytes, interpreter: Interpreter) -> bytes:
    """Text with the interpreter's prefix replaced by the placeholder; of /usr, only what is Python's own."""
    prefix = os.fsencode(interpreter.prefix)
    if prefix not in raw or b"\0" in raw:
        return raw
    if str(interpreter.prefix) == "/usr":
        if b"INCLUDEPY" not in raw:
            return raw
        own = rb"/usr(?=/(?:include|lib)/python" + re.escape(interpreter.minor).encode() + rb"\b|'[,}\s])"
    else:
        own = re.escape(prefix) + rb"(?![\w.-])"
    return re.sub(own, PREFIX_PLACEHOLDER.encode(), raw)


def _usual_scheme(raw: bytes) -> bytes:
    """Debian's sysconfig.py with packages where everyone else has them."""
    theirs, usual = _DEBIAN_SCHEME
    if theirs not in raw:
        raise Error(
            _("this Python was changed by its distribution in a way not known here (sysconfig.py)"),
            _("run envkit with another Python interpreter"),
        )
    return raw.replace(theirs, usual)


def _path_file(interpreter: Interpreter) -> bytes:
    folder = f"lib/python{interpreter.minor}/site-packages"
    return f"import site, sys; site.addsitedir(sys.prefix + '/{folder}')\n".encode()


def _licences(interpreter: Interpreter) -> Iterator[tuple[str, bytes]]:
    """Python's own licence file, which builds keep in the standard library or their documentation."""
    minor = interpreter.minor
    candidates = (
        interpreter.stdlib / "LICENSE.txt",
        interpreter.prefix / "LICENSE.txt",
        interpreter.prefix / "LICENSE_PYTHON.txt",
        interpreter.prefix / "share" / "doc" / f"python{minor}" / "copyright",
        interpreter.prefix / "share" / "licenses" / f"python{minor}" / "LICENSE",
        interpreter.prefix / "share" / "licenses" / "python3-libs" / "LICENSE",
    )
    found = [path for path in candidates if path.is_file()]
    for path in found[:1]:
        yield path.name, path.read_bytes()
    if not found:
        yield "LICENSE.txt", f"{sys.copyright}\n\nhttps://docs.python.org/{minor}/license.html\n".encode()


def _about(interpreter: Interpreter) -> bytes:
    about = {
        "home": "https://www.python.org/",
        "license": "PSF-2.0",
        "summary": f"This machine's own Python {interpreter.version}, repacked by envkit; of use only here",
    }
    return json.dumps(about, indent=1, sort_keys=True).encode() + b"\n"


def python_stem(interpreter: Interpreter, identity: str) -> str:
    """The file name of its package without the ending; `identity` is the interpreter's."""
    return f"python-{interpreter.version}-{_build(identity)}"


def _build(identity: str) -> str:
    return f"envkit_h{identity[:8]}_0"


def python_abi_index(interpreter: Interpreter) -> Index:
    """The empty package that says which extension modules fit: `python_abi 3.11 2_cp311`."""
    return Index(
        name="python_abi",
        version=interpreter.minor,
        build=f"2_{interpreter.abi}",
        build_number=2,
        subdir="noarch",
        noarch="generic",
        depends=(f"python {interpreter.minor}.*",),
        license="BSD-3-Clause",
    )
