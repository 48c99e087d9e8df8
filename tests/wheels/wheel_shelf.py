"""Wheels made on the spot, the only ones pip can see, and environments linked from them."""

from __future__ import annotations

import base64
import contextlib
import ensurepip
import hashlib
import http.server
import os
import shutil
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, unquote

import pytest

from envkit.model import Variant
from envkit.progress import Observer

LINK = Path(__file__).with_name("link_prefix.py")
MINOR = f"{sys.version_info.major}.{sys.version_info.minor}"
ABI = f"cp{sys.version_info.major}{sys.version_info.minor}"
PLATFORM = f"manylinux_2_17_{os.uname().machine}"


@dataclass
class Heard(Observer):
    """What an observer was told."""

    notes: list[str] = field(default_factory=list)
    tasks: dict[str, int | None] = field(default_factory=dict)

    def start(self, task: str, total: int | None = None, unit: str = "B") -> None:
        self.tasks[task] = total

    def note(self, text: str) -> None:
        self.notes.append(text)


def make_wheel(
    folder: Path,
    name: str,
    version: str = "1.0",
    *,
    tag: str = "py3-none-any",
    files: Mapping[str, str | bytes] = {},
    requires: Sequence[str] = (),
    entry_points: str = "",
    members: Sequence[tuple[zipfile.ZipInfo, bytes]] = (),
    extras: Sequence[str] = (),
) -> Path:
    """A real wheel; `members` are put in as they are, sound or not."""
    stem = f"{name.replace('-', '_')}-{version}"
    info = f"{stem}.dist-info"
    metadata = (
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nLicense: MIT\nSummary: made by a test\n"
    )
    metadata += "".join(f"Provides-Extra: {extra}\n" for extra in extras)
    metadata += "".join(f"Requires-Dist: {line}\n" for line in requires)
    content: dict[str, bytes] = {
        path: text if isinstance(text, bytes) else text.encode() for path, text in files.items()
    }
    content[f"{info}/METADATA"] = metadata.encode()
    pure = str(tag.endswith("-any")).lower()
    content[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nRoot-Is-Purelib: {pure}\nTag: {tag}\n".encode()
    content[f"{info}/LICENSE"] = b"Permission is granted.\n"
    if entry_points:
        content[f"{info}/entry_points.txt"] = entry_points.encode()
    record = "".join(
        f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(raw).digest()).rstrip(b'=').decode()},{len(raw)}\n"
        for path, raw in content.items()
    )
    content[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    path = folder / f"{stem}-{tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for member, raw in content.items():
            wheel.writestr(zipfile.ZipInfo(member, (2024, 1, 1, 0, 0, 0)), raw, zipfile.ZIP_DEFLATED)
        for member_info, raw in members:
            wheel.writestr(member_info, raw)
    return path


def add_pip(folder: Path) -> None:
    """The pip that comes with this Python."""
    for bundled in (Path(ensurepip.__file__).parent / "_bundled").glob("pip-*.whl"):
        shutil.copy(bundled, folder)


def fill(folder: Path) -> None:
    """A folder of wheels for a whole environment: a pure one, a binary one, what they require, and pip."""
    add_pip(folder)
    make_wheel(folder, "tiny-dep", "1.2.3", files={"tiny_dep.py": "VALUE = 41\n"})
    make_wheel(folder, "tiny-extra", "0.5", files={"tiny_extra.py": "", "tiny_é.txt": "é"})
    make_wheel(
        folder,
        "Tiny_Pure",
        "2.0",
        files={
            "tiny_pure/__init__.py": "",
            "tiny_pure/tool.py": "import sys\n\n\ndef main():\n    print('pure at', sys.prefix)\n",
            "Tiny_Pure-2.0.data/scripts/tiny-script": "#!python\nimport sys\nprint('by', sys.prefix)\n",
            "Tiny_Pure-2.0.data/data/share/tiny/data.txt": "data\n",
        },
        requires=[
            "tiny-dep~=1.2",
            "tiny-dep!=1.2.4,<2; python_version >= '3'",
            "absent; sys_platform == 'win32'",
            "tiny-extra; extra == 'more'",
        ],
        extras=["more"],
        entry_points="[console_scripts]\ntiny-pure = tiny_pure.tool:main\n",
    )
    make_wheel(
        folder,
        "tiny-binary",
        "3.1+local.7",
        tag=f"{ABI}-{ABI}-{PLATFORM}",
        files={
            "tiny_binary/__init__.py": "from tiny_dep import VALUE\n\n\ndef main():\n    print(VALUE + 1)\n",
            "tiny_binary-3.1+local.7.data/scripts/tiny-sh": "#!/bin/sh\necho shell\n",
            "tiny_binary-3.1+local.7.data/scripts/tiny-py": "#!python\nimport sys\nprint(sys.executable)\n",
            "tiny_binary-3.1+local.7.data/headers/tiny.h": "#define TINY 1\n",
            "tiny_binary-3.1+local.7.data/purelib/tiny_purelib.py": "",
            "tiny_binary-3.1+local.7.data/platlib/tiny_platlib.py": "",
        },
        requires=["Tiny.Pure[more] >= 1"],
        entry_points="[console_scripts]\ntiny-binary = tiny_binary:main\n",
    )


def only_see(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Let pip see one folder of wheels and nothing else."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", folder.as_uri())


def variant(accelerator: str = "cpu", torch: str = "2.*") -> Variant:
    return Variant(
        name="wheels-test",
        python=MINOR,
        accelerator=accelerator,
        torch=torch,
        source="wheels",
        platforms=("linux-64",),
    )


def link(channel: Path, prefix: Path, cache: Path, *specs: str) -> list[str]:
    """Solve over the channel and link into `prefix`, in a process of its own; name-version-build of each."""
    done = subprocess.run(
        [sys.executable, str(LINK), str(channel), str(prefix), str(cache), *specs],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def run(*command: str | Path, **environment: str) -> str:
    """What a command says; it must succeed."""
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@dataclass(frozen=True, kw_only=True)
class Made:
    """A channel made from a folder of wheels, and the environment linked from it."""

    shelf: Path
    cache: Path
    channel: Path
    prefix: Path
    records: tuple[str, ...]


class Site:
    """A web server on loopback that has an index or a listing of wheels; `log` is what was asked of it.

    Parts of files are given, as of any real server of wheels, unless `whole`.
    """

    def __init__(self, *, whole: bool = False) -> None:
        self.files: dict[str, bytes] = {}
        self.log: list[tuple[str, str]] = []
        self.whole = whole
        handler = type("Handler", (_Handler,), {"site": self})
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def add(
        self, folder: str, *wheels: Path, hashes: bool = True, links: str = "", keep: bool = True
    ) -> None:
        """Put wheels below a folder, with a page for each project; `links` is the site they lead to."""
        for wheel in wheels:
            name = quote(wheel.name)
            digest = f"#sha256={hashlib.sha256(wheel.read_bytes()).hexdigest()}" if hashes else ""
            page = f"{folder}/{wheel.name.split('-')[0].replace('_', '-')}/"
            link = f'<a href="{links}/{folder}/{name}{digest}">{wheel.name}</a>\n'
            self.files[page] = self.files.get(page, b"") + link.encode()
            if keep:
                self.files[f"{folder}/{wheel.name}"] = wheel.read_bytes()

    def listing(self, folder: str, *wheels: Path) -> None:
        """One flat page of files, without hashes."""
        names = [wheel.name for wheel in wheels]
        self.files[f"{folder}/"] = "".join(f'<a href="{quote(name)}">{name}</a>\n' for name in names).encode()
        self.files |= {f"{folder}/{wheel.name}": wheel.read_bytes() for wheel in wheels}

    def got(self, ending: str) -> int:
        """How many bytes of files of that ending were given."""
        return sum(int(size) for path, size in self.log if path.endswith(ending))

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(http.server.BaseHTTPRequestHandler):
    site: Site

    def log_message(self, *_args: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = unquote(self.path).lstrip("/")
        raw = self.site.files.get(path)
        status, headers = 200, {}
        if raw is None:
            status, raw = 404, b"<html>nothing here</html>"
        elif not self.site.whole:
            headers["Accept-Ranges"] = "bytes"
            first, dash, last = self.headers.get("Range", "").removeprefix("bytes=").partition("-")
            if dash:
                start = int(first) if first else len(raw) - int(last)
                end = int(last) + 1 if first and last else len(raw)
                headers["Content-Range"] = f"bytes {start}-{min(end, len(raw)) - 1}/{len(raw)}"
                status, raw = 206, raw[start:end]
        self.send_response(status)
        self.send_header("Content-Length", str(len(raw)))
        self.send_header("Content-Type", "text/html" if path.endswith("/") else "application/zip")
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.site.log.append((path, str(len(raw))))
            with contextlib.suppress(OSError):
                self.wfile.write(raw)


@contextlib.contextmanager
def site(*, whole: bool = False) -> Iterator[Site]:
    made = Site(whole=whole)
    try:
        yield made
    finally:
        made.close()
