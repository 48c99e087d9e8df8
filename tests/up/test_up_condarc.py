"""The user's own .condarc, end to end: its server is asked, its mistakes are told, its secrets stay there."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from small_project import VARIANT, Project, write_mirror

TOKEN, PASSWORD = "tk-5f2c9a", "pw-81d3e7"
SIGNED = "Basic " + base64.b64encode(f"me:{PASSWORD}".encode()).decode()
NOWHERE = {"HTTPS_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1", "ENVKIT_MIRROR": ""}
"""Every host but the one of the .condarc is behind a proxy that is not there."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Any]:
    """A private server: it answers to whoever knows the token and the password."""

    class Handler(SimpleHTTPRequestHandler):
        asked: ClassVar[list[str]] = []

        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments, directory=str(tmp_path / "mirror"))

        def log_message(self, *_arguments: object) -> None:
            pass

        def do_GET(self) -> None:
            self.asked.append(self.path)
            if self.headers.get("Authorization") != SIGNED or not self.path.startswith(f"/t/{TOKEN}/"):
                self.send_error(403)
                return
            self.path = self.path.removeprefix(f"/t/{TOKEN}")
            super().do_GET()

    made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=made.serve_forever, args=(0.02,), daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


def test_a_private_server_of_a_condarc(server: Any, tmp_path: Path) -> None:
    mirror = write_mirror(tmp_path / "mirror")
    by_file = Project(tmp_path / "one", f"file://{mirror}")
    by_file.ok("lock", VARIANT)
    project = Project(tmp_path / "two", "auto")
    home = Path(project.environ["HOME"])
    port = server.server_address[1]
    (home / ".condarc").write_text(
        f"channels:\n  - defaults\nchannel_alias: http://me:{PASSWORD}@127.0.0.1:{port}/t/{TOKEN}\n"
    )
    locked = project.call("lock", VARIANT, **NOWHERE)
    assert locked.code == 0, locked.err
    installed = project.call("install", VARIANT, **NOWHERE)
    assert installed.code == 0, installed.err
    assert server.RequestHandlerClass.asked
    assert locked.err.count(f"{home}/.condarc:2: ") == locked.err.count(f"{home}/.condarc:3: ") == 1
    assert project.lock.read_bytes() == by_file.lock.read_bytes()
    listed = project.call("mirrors", **NOWHERE)
    assert f"127.0.0.1:{port} (from .condarc)" in listed.out
    said = "".join(done.out + done.err for done in (locked, installed, listed))
    for secret in (TOKEN, PASSWORD):
        assert secret not in said
        for path in (*project.root.rglob("*"), *project.home.rglob("*")):
            if path.is_file() and not path.is_symlink():
                assert secret.encode() not in path.read_bytes(), path
    records = [path.read_text() for path in (project.prefix() / "conda-meta").glob("*.json")]
    assert records
    assert all('"https://conda.anaconda.org/' in record for record in records)


def test_a_server_that_refuses_is_named_without_its_secrets(server: Any, tmp_path: Path) -> None:
    write_mirror(tmp_path / "mirror")
    project = Project(tmp_path / "two", "auto")
    port = server.server_address[1]
    (Path(project.environ["HOME"]) / ".condarc").write_text(
        f"channel_alias: http://me:wrong-{PASSWORD}@127.0.0.1:{port}/t/{TOKEN}\n"
    )
    error = project.fails("lock", VARIANT, code=3, **NOWHERE)
    assert f"127.0.0.1:{port}: HTTP 403" in error["message"]
    assert PASSWORD not in str(error)
    assert TOKEN not in str(error)
