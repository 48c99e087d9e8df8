"""The Python that runs envkit: where its parts lie, and which of them belong to an installed one."""

from __future__ import annotations

import hashlib
import os
import re
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from envkit.errors import Error
from envkit.messages import _
from envkit.wheels.elf import is_elf

__all__ = ["Interpreter", "running_interpreter"]

_SKIPPED_FOLDERS = frozenset(
    {
        *("site-packages", "dist-packages", "__pycache__"),
        *("test", "tests", "idlelib", "tkinter", "turtledemo"),
    }
)
_SKIPPED_FILES = re.compile(
    r"(?:_test|_ctypes_test|_xx|xx|_tkinter).*\.so|turtle\.py|sitecustomize\.py|usercustomize\.py"
    r"|EXTERNALLY-MANAGED|.*\.(?:a|o|pyc|exe)"
)
_CONFIG_KEPT = frozenset({"Makefile", "python-config.py"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Interpreter:
    """An installed CPython: where it lies and what it is.

    `version` is "3.11.7"; `stdlib` is the folder that holds os.py; `debian` whether Debian's changes to the
    layout are in it; `platlibdir` where it looks for extension modules, "lib" or "lib64".
    """

    prefix: Path
    executable: Path
    stdlib: Path
    include: Path
    version: str
    debian: bool = False
    platlibdir: str = "lib"

    @property
    def minor(self) -> str:
        return ".".join(self.version.split(".")[:2])

    @property
    def abi(self) -> str:
        """The tag of its extension modules: "cp311"."""
        return "cp" + self.minor.replace(".", "")

    def identity(self) -> str:
        """A digest (hex) of where it lies and of the names, sizes and times of its files."""
        digest = hashlib.sha256(f"{self.prefix}\n{self.version}\n".encode())
        for target, source in sorted(self.files()):
            stat = source.stat()
            digest.update(f"{target}\n{stat.st_size}\n{stat.st_mtime_ns}\n".encode())
        return digest.hexdigest()

    def files(self) -> Iterator[tuple[str, Path]]:
        """(path in the package, file on this machine) of all that is copied, shared libraries left out."""
        yield f"bin/python{self.minor}", self.executable
        library = f"lib/python{self.minor}"
        yield from _walk(self.stdlib, library)
        dynamic = self.stdlib / "lib-dynload"
        if not dynamic.is_dir():
            platform = Path(sysconfig.get_path("platstdlib"))
            yield from _walk(platform / "lib-dynload", f"{library}/lib-dynload")
        if self.include.is_dir():
            yield from _walk(self.include, f"include/python{self.minor}")


def running_interpreter() -> Interpreter:
    """The interpreter that runs this, seen through virtual environments; Error where it is not fit."""
    if sys.platform != "linux":
        raise Error(
            _("the wheel channel exists on Linux only"), _("choose another source: `--source conda-forge`")
        )
    if sys.implementation.name != "cpython" or bool(sysconfig.get_config_var("Py_GIL_DISABLED")):
        raise Error(
            _("the wheel channel needs an ordinary CPython; this is {implementation}").format(
                implementation=f"{sys.implementation.name} {sys.version.split()[0]}{sys.abiflags}"
            ),
            _("run envkit with CPython"),
        )
    prefix = Path(sys.base_prefix).resolve()
    minor = f"{sys.version_info.major}.{sys.version_info.minor}"
    return Interpreter(
        prefix=prefix,
        executable=_executable(prefix, minor),
        stdlib=Path(os.__file__).resolve().parent,
        include=_include(prefix, minor),
        version="{}.{}.{}".format(*sys.version_info[:3]),
        debian="posix_local" in sysconfig.get_scheme_names(),
        platlibdir=sys.platlibdir,
    )


def _executable(prefix: Path, minor: str) -> Path:
    own = getattr(sys, "_base_executable", None) or sys.executable
    for candidate in (prefix / "bin" / f"python{minor}", Path(own), Path(os.path.realpath("/proc/self/exe"))):
        real = candidate.resolve()
        if real.is_file() and is_elf(real):
            return real
    raise Error(
        _("the executable of Python {version} was not found below {prefix}").format(
            version=minor, prefix=prefix
        ),
        _("run envkit with another Python interpreter"),
    )


def _include(prefix: Path, minor: str) -> Path:
    named = sysconfig.get_config_var("INCLUDEPY")
    return Path(named) if named else prefix / "include" / f"python{minor}"


def _walk(folder: Path, target: str) -> Iterator[tuple[str, Path]]:
    for root, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in _SKIPPED_FOLDERS]
        inside = PurePosixPath(target, *Path(root).relative_to(folder).parts)
        config = inside.name.startswith("config-")
        for name in files:
            source = Path(root, name)
            if _SKIPPED_FILES.fullmatch(name) or (config and name not in _CONFIG_KEPT):
                continue
            if source.is_file():
                yield str(inside / name), source
