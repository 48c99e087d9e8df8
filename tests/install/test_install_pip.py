"""The pip section: hashes required, scripts that start the final python, an honest RECORD."""

from __future__ import annotations

import base64
import csv
import hashlib
import os
import subprocess
from dataclasses import replace

import pytest

from envkit.errors import Error, InputError
from envkit.install import is_current, read_environment
from envkit.install.pip_section import shebang


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
