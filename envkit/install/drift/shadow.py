"""What would be imported or loaded in place of an environment's own files."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from envkit.files import open_plain

__all__ = ["PathFile", "Shadow", "library_path", "path_files", "python_path", "site_customs", "user_site"]

_MODULE = re.compile(r"([A-Za-z_]\w*)(\.py|(\.[\w-]+)*\.so)\Z")
_LIBRARY = re.compile(r"(lib[\w+-]+)\.so(\.|\Z)")
_CUSTOMS = ("sitecustomize", "usercustomize")
_LARGEST = 1 << 16


@dataclass(frozen=True, kw_only=True, slots=True)
class Shadow:
    """A folder that is searched before the environment's, and the names that both have, sorted."""

    folder: str
    names: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class PathFile:
    """A `.pth` file of site-packages and what in it leads out: folders elsewhere, or code that it runs."""

    path: str
    lines: tuple[str, ...]


def python_path(prefix: Path, environ: Mapping[str, str]) -> tuple[Shadow, ...]:
    """The folders of PYTHONPATH outside the environment."""
    entries = [entry for entry in environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    own = _own_modules(prefix)
    return tuple(
        Shadow(folder=entry, names=tuple(sorted(_modules(entry) & own)))
        for entry in entries
        if not _within(entry, prefix)
    )


def user_site(prefix: Path, environ: Mapping[str, str]) -> tuple[Shadow, ...]:
    """The user's own site-packages for the environment's Python, where it has anything."""
    if environ.get("PYTHONNOUSERSITE"):
        return ()
    base = environ.get("PYTHONUSERBASE") or os.path.join(environ.get("HOME") or "~", ".local")  # noqa: PTH118
    own = _own_modules(prefix)
    return tuple(
        Shadow(folder=str(folder), names=tuple(sorted(present & own)))
        for python in _pythons(prefix)
        if (folder := Path(os.path.expanduser(base)) / "lib" / python.name / "site-packages").is_dir()  # noqa: PTH111
        and not _within(str(folder), prefix)
        and (present := _modules(str(folder)))
    )


def library_path(prefix: Path, environ: Mapping[str, str]) -> tuple[Shadow, ...]:
    """The folders of LD_LIBRARY_PATH that hold libraries which the environment has too."""
    entries = [entry for entry in environ.get("LD_LIBRARY_PATH", "").split(os.pathsep) if entry]
    outside = [entry for entry in entries if not _within(entry, prefix)]
    own = _own_libraries(prefix) if outside else frozenset()
    found = (Shadow(folder=entry, names=tuple(sorted(_libraries(entry) & own))) for entry in outside)
    return tuple(shadow for shadow in found if shadow.names)


def path_files(prefix: Path, owned: Collection[str]) -> tuple[PathFile, ...]:
    """The `.pth` files that lead out of the environment, and those of nobody that run code.

    `owned` are the files that packages own: what these run is theirs to say.
    """
    found = []
    for python in _pythons(prefix):
        for file in sorted((python / "site-packages").glob("*.pth")):
            path = file.relative_to(prefix).as_posix()
            lines = tuple(_leading_out(file, prefix, trusted=path in owned))
            if lines:
                found.append(PathFile(path=path, lines=lines))
    return tuple(found)


def site_customs(prefix: Path, owned: Collection[str]) -> tuple[str, ...]:
    """`sitecustomize` and `usercustomize` modules that the environment's Python would run and that are not
    its own: in it but no package's, or links out of it."""
    found = []
    for python in _pythons(prefix):
        for folder in (python, python / "site-packages"):
            for name in _CUSTOMS:
                for file in (folder / f"{name}.py", folder / name / "__init__.py"):
                    if not os.path.lexists(file):
                        continue
                    path = file.relative_to(prefix).as_posix()
                    if path not in owned or not _within(os.path.realpath(file), prefix):
                        found.append(path)
    return tuple(found)


def _pythons(prefix: Path) -> tuple[Path, ...]:
    """`lib/python3.11`; more than one only where somebody copied."""
    return tuple(
        path for path in sorted(prefix.glob("lib/python3.*")) if path.is_dir() and not path.is_symlink()
    )


def _own_modules(prefix: Path) -> frozenset[str]:
    """The top-level names that the environment's Python can import from its own folders."""
    return frozenset().union(
        *(
            _modules(str(folder))
            for python in _pythons(prefix)
            for folder in (python, python / "site-packages")
        )
    )


def _modules(folder: str) -> frozenset[str]:
    return frozenset(_importable(_scan(folder)))


def _importable(entries: Iterable[os.DirEntry[str]]) -> Iterator[str]:
    for entry in entries:
        if module := _MODULE.match(entry.name):
            yield module.group(1)
        elif entry.name.isidentifier() and entry.name != "__pycache__" and entry.is_dir():
            yield entry.name


def _own_libraries(prefix: Path) -> frozenset[str]:
    folders = [prefix / "lib", *prefix.glob("lib/python3.*/site-packages/torch/lib")]
    folders += prefix.glob("lib/python3.*/site-packages/nvidia/*/lib")
    return frozenset().union(*(_libraries(str(folder)) for folder in folders))


def _libraries(folder: str) -> frozenset[str]:
    return frozenset(match.group(1) for entry in _scan(folder) if (match := _LIBRARY.match(entry.name)))


def _scan(folder: str) -> tuple[os.DirEntry[str], ...]:
    try:
        with os.scandir(folder) as entries:
            return tuple(entries)
    except OSError:
        return ()


def _leading_out(file: Path, prefix: Path, *, trusted: bool) -> Iterator[str]:
    try:
        with open_plain(file) as opened:
            lines = opened.read(_LARGEST).decode("utf-8", "replace").splitlines()
    except OSError:
        return
    for line in lines:
        text = line.strip()
        if not text or text.startswith("#") or "\0" in text:  # Python adds no such path either
            continue
        if text.startswith(("import ", "import\t")):
            if not trusted:
                yield text
        elif not _within(str(file.parent / text), prefix):
            yield text


def _within(path: str, prefix: Path) -> bool:
    root = os.path.realpath(prefix)
    place = os.path.realpath(path)
    return place == root or place.startswith(root + "/")
