"""A real web server on loopback whose answers can be made wrong, path by path."""

from __future__ import annotations

import hashlib
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote


@dataclass(frozen=True, kw_only=True)
class Fault:
    """How a server answers for one path instead of giving the file.

    `cut` sends that many bytes of the announced length, then closes; `hang` sends that many and falls
    silent; `drip` gives one byte every so many seconds, `flip` the right number of wrong bytes.
    `announce` is the length that is said instead of
    the true one, "" for none: then the connection's end is the body's. `times` faults, then health.
    """

    status: int = 200
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: int | None = None
    hang: int | None = None
    drip: float | None = None
    flip: bool = False
    announce: str | None = None
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
        self.connections = 0
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

    def use_tls(self, certificate: Path) -> None:
        """Speak TLS from now on, with the certificate and key in a file."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)

    def asked(self, ending: str = "", method: str = "GET") -> list[dict[str, str]]:
        """The headers of each request whose path ends so."""
        return [headers for verb, path, headers in self.log if verb == method and path.endswith(ending)]

    def fault(self, path: str) -> Fault | None:
        with self._lock:
            found = self.faults.get(path)
            if found is None or found.times <= 0:
                return self.everywhere
            self.faults[path] = replace(found, times=found.times - 1)
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
    disable_nagle_algorithm = True

    def setup(self) -> None:
        self.owner.connections += 1
        super().setup()

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
        path = unquote(self.path.lstrip("/"))
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
            first, _dash, last = asked.removeprefix("bytes=").partition("-")
            start, end = int(first), min(len(content), int(last) + 1 if last else len(content))
            if start >= len(content):
                self._send(416, b"", {}, body)
                return
            headers = {"Content-Range": f"bytes {start}-{end - 1}/{len(content)}"}
            self._send(206, content[start:end], {**headers, **(fault.headers if fault else {})}, body, fault)
            return
        self._send(200, content, {"ETag": tag, **(fault.headers if fault else {})}, body, fault)

    def _send(
        self, status: int, content: bytes, headers: Mapping[str, str], body: bool, fault: Fault | None = None
    ) -> None:
        self.send_response(status)
        length = str(len(content)) if fault is None or fault.announce is None else fault.announce
        if length == "":
            self.close_connection = True
        elif status != 304:
            self.send_header("Content-Length", length)
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
        elif fault is not None and fault.drip is not None:
            for place in range(len(content)):
                self.wfile.write(content[place : place + 1])
                if self.owner.closing.wait(fault.drip):
                    break
            self.close_connection = True
        elif fault is not None and fault.cut is not None:
            self.wfile.write(content[: fault.cut])
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
        else:
            self.wfile.write(content)
