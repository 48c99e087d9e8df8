"""The pip section: hashes required, scripts that start the final python, an honest RECORD."""

from __future__ import annotations

import base64
import csv
import functools
import hashlib
import http.server
import io
import json
import os
import shutil
import subprocess
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tinychannel import PLATFORM

from envkit import fetch
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
    with pytest.raises(Error, match="wrong sha256") as caught:
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
    public = replace(wheel, url=f"{pypi_files()}/aa/bb/{'c' * 60}/{wheel.file_name}")
    made = installer(pip_channel.lock(*pip_channel.packages, public))
    assert output(made.prefix / "bin" / "tiny-wheel") == "hello from a wheel"
    assert any(path.endswith(".whl") for path in index[1:])


def test_what_the_users_own_index_has_not_comes_from_the_locks_address(
    pip_channel, wheel, installer, index, tmp_path, monkeypatch
):
    """Two addresses are tried, and the hash counts at both."""
    shutil.rmtree(tmp_path / "index" / "simple" / wheel.name)
    monkeypatch.setenv("PIP_INDEX_URL", index[0])
    monkeypatch.setattr("envkit.install.own_index.is_pypi_file", lambda url: url == wheel.url)
    made = installer(pip_channel.lock(*pip_channel.packages, wheel))
    assert output(made.prefix / "bin" / "tiny-wheel") == "hello from a wheel"
    assert f"/simple/{wheel.name}/" in index
    assert list((installer.cache / "downloads").glob(".own-index-*")) == []


def test_no_index_is_asked_offline_or_where_only_chosen_mirrors_may_be(
    pip_channel, wheel, installer, index, tmp_path, monkeypatch
):
    installer(pip_channel.lock(*pip_channel.packages))
    monkeypatch.setenv("PIP_INDEX_URL", index[0])
    public = replace(wheel, url=f"{pypi_files()}/aa/bb/{'c' * 60}/{wheel.file_name}")
    lock = pip_channel.lock(*pip_channel.packages, public)
    for routes in (
        fetch.routes("official", offline=True),
        fetch.routes(f"file://{tmp_path}", only=True),
    ):
        with pytest.raises(Error, match=wheel.file_name):
            installer(lock, routes=routes)
    assert index[1:] == []


def test_an_address_with_options_in_it(pip_channel, wheel, installer):
    sly = replace(wheel, url=wheel.url + " --index-url=file:///elsewhere")
    with pytest.raises(Error, match="cannot be had"):
        installer(pip_channel.lock(*pip_channel.packages, sly))
    assert not installer.prefix.exists()


def test_a_pip_section_without_pip(channel, wheel, installer):
    with pytest.raises(InputError, match="has a pip section but not pip"):
        installer(channel.lock(*channel.packages, wheel))


def test_shebangs():
    assert shebang("/env/bin/python") == "#!/env/bin/python\n"
    assert shebang("/my env/bin/python").startswith("#!/bin/sh\n'''exec' \"/my env/bin/python\"")
    assert shebang("/" + "l" * 130).startswith("#!/bin/sh\n")


def test_the_pip_section_is_fetched_like_the_rest_and_then_needs_no_network(
    pip_channel, wheel, installer, server, tree_hash, tmp_path
):
    name = wheel.file_name
    server.files[name] = (tmp_path / name).read_bytes()
    far = replace(wheel, url=f"{server.url}/{name}")
    lock = pip_channel.lock(*pip_channel.packages, far)
    with pytest.raises(Error, match=server.host):
        installer(lock)  # a host that nobody chose
    assert server.log == []
    made = installer(lock, routes=fetch.routes("official", allow_hosts=[server.host]))
    assert len(server.asked(name)) == 1
    (origin,) = made.prefix.glob("lib/python3*/site-packages/*/direct_url.json")
    assert json.loads(origin.read_text()) == {
        "archive_info": {"hash": f"sha256={far.sha256}", "hashes": {"sha256": far.sha256}},
        "url": far.url,
    }
    first = tree_hash(made.prefix)
    installer(lock, routes=fetch.routes("official", offline=True))
    assert tree_hash(made.prefix) == first
    assert len(server.asked(name)) == 1
    (kept,) = (installer.cache / "pip-files" / far.sha256).iterdir()
    kept.write_bytes(kept.read_bytes() + b"changed")
    with pytest.raises(Error, match=name):  # hashed before it is used, and nobody may be asked for another
        installer(lock, routes=fetch.routes("official", offline=True))
    assert tree_hash(made.prefix) == first


BACKEND = """
import pathlib, zipfile
def build_wheel(folder, config_settings=None, metadata_directory=None):
    name = "sourced-1.0-py3-none-any.whl"
    info = "sourced-1.0.dist-info"
    with zipfile.ZipFile(pathlib.Path(folder) / name, "w") as wheel:
        wheel.writestr("sourced.py", "")
        wheel.writestr(info + "/METADATA", "Metadata-Version: 2.1\\nName: sourced\\nVersion: 1.0\\n")
        wheel.writestr(info + "/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(info + "/RECORD", "")
    return name
"""


@pytest.mark.parametrize("backend", ["its own", "one that is not there"])
def test_what_comes_as_source_is_built_with_what_is_there(pip_channel, installer, tmp_path, backend):
    file = tmp_path / "sourced-1.0.tar.gz"
    project = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    if backend != "its own":
        project = '[build-system]\nrequires = ["nowhere"]\nbuild-backend = "nowhere.backend"\n'
    files = {
        "pyproject.toml": project,
        "backend.py": BACKEND,
        "PKG-INFO": "Metadata-Version: 2.1\nName: sourced\nVersion: 1.0\n",
    }
    with tarfile.open(file, "w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(f"sourced-1.0/{name}")
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    sourced = Package(
        name="sourced", version="1.0", manager="pip", platform=PLATFORM, url=file.as_uri(),
        sha256=hashlib.sha256(file.read_bytes()).hexdigest(),
    )  # fmt: skip
    lock = pip_channel.lock(*pip_channel.packages, sourced)
    if backend == "its own":
        made = installer(lock)
        assert list(made.prefix.glob("lib/python3*/site-packages/sourced.py"))
    else:
        with pytest.raises(Error, match="pip could not install") as caught:
            installer(lock)
        assert "sourced come as source" in caught.value.hint
        assert not installer.prefix.exists()
