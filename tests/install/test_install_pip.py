"""The pip section: hashes required, scripts that start the final python, an honest RECORD."""

from __future__ import annotations

import base64
import csv
import functools
import hashlib
import http.server
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from envkit.channels import pypi_files
from envkit.errors import Error, InputError
from envkit.install import is_current, read_environment
from envkit.install.pip_section import shebang
from envkit.model import Package


def output(*command):
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    return subprocess.run(
        list(map(str, command)), capture_output=True, text=True, check=True, timeout=60, env=environ
    ).stdout.strip()


@pytest.mark.parametrize("folder", ["envs", "with space"])
def test_a_wheel_with_a_script(pip_channel, wheel, installer, tmp_path, monkeypatch, folder):
    monkeypatch.setenv("PIP_TARGET", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("PIP_REQUIRE_VIRTUALENV", "1")
    prefix = tmp_path / folder / "tiny"
    lock = pip_channel.lock(*pip_channel.packages, wheel)
    made = installer(lock, prefix)
    assert output(prefix / "bin" / "tiny-wheel") == "hello from a wheel"
    assert "No broken requirements" in output(made.python, "-m", "pip", "check")
    (info,) = prefix.glob("lib/python3*/site-packages/[Tt]iny_[Ww]heel-1.0.dist-info")
    rows = list(csv.reader((info / "RECORD").read_text().splitlines()))
    assert len(rows) > 5
    for name, digest, size in rows:
        raw = (info.parent / name).read_bytes()
        if digest:
            wanted = base64.urlsafe_b64encode(hashlib.sha256(raw).digest()).rstrip(b"=").decode()
            assert (digest, int(size)) == (f"sha256={wanted}", len(raw)), name
    text = [path for path in prefix.rglob("*") if path.is_file() and b"envkit-stage" in path.read_bytes()]
    assert text == []
    assert not (tmp_path / "elsewhere").exists()
    assert is_current(made, lock)
    (info / "METADATA").unlink()
    info.rename(info.with_name("gone"))
    assert not is_current(read_environment(str(prefix)), lock)


def test_a_wrong_hash(pip_channel, wheel, installer):
    wrong = replace(wheel, sha256="0" * 64)
    with pytest.raises(Error, match=r"pip section.*(?i:hash)") as caught:
        installer(pip_channel.lock(*pip_channel.packages, wrong))
    assert caught.value.code == 3
    assert not installer.prefix.exists()
    assert installer.beside() == []


@pytest.fixture
def index(wheel: Package, tmp_path: Path) -> Iterator[list[str]]:
    """A simple index with the wheel, on the loopback; what was asked of it, after its address."""
    page = tmp_path / "index" / "simple" / wheel.name
    page.mkdir(parents=True)
    file = Path(wheel.url.removeprefix("file://"))
    shutil.copy(file, page)
    (page / "index.html").write_text(f'<a href="{file.name}#sha256={wheel.sha256}">{file.name}</a>')
    asked: list[str] = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *words: object) -> None:
            asked.append(self.path)

    handler = functools.partial(Handler, directory=str(tmp_path / "index"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        asked.append(f"http://127.0.0.1:{server.server_port}/simple")
        yield asked
        server.shutdown()


def test_the_public_indexs_files_come_from_the_users_own_index(
    pip_channel, wheel, installer, index, monkeypatch
):
    monkeypatch.setenv("PIP_INDEX_URL", index[0])
    public = replace(wheel, url=f"{pypi_files()}/aa/bb/{'c' * 60}/Tiny_Wheel-1.0-py3-none-any.whl")
    made = installer(pip_channel.lock(*pip_channel.packages, public))
    assert output(made.prefix / "bin" / "tiny-wheel") == "hello from a wheel"
    assert any(path.endswith(".whl") for path in index[1:])


def test_what_the_users_own_index_has_not_comes_from_the_locks_address(
    pip_channel, wheel, installer, index, tmp_path, monkeypatch
):
    """Two addresses are tried, and the hash counts at both."""
    shutil.rmtree(tmp_path / "index" / "simple" / wheel.name)
    monkeypatch.setenv("PIP_INDEX_URL", index[0])
    monkeypatch.setattr("envkit.install.pip_section.is_pypi_file", lambda url: url == wheel.url)
    made = installer(pip_channel.lock(*pip_channel.packages, wheel))
    assert output(made.prefix / "bin" / "tiny-wheel") == "hello from a wheel"
    assert f"/simple/{wheel.name}/" in index


def test_an_address_with_options_in_it(pip_channel, wheel, installer):
    sly = replace(wheel, url=wheel.url + " --index-url=file:///elsewhere")
    with pytest.raises(InputError, match="blank"):
        installer(pip_channel.lock(*pip_channel.packages, sly))


def test_a_pip_section_without_pip(channel, wheel, installer):
    with pytest.raises(InputError, match="has a pip section but not pip"):
        installer(channel.lock(*channel.packages, wheel))


def test_shebangs():
    assert shebang("/env/bin/python") == "#!/env/bin/python\n"
    assert shebang("/my env/bin/python").startswith("#!/bin/sh\n'''exec' \"/my env/bin/python\"")
    assert shebang("/" + "l" * 130).startswith("#!/bin/sh\n")
