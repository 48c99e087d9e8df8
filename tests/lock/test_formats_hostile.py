"""Files made to hurt: secrets that must not be repeated, names that are paths, lines without end."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from envkit.channels import channel_name, shown_text
from envkit.errors import InputError
from envkit.lock.formats import read_spec

SECRET = "hunter2"
USER = f"https://u:{SECRET}@repo.example"
SHA = "b" * 64
CLOUD = "https://conda.anaconda.org"
ARCHIVE = f"{CLOUD}/conda-forge/linux-64/zlib-1.3.1-hb9d3cd8_2.conda"
PIXI = """\
version: 6
environments:
  default:
    channels:
    - url: https://conda.anaconda.org/conda-forge/
    packages:
      {platform}:
      - {kind}: {url}
packages:
- {kind}: {url}
  sha256: {sha}
{more}"""


def pixi(url: str = ARCHIVE, *, kind: str = "conda", platform: str = "linux-64", more: str = "") -> str:
    return PIXI.format(url=url, kind=kind, platform=platform, sha=SHA, more=more)


def refused(folder: Path, text: str, name: str) -> InputError:
    path = folder / name
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_spec(path, python="3.11", platform="linux-64")
    return caught.value


@pytest.mark.parametrize(
    "line",
    [
        f"foo bar {USER}/",
        f"foo @ {USER}/foo-1.zip ; bad marker",
        f"-e git+{USER}/foo#egg=foo",
        f"-r {USER}/r.txt",
        f"-c {USER}/r.txt",
        f"--foo={USER}/r.txt",
        f"foo @ {USER}/y.whl#sha256={SHA}\nfoo @ {USER}/z.whl#sha256={SHA}",
        f"foo @ https://repo.example/t/{SECRET}/foo-1.zip",
    ],
)
def test_requirements_are_refused_without_their_secrets(tmp_path: Path, line: str) -> None:
    refusal = refused(tmp_path, f"{line}\n", "requirements.txt")
    assert SECRET not in f"{refusal}{refusal.hint}"
    assert refusal.line


@pytest.mark.parametrize(
    "line",
    [
        f"{USER}/conda/linux-64/zlib-1.3.1-0.conda#{SHA[:40]}",
        f"{USER}/conda/linux-64/zlib.conda#{SHA}",
        f"{ARCHIVE}#{SHA}\n# pip foo @ {USER}/foo.whl --hash=sha256:{SHA}",
    ],
)
def test_explicit_files_are_refused_without_their_secrets(tmp_path: Path, line: str) -> None:
    refusal = refused(tmp_path, f"@EXPLICIT\n{line}\n", "explicit.txt")
    assert SECRET not in f"{refusal}{refusal.hint}"
    assert "repo.example" in str(refusal) or "x.example" in str(refusal)


@pytest.mark.parametrize("kind", ["conda", "pypi"])
def test_a_pixi_lock_is_refused_without_its_secrets(tmp_path: Path, kind: str) -> None:
    refusal = refused(tmp_path, pixi(f"{USER}/x.zip", kind=kind), "pixi.lock")
    assert SECRET not in f"{refusal}{refusal.hint}"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("explicit.txt", f"@EXPLICIT\n{USER}/conda/linux-64/zlib-1.3.1-0.conda#{SHA}\n"),
        ("pixi.lock", pixi(f"{USER}/conda/linux-64/zlib-1.3.1-0.conda")),
        ("environment.yml", f"channels: ['{USER}/conda']\ndependencies: [python]\n"),
        ("environment.yml", f"channels: [conda-forge]\ndependencies: ['{USER}/conda::python']\n"),
    ],
)
def test_a_password_never_comes_into_a_lock(tmp_path: Path, name: str, text: str) -> None:
    refusal = refused(tmp_path, text, name)
    assert refusal.line
    assert "machine repo.example" in refusal.hint
    assert SECRET not in f"{refusal}{refusal.hint}"


def test_a_token_is_warned_of_and_not_repeated(tmp_path: Path) -> None:
    path = tmp_path / "environment.yml"
    path.write_text(f"channels: ['{CLOUD}/t/{SECRET}/mine']\ndependencies: [python]\n")
    notes = [str(note) for note in read_spec(path).notes if note.warning]
    assert any("the token in" in note and f"{CLOUD}/mine" in note for note in notes)
    assert not any(SECRET in note for note in notes)


def test_a_token_is_no_part_of_a_channels_name() -> None:
    assert channel_name(f"{CLOUD}/t/{SECRET}/mine") is None
    assert shown_text(f"{CLOUD}/t/{SECRET}/mine and {CLOUD}/t/{SECRET}") == f"{CLOUD}/mine and {CLOUD}"


@pytest.mark.parametrize(
    "url", ["https//u:hunter2@x.example/", "htps:/u:hunter2@x.example", "u:hunter2@x.example"]
)
def test_what_is_nearly_a_url_is_masked_as_well(url: str) -> None:
    assert SECRET not in shown_text(f"'{url}' is no index")
    assert "x.example" in shown_text(url)


def test_shown_text_leaves_harmless_text_alone() -> None:
    text = f"line 3: numpy >=1.2,<2 @ {ARCHIVE}#{SHA} is '{CLOUD}/conda-forge', 中文 C:\\x a@b.example"
    assert shown_text(text) == text


@pytest.mark.parametrize("endless", ["a", "a:", "a.", "a/", "a@", "://", "a://", "/t/"])
def test_showing_a_text_without_end_takes_no_time(endless: str) -> None:
    began = time.monotonic()
    assert len(shown_text(endless * 300_000 + " end")) < 300
    assert time.monotonic() - began < 3


@pytest.mark.parametrize("name", ["..", "../../x", "a/b", "é", "a..b"])
def test_a_pixi_package_whose_name_is_none(tmp_path: Path, name: str) -> None:
    refusal = refused(tmp_path, pixi(more=f"  name: {name}\n"), "pixi.lock")
    assert refusal.line == 10
    assert name in str(refusal)


def test_an_explicit_package_whose_name_is_none(tmp_path: Path) -> None:
    refusal = refused(tmp_path, f"@EXPLICIT\n{CLOUD}/conda-forge/linux-64/..-1.3.1-0.conda#{SHA}\n", "e.txt")
    assert refusal.line == 2


def test_platforms_that_are_paths(tmp_path: Path) -> None:
    assert "../x" in str(refused(tmp_path, pixi(platform="../x"), "pixi.lock"))
    text = f"# platform: ../../x\n@EXPLICIT\n{CLOUD}/conda-forge/noarch/zlib-1.3.1-0.conda#{SHA}\n"
    assert refused(tmp_path, text, "e.txt").line == 3


def test_an_explicit_file_that_contradicts_itself(tmp_path: Path) -> None:
    text = f"# platform: osx-64\n@EXPLICIT\n{ARCHIVE}#{SHA}\n"
    refusal = refused(tmp_path, text, "e.txt")
    assert refusal.line == 3
    assert "osx-64" in str(refusal)
    assert "linux-64" in str(refusal)


def test_a_pixi_lock_without_environments(tmp_path: Path) -> None:
    refusal = refused(tmp_path, "version: 6\nenvironments: {}\npackages: []\n", "pixi.lock")
    assert "no environment" in str(refusal)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("environment.yml", f"dependencies: ['{'a' * 1_000_000}']\n"),
        ("environment.yml", f"channels: ['{'a' * 1_000_000}']\ndependencies: [python]\n"),
        ("requirements.txt", f"foo{' ' * 300_000}x\n"),
        ("requirements.txt", f"{'a-' * 500_000}\n"),
        ("requirements.txt", f"--index-url {'a' * 500_000}\n"),
        ("explicit.txt", f"@EXPLICIT\n{CLOUD}/conda-forge/linux-64/{'a' * 1_000_000}\n"),
    ],
)
def test_entries_without_end(tmp_path: Path, name: str, text: str) -> None:
    began = time.monotonic()
    refusal = refused(tmp_path, text, name)
    assert time.monotonic() - began < 3
    assert len(str(refusal)) < 1000


def test_requirements_with_very_many_hashes_are_no_endless_line(tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    hashes = "".join(f" \\\n    --hash=sha256:{number:064x}" for number in range(300))
    path.write_text(f"numpy==1.26.4{hashes}\n")
    assert len(read_spec(path, python="3.11").hashes["numpy"]) == 300


def test_requirements_do_not_reach_other_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere.txt").write_text("requests\n")
    (tmp_path / "project" / "requirements").mkdir(parents=True)
    (tmp_path / "project" / "base.txt").write_text("numpy\n")
    folder = tmp_path / "project" / "requirements"
    (folder / "link.txt").symlink_to(tmp_path / "elsewhere.txt")
    monkeypatch.chdir(folder)
    assert "outside" in str(refused(folder, "-r ../../elsewhere.txt\n", "dev.txt"))
    assert "outside" in str(refused(folder, "-r link.txt\n", "dev.txt"))
    assert "outside" in str(refused(folder, "-r ../base.txt\n", "dev.txt"))
    monkeypatch.chdir(tmp_path / "project")
    (folder / "dev.txt").write_text("-r ../base.txt\n")
    assert "numpy" in read_spec(Path("requirements/dev.txt"), python="3.11").text


def test_a_device_without_end(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="too large"):
        read_spec(Path("/dev/zero"))


def test_a_file_that_comes_through_a_pipe() -> None:
    reading, writing = os.pipe()
    try:
        os.write(writing, b"channels: [conda-forge]\ndependencies: [python=3.11]\n")
        os.close(writing)
        assert read_spec(Path(f"/dev/fd/{reading}")).channels == ("conda-forge",)
    finally:
        os.close(reading)


def test_merge_keys_of_yaml_are_followed(tmp_path: Path) -> None:
    path = tmp_path / "environment.yml"
    path.write_text(
        "base: &base\n  channels: [nvidia]\n  dependencies: [numpy]\n<<: *base\ndependencies: [python=3.11]\n"
    )
    found = read_spec(path)
    assert found.channels == ("nvidia",)
    assert "numpy" not in found.text
