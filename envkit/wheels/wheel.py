"""One wheel as a conda package: the same files in conda's places, the same metadata in conda's words.

Wheels are https://packaging.python.org/en/latest/specifications/binary-distribution-format/. What is refused
in one: links, absolute paths, `..`, a name that stands twice.
"""

from __future__ import annotations

import base64
import configparser
import contextlib
import re
import stat
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from envkit.errors import Error
from envkit.messages import _
from envkit.wheels.writer import PREFIX_PLACEHOLDER, PackageWriter, Written, blocks_of, python_link

__all__ = ["HEADERS", "Layout", "left_out", "pack_headers", "pack_wheel"]

_LEFT_OUT = {"torch": ("torch/test/", "torch/include/", "torch/bin/test_")}
"""Parts of a distribution that are of no use at run time: half of torch's files, a fifth of its bytes."""

HEADERS = {"torch": ("torch/include/",)}
"""What extensions are compiled against; in a package of its own, on request."""

_LICENCE = re.compile(r"(?:licen[cs]e|copying|notice|authors)", re.IGNORECASE)
_OWN_RECORDS = frozenset({"RECORD", "RECORD.jws", "RECORD.p7s", "INSTALLER", "REQUESTED", "direct_url.json"})
_SCRIPT = re.compile(r"[\w.+-]+")
_POINT = re.compile(r"(?P<module>[\w.]+)\s*:\s*(?P<function>[\w.]+)(?:\s*\[.*\])?\s*")
_SHEBANG = re.compile(rb"#!python[w]?[^\n]*")
_ENTRY_POINT = """\
#!{prefix}/bin/python
import sys

from {module} import {name}

if __name__ == "__main__":
    sys.argv[0] = sys.argv[0].removesuffix(".exe")
    sys.exit({function}())
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """Where the parts of a wheel go below the prefix; in a `noarch: python` package the installer decides."""

    site_packages: str
    scripts: str
    include: str
    noarch: bool

    @classmethod
    def of(cls, minor: str, *, noarch: bool) -> Layout:
        """The layout for Python `minor` ("3.11")."""
        library = f"lib/python{minor}"
        return cls(
            site_packages="site-packages" if noarch else f"{library}/site-packages",
            scripts="python-scripts" if noarch else "bin",
            include=f"include/python{minor}",
            noarch=noarch,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Entry:
    """A member of the wheel and its place in the package."""

    target: str
    member: zipfile.ZipInfo
    script: bool = False


def left_out(distribution: str) -> tuple[str, ...]:
    """The beginnings of paths that stay out of the package of a distribution."""
    return _LEFT_OUT.get(distribution, ())


def pack_wheel(path: Path, distribution: str, layout: Layout, package: PackageWriter) -> None:
    """Put the wheel at `path` into the package. Error where the file is not a wheel one can trust."""
    with _opened(path) as wheel:
        info = _dist_info(wheel, path)
        points = _entry_points(wheel, info, path)
        skipped = left_out(distribution)
        written = []
        for entry in sorted(_entries(wheel, info, layout, path), key=lambda entry: entry.target):
            name = entry.member.filename
            if name.startswith(skipped) or (entry.script and PurePosixPath(name).name in points):
                continue
            written.append(_copy(wheel, entry, package))
            _keep_licence(wheel, entry.member, info, package)
        if not layout.noarch:
            written += [_write_entry_point(package, layout, *point) for point in sorted(points.items())]
        _write_records(package, layout, info, written, points)
    if layout.noarch:
        package.info("link.json", python_link(f"{name} = {point}" for name, point in points.items()))


def pack_headers(path: Path, distribution: str, layout: Layout, package: PackageWriter) -> None:
    """Put only the wheel's C and C++ headers into the package."""
    with _opened(path) as wheel:
        info = _dist_info(wheel, path)
        for entry in sorted(_entries(wheel, info, layout, path), key=lambda entry: entry.target):
            if entry.member.filename.startswith(HEADERS[distribution]):
                _copy(wheel, entry, package)
            _keep_licence(wheel, entry.member, info, package)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    """The wheel as a zip; whatever is wrong inside becomes an Error while it is open."""
    try:
        with zipfile.ZipFile(path) as wheel:
            yield wheel
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, RuntimeError) as problem:
        # RuntimeError is what zipfile says of an encrypted member, ValueError what PackageWriter says.
        raise _broken(path, str(problem)) from None


def _broken(path: Path, reason: str) -> Error:
    return Error(
        _("{wheel} is not a sound wheel: {reason}").format(wheel=path.name, reason=reason),
        _("remove it from where pip finds it, or name another version"),
    )


def _dist_info(wheel: zipfile.ZipFile, path: Path) -> str:
    """The name of the wheel's `.dist-info` folder."""
    found = {name.split("/", 1)[0] for name in wheel.namelist() if ".dist-info/" in name}
    folders = sorted(name for name in found if name.endswith(".dist-info"))
    if len(folders) != 1:
        raise _broken(path, _("it has {count} .dist-info folders").format(count=len(folders)))
    return folders[0]


def _entries(wheel: zipfile.ZipFile, info: str, layout: Layout, path: Path) -> Iterator[_Entry]:
    data = info.removesuffix(".dist-info") + ".data"
    distribution = info.split("-", 1)[0]
    seen: set[str] = set()
    for member in wheel.infolist():
        if member.is_dir():
            continue
        name = _safe(member, path)
        parts = PurePosixPath(name).parts
        script = False
        if parts[0] == data and len(parts) > 2:
            places = {
                "purelib": layout.site_packages,
                "platlib": layout.site_packages,
                "scripts": layout.scripts,
                "headers": f"{layout.include}/{distribution}",
                "data": "",
            }
            if parts[1] not in places:
                raise _broken(path, _("unknown folder {name}").format(name="/".join(parts[:2])))
            script = parts[1] == "scripts"
            target = str(PurePosixPath(places[parts[1]], *parts[2:]))
        elif parts[0] == info and len(parts) == 2 and parts[1] in _OWN_RECORDS:
            continue
        else:
            target = f"{layout.site_packages}/{name}"
        if target in seen or target.split("/", 1)[0] in ("conda-meta", "info"):
            raise _broken(path, _("unexpected file {name}").format(name=name))
        seen.add(target)
        yield _Entry(target=target, member=member, script=script)


def _safe(member: zipfile.ZipInfo, path: Path) -> str:
    """The member's name, where it stays inside the folder it is unpacked to and is a plain file."""
    name = member.filename
    parts = name.split("/")
    kind = stat.S_IFMT(member.external_attr >> 16)
    if "\\" in name or "\0" in name or any(part in ("", ".", "..") for part in parts):
        raise _broken(path, _("unsafe path {name}").format(name=ascii(name)))
    if kind not in (0, stat.S_IFREG):
        raise _broken(path, _("{name} is not a plain file").format(name=ascii(name)))
    return name


def _copy(wheel: zipfile.ZipFile, entry: _Entry, package: PackageWriter) -> Written:
    executable = entry.script or bool(entry.member.external_attr >> 16 & 0o111)
    with wheel.open(entry.member) as source:
        if not entry.script:
            size = entry.member.file_size
            return package.add(entry.target, blocks_of(source), size, executable=executable)
        raw = source.read()
    moved = _SHEBANG.sub(f"#!{PREFIX_PLACEHOLDER}/bin/python".encode(), raw, count=1)
    if not _SHEBANG.match(raw):
        moved = raw
    return package.add(entry.target, [moved], len(moved), executable=True, prefix=moved != raw)


def _keep_licence(wheel: zipfile.ZipFile, member: zipfile.ZipInfo, info: str, package: PackageWriter) -> None:
    folder, _slash, name = member.filename.partition("/")
    if folder == info and (name.startswith("licenses/") or ("/" not in name and _LICENCE.match(name))):
        package.info(f"licenses/{name.removeprefix('licenses/')}", wheel.read(member))


def _entry_points(wheel: zipfile.ZipFile, info: str, path: Path) -> dict[str, str]:
    """Commands by name, as `module:function`."""
    name = f"{info}/entry_points.txt"
    if name not in wheel.namelist():
        return {}
    parser = configparser.ConfigParser(delimiters=("=",), interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[method-assign,assignment]
    try:
        parser.read_string(wheel.read(name).decode("utf-8"))
    except (configparser.Error, UnicodeDecodeError):
        raise _broken(path, _("entry_points.txt cannot be read")) from None
    points = {}
    for section in ("console_scripts", "gui_scripts"):
        for command, value in parser.items(section) if parser.has_section(section) else ():
            found = _POINT.fullmatch(value)
            if not found or not _SCRIPT.fullmatch(command) or command in (".", ".."):
                raise _broken(path, _("unusable entry point {name}").format(name=ascii(command)))
            points[command] = f"{found['module']}:{found['function']}"
    return points


def _write_entry_point(package: PackageWriter, layout: Layout, command: str, point: str) -> Written:
    module, _colon, function = point.partition(":")
    text = _ENTRY_POINT.format(
        prefix=PREFIX_PLACEHOLDER, module=module, name=function.split(".")[0], function=function
    ).encode()
    return package.add(f"{layout.scripts}/{command}", [text], len(text), executable=True, prefix=True)


def _write_records(
    package: PackageWriter, layout: Layout, info: str, written: list[Written], points: dict[str, str]
) -> None:
    """INSTALLER, and a RECORD of what is really there, so that pip can uninstall it."""
    folder = f"{layout.site_packages}/{info}"
    installer = b"conda\n"
    written = [*written, package.add(f"{folder}/INSTALLER", [installer], len(installer))]
    lines = [_record_line(entry, layout) for entry in written]
    if layout.noarch:
        lines += [f"../../../bin/{command},," for command in points]
    lines.append(f"{info}/RECORD,,")
    record = "".join(f"{line}\n" for line in sorted(lines)).encode()
    package.add(f"{folder}/RECORD", [record], len(record))


def _record_line(entry: Written, layout: Layout) -> str:
    """A file as RECORD names it: relative to site-packages, without a hash where the prefix is written in."""
    inside = f"{layout.site_packages}/"
    if entry.path.startswith(inside):
        digest = base64.urlsafe_b64encode(bytes.fromhex(entry.sha256)).rstrip(b"=").decode()
        return f"{_quoted(entry.path.removeprefix(inside))},sha256={digest},{entry.size}"
    outside = entry.path
    if outside.startswith(f"{layout.scripts}/"):
        outside = f"bin/{outside.removeprefix(layout.scripts + '/')}"
    return f"{_quoted('../../../' + outside)},,"


def _quoted(path: str) -> str:
    return '"' + path.replace('"', '""') + '"' if set(path) & {",", '"'} else path
