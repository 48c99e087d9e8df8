"""Small real things for the tests of fetch: a loopback server with faults, tiny packages, tiny channels."""

from __future__ import annotations

import bz2
import hashlib
import io
import json
import socket
import tarfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import zstandard
from envkit.fetch import Patience, Routes, Session
from envkit.fetch.routes import routes as make_routes
from envkit.model import Package
from envkit.progress import Observer

# --- tiny packages and channels -------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class TinyPackage:
    """A real archive of a few files, and the lock's view of it."""

    name: str
    version: str
    build: str
    subdir: str
    ending: str
    content: bytes

    @property
    def file(self) -> str:
        return f"{self.stem}{self.ending}"

    @property
    def stem(self) -> str:
        return f"{self.name}-{self.version}-{self.build}"

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    @property
    def record(self) -> dict[str, object]:
        return {
            "name": self.name,
            "version": self.version,
            "build": self.build,
            "build_number": 0,
            "depends": [],
            "subdir": self.subdir,
            "noarch": "generic" if self.subdir == "noarch" else None,
            "sha256": self.sha256,
            "md5": hashlib.md5(self.content).hexdigest(),
            "size": len(self.content),
        }

    def locked(self, channel: str = "https://conda.anaconda.org/conda-forge", **changes: str) -> Package:
        values = {
            "name": self.name,
            "version": self.version,
            "manager": "conda",
            "platform": "linux-64",
            "url": f"{channel}/{self.subdir}/{self.file}",
            "sha256": self.sha256,
        }
        return Package(**{**values, **changes})  # type: ignore[arg-type]


def tiny_package(
    name: str = "foo",
    version: str = "1.0",
    build: str = "0",
    *,
    subdir: str = "noarch",
    ending: str = ".conda",
    files: Mapping[str, bytes] | None = None,
    members: tuple[tarfile.TarInfo, ...] = (),
    listed: Mapping[str, bytes] | None = None,
    info: Mapping[str, bytes] | None = None,
) -> TinyPackage:
    """A package of `files`; `members` are added to the archive as they are, `listed` is what paths.json says."""
    files = {f"share/{name}.txt": f"this is {name}\n".encode()} if files is None else files
    index = {
        "name": name,
        "version": version,
        "build": build,
        "build_number": 0,
        "depends": [],
        "subdir": subdir,
        **({"noarch": "generic"} if subdir == "noarch" else {}),
    }
    paths = [
        {
            "_path": path,
            "path_type": "hardlink",
            "sha256": hashlib.sha256(content).hexdigest(),
            "size_in_bytes": len(content),
        }
        for path, content in (files if listed is None else listed).items()
    ]
    about = {
        "info/index.json": json.dumps(index).encode(),
        "info/paths.json": json.dumps({"paths": paths, "paths_version": 1}).encode(),
        **(info or {}),
    }
    stem = f"{name}-{version}-{build}"
    if ending == ".tar.bz2":
        content = bz2.compress(_tar({**files, **about}, members))
    else:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr("metadata.json", '{"conda_pkg_format_version": 2}')
            archive.writestr(f"pkg-{stem}.tar.zst", zstandard.compress(_tar(files, members)))
            archive.writestr(f"info-{stem}.tar.zst", zstandard.compress(_tar(about, ())))
        content = buffer.getvalue()
    return TinyPackage(name=name, version=version, build=build, subdir=subdir, ending=ending, content=content)


def member(
    name: str, kind: bytes = tarfile.REGTYPE, link: str = "", mode: int = 0o644
) -> tarfile.TarInfo:
    """A member of an archive that is nothing but its header."""
    found = tarfile.TarInfo(name)
    found.type, found.linkname, found.mode = kind, link, mode
    return found


def _tar(files: Mapping[str, bytes], members: tuple[tarfile.TarInfo, ...]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
        for entry in members:
            archive.addfile(entry)
    return buffer.getvalue()


def index_of(*packages: TinyPackage, subdir: str) -> bytes:
    """The repodata.json of one subdir."""
    tables: dict[str, dict[str, object]] = {"packages": {}, "packages.conda": {}}
    for package in packages:
        if package.subdir == subdir:
            table = "packages.conda" if package.ending == ".conda" else "packages"
            tables[table][package.file] = package.record
    return json.dumps({"info": {"subdir": subdir}, **tables}).encode()


def channel_files(
    *packages: TinyPackage, subdirs: tuple[str, ...] = ("linux-64", "noarch"), channel: str = "conda-forge"
) -> dict[str, bytes]:
    """A whole channel, as paths and contents."""
    files = {f"{channel}/{package.subdir}/{package.file}": package.content for package in packages}
    for subdir in subdirs:
        index = index_of(*packages, subdir=subdir)
        files[f"{channel}/{subdir}/repodata.json"] = index
        files[f"{channel}/{subdir}/repodata.json.zst"] = zstandard.compress(index)
    return files


def write_tree(root: Path, files: Mapping[str, bytes]) -> Path:
    """Files below a folder."""
    for path, content in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    return root


# --- a server with faults -------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Fault:
    """How a server answers for one path instead of giving the file.

    `cut` sends that many bytes of the announced length, then closes; `hang` sends that many and falls
    silent; `flip` gives the right number of wrong bytes. `times` faults, then health.
    """

    status: int = 200
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: int | None = None
    hang: int | None = None
    flip: bool = False
    no_range: bool = False
    times: int = 10**6


class Server:
    """A web server on loopback that serves files from memory, with faults on demand, and keeps a log."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.faults: dict[str, Fault] = {}
        self.everywhere: Fault | None = None
        self.log: list[tuple[str, str, dict[str, str]]] = []
        self.busy = 0
        self.most_busy = 0
        self.delay = 0.0
        self.closing = threading.Event()
        self._lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"owner": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self._server.server_address[1]}"

    @property
    def url(self) -> str:
        return f"http://{self.host}"

    def asked(self, ending: str = "", method: str = "GET") -> list[dict[str, str]]:
        """The headers of each request whose path ends so."""
        return [headers for verb, path, headers in self.log if verb == method and path.endswith(ending)]

    def fault(self, path: str) -> Fault | None:
        with self._lock:
            found = self.faults.get(path, self.everywhere)
            if found is None or found.times <= 0:
                return None
            if path in self.faults:
                self.faults[path] = Fault(**{**vars(found), "times": found.times - 1})
            return found

    def enter(self) -> None:
        with self._lock:
            self.busy += 1
            self.most_busy = max(self.most_busy, self.busy)

    def leave(self) -> None:
        with self._lock:
            self.busy -= 1

    def close(self) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    owner: Server
    protocol_version = "HTTP/1.1"

    def log_message(self, *_args: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self.owner.enter()
        try:
            time.sleep(self.owner.delay)
            self._answer(body=True)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        finally:
            self.owner.leave()

    def _answer(self, *, body: bool) -> None:
        path = self.path.lstrip("/")
        self.owner.log.append((self.command, path, dict(self.headers)))
        fault = self.owner.fault(path)
        content = self.owner.files.get(path)
        if fault is not None and (fault.status != 200 or fault.body is not None):
            self._send(fault.status, fault.body or b"", fault.headers, body)
            return
        if content is None:
            self._send(404, b"<html>no such file</html>", {}, body)
            return
        if fault is not None and fault.flip:
            content = content[:-1] + bytes([content[-1] ^ 0xFF])
        tag = f'"{hashlib.sha256(content).hexdigest()[:8]}"'
        if self.headers.get("If-None-Match") == tag:
            self._send(304, b"", {"ETag": tag}, False)
            return
        asked = self.headers.get("Range", "")
        if asked and not (fault is not None and fault.no_range):
            start = int(asked.removeprefix("bytes=").rstrip("-"))
            if start >= len(content):
                self._send(416, b"", {}, body)
                return
            headers = {"Content-Range": f"bytes {start}-{len(content) - 1}/{len(content)}"}
            self._send(206, content[start:], headers, body, fault)
            return
        self._send(200, content, {"ETag": tag, **(fault.headers if fault else {})}, body, fault)

    def _send(
        self, status: int, content: bytes, headers: Mapping[str, str], body: bool, fault: Fault | None = None
    ) -> None:
        self.send_response(status)
        if status != 304:
            self.send_header("Content-Length", str(len(content)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if not body:
            return
        if fault is not None and fault.hang is not None:
            self.wfile.write(content[: fault.hang])
            self.wfile.flush()
            self.owner.closing.wait(20)
            self.close_connection = True
        elif fault is not None and fault.cut is not None:
            self.wfile.write(content[: fault.cut])
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
        else:
            self.wfile.write(content)


# --- fixtures -------------------------------------------------------------------------------------


class Notes(Observer):
    """An observer that keeps what it hears."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.bytes = 0
        self.done = 0

    def note(self, text: str) -> None:
        self.lines.append(text)

    def advance(self, task: str, amount: int = 1) -> None:
        if task == "downloading":
            self.bytes += amount
        else:
            self.done += amount

    def about(self, *words: str) -> list[str]:
        """The lines with all these words."""
        return [line for line in self.lines if all(word in line for word in words)]


IMPATIENT = Patience(connect=0.5, stall=0.6, rounds=2, pause=0.02, longest_wait=0.2)


@pytest.fixture(autouse=True)
def _plain_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No proxy and no credentials of the machine that runs the tests."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("NETRC", str(tmp_path / "no-netrc"))


@pytest.fixture
def notes() -> Notes:
    return Notes()


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    """Start a server with these files: `serve({"conda-forge/noarch/x.conda": b"..."})`."""
    started: list[Server] = []

    def start(files: Mapping[str, bytes] | None = None, **faults: Fault) -> Server:
        server = Server()
        server.files.update(files or {})
        started.append(server)
        return server

    yield start
    for server in started:
        server.close()


@pytest.fixture
def dead_url() -> str:
    """The URL of a port on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


def impatient(*urls: str, only: bool = True, patience: Patience = IMPATIENT) -> Routes:
    """Routes over these mirrors and nothing else, that give up within a second or two."""
    made = make_routes(",".join(urls), only=only)
    return Routes(
        choice=made.choice, transports=made.transports, only=only, session=Session(patience=patience)
    )
