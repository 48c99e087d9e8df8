"""A foreign lock with canonical URLs is otherwise what it was, to the byte."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envkit.channels import pypi_files, table
from envkit.errors import InputError
from envkit.lock import canonicalise, read_lock

FORGE = "https://conda.anaconda.org/conda-forge"
SHIPPED = sorted((Path(__file__).parents[2] / "environments").glob("*/conda-lock.yml"))
TUNA = "https://mirrors.tuna.tsinghua.edu.cn/anaconda"
SHA, MD5 = "ab" * 32, "cd" * 16

LOCK = f"""\
# 来自清华镜像 {TUNA}/cloud/pytorch
version: 1
metadata:
  content_hash:
    linux-64: {SHA}
  channels:
  - url: {TUNA}/cloud/conda-forge   # the mirror
    used_env_vars: []
  - url: "{TUNA}/pkgs/main/"
    used_env_vars: []
  - url: https://conda.corp.example/team
    used_env_vars: []
  platforms:
  - linux-64
  sources:
  - https://mirrors.tuna.tsinghua.edu.cn/anaconda/cloud/not-a-channel
package:
- name: zlib
  version: 1.3.1
  manager: conda
  platform: linux-64
  dependencies: {{}}
  url: '{TUNA}/cloud/conda-forge/linux-64/zlib-1.3.1-hb9d3cd8_2.conda'
  hash:
    md5: {MD5}
    sha256: {SHA}
  category: main
  optional: false
- name: team-tool
  version: '1'
  manager: conda
  platform: linux-64
  dependencies: {{}}
  url: https://conda.corp.example/team/noarch/team-tool-1-0.conda
  hash: {{md5: {MD5}, sha256: {SHA}}}
  optional: false
- name: torch
  version: 2.3.0+cu121
  manager: pip
  platform: linux-64
  dependencies: {{}}
  url: https://mirror.nju.edu.cn/pytorch/whl/cu121/torch-2.3.0%2Bcu121-cp311-cp311-linux_x86_64.whl
  hash:
    sha256: {SHA}
  optional: false
"""


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_only_urls_and_channels_change(tmp_path: Path, ends: str, mark: str) -> None:
    written = mark + LOCK.replace("\n", ends)
    text, notes = canonicalise(write(tmp_path / "conda-lock.yml", written))
    wanted = (
        LOCK.replace(f"url: {TUNA}/cloud/conda-forge ", "url: conda-forge ")
        .replace(f'"{TUNA}/pkgs/main/"', '"pkgs/main"')
        .replace(f"'{TUNA}/cloud/conda-forge/linux-64", f"'{FORGE}/linux-64")
        .replace("https://mirror.nju.edu.cn/pytorch/whl", "https://download.pytorch.org/whl")
    )
    assert text == mark + wanted.replace("\n", ends)
    said = [str(note) for note in notes]
    assert "line 7: 2 × mirrors.tuna.tsinghua.edu.cn is now conda-forge" in said
    assert "line 9: 1 × mirrors.tuna.tsinghua.edu.cn is now pkgs/main" in said
    line = LOCK[: LOCK.index("https://mirror.nju")].count("\n") + 1
    assert f"line {line}: 1 × mirror.nju.edu.cn is now download.pytorch.org" in said
    assert [str(note) for note in notes if note.warning] == [
        "line 11: 2 × conda.corp.example is no host that envkit knows; kept as it is"
    ]
    again, _notes = canonicalise(write(tmp_path / "conda-lock.yml", text))
    assert again == text
    lock = read_lock(write(tmp_path / "conda-lock.yml", text))
    assert lock.channels == ("conda-forge", "pkgs/main", "https://conda.corp.example/team")
    assert {package.sha256 for package in lock.packages} == {SHA}


def test_an_own_server_is_known_from_the_condarc(tmp_path: Path) -> None:
    path = write(tmp_path / "conda-lock.yml", LOCK)
    text, notes = canonicalise(path, also={"https://conda.corp.example/team": f"{FORGE}"})
    assert "corp.example" not in text
    assert not any(note.warning for note in notes)


def test_other_locks(tmp_path: Path) -> None:
    explicit = (
        f"# from {TUNA}/cloud\n@EXPLICIT\n{TUNA}/cloud/conda-forge/noarch/a-1-0.conda#{MD5}\n"
        f"# pip x @ https://mirrors.aliyun.com/pypi/packages/a/x-1-py3-none-any.whl --hash=sha256:{SHA}\n"
    )
    text, _notes = canonicalise(write(tmp_path / "e.txt", explicit))
    assert text == explicit.replace(f"{TUNA}/cloud/conda-forge/", f"{FORGE}/").replace(
        "https://mirrors.aliyun.com/pypi/packages", pypi_files() or ""
    )
    pixi = (
        "version: 6\nenvironments:\n  default:\n    channels:\n"
        f"    - url: {TUNA}/cloud/conda-forge/\n    packages:\n      linux-64:\n"
        f"      - conda: {TUNA}/cloud/conda-forge/noarch/a-1-0.conda\n"
        f"packages:\n- conda: {TUNA}/cloud/conda-forge/noarch/a-1-0.conda\n  sha256: {SHA}\n"
    )
    text, _notes = canonicalise(write(tmp_path / "pixi.lock", pixi))
    assert text == pixi.replace(f"{TUNA}/cloud/conda-forge/", f"{FORGE}/")


@pytest.mark.parametrize("path", SHIPPED, ids=[path.parent.name for path in SHIPPED])
def test_our_own_locks_are_canonical(path: Path) -> None:
    text, notes = canonicalise(path)
    assert text == path.read_text()
    assert notes == ()


def test_a_lock_through_a_mirror_comes_back_as_it_was(tmp_path: Path) -> None:
    ours = SHIPPED[0].read_text()
    through = ours.replace("https://conda.anaconda.org/", "https://mirrors.bfsu.edu.cn/anaconda/cloud/")
    through = re.sub(
        r"^  - url: (\S+)$", r"  - url: https://mirrors.bfsu.edu.cn/anaconda/cloud/\1", through, flags=re.M
    )
    assert through.count("bfsu") > 10
    text, _notes = canonicalise(write(tmp_path / "conda-lock.yml", through))
    assert text == ours


def test_conda_lock_reads_the_result(tmp_path: Path) -> None:
    parse = pytest.importorskip("conda_lock.lockfile").parse_conda_lock_file
    text, _notes = canonicalise(write(tmp_path / "conda-lock.yml", LOCK))
    parsed = parse(write(tmp_path / "conda-lock.yml", text))
    assert [channel.url for channel in parsed.metadata.channels][:2] == ["conda-forge", "pkgs/main"]


@pytest.mark.parametrize("text", ["dependencies: [a]\n", "numpy\n", ""])
def test_what_is_no_lock_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError):
        canonicalise(write(tmp_path / "x.yml", text))


bases = st.sampled_from(
    [f"https://{base.place}" for base in table().bases] + ["https://h.example", "file:///x"]
)
tails = st.from_regex(r"(/[a-z%0-9.+ü-]{1,6}){0,4}", fullmatch=True)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(urls=st.lists(st.tuples(bases, tails), min_size=1, max_size=5), channels=st.lists(bases, max_size=3))
def test_twice_is_once(tmp_path: Path, urls: list[tuple[str, str]], channels: list[str]) -> None:
    lines = ["version: 1", "metadata:", "  channels:"]
    lines += [f"  - url: '{base}/conda-forge'\n    used_env_vars: []" for base in channels]
    lines += ["  platforms: [linux-64]", "package:"]
    lines += [f"- {{name: x, url: '{base}{tail}', hash: {{sha256: {SHA}}}}}" for base, tail in urls]
    once, notes = canonicalise(write(tmp_path / "conda-lock.yml", "\n".join(lines)))
    again, later = canonicalise(write(tmp_path / "conda-lock.yml", once))
    assert again == once
    assert [str(note) for note in later] == [str(note) for note in notes if note.warning]


def test_credentials_are_kept_but_told(tmp_path: Path) -> None:
    path = tmp_path / "conda-lock.yml"
    text = LOCK.replace("https://conda.corp.example", "https://u:hunter2@conda.corp.example")
    path.write_text(text.replace(f"'{TUNA}/cloud/conda-forge/", f"'{FORGE[:-12]}/t/hunter2/conda-forge/"))
    made, notes = canonicalise(path)
    assert "u:hunter2@conda.corp.example" in made
    said = "\n".join(str(note) for note in notes if note.warning)
    assert "2 × a user name, a password or a token for conda.corp.example" in said
    assert "1 × a user name, a password or a token for conda.anaconda.org" in said
    assert "hunter2" not in said


def test_what_is_no_url_is_not_taken_for_a_file(tmp_path: Path) -> None:
    path = tmp_path / "conda-lock.yml"
    path.write_text(LOCK.replace("https://conda.corp.example/team/noarch", "https://[::1/team/noarch"))
    _made, notes = canonicalise(path)
    said = "\n".join(map(str, notes))
    assert "1 × no URL that can be read" in said
    assert "a file of one machine" not in said
