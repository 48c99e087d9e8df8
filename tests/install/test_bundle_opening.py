"""Bundles that are not what was written are refused before anything is written, in words."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import tarfile

import pytest
from smallbundle import (
    KINDS,
    call,
    digest,
    members,
    mirror_and_lock,
    pip_sees,
    snapshot,
    tar_of,
    write_lock,
    write_shelf,
)
from tinychannel import PLATFORM, TinyPackage, member, write_channel

from envkit import fetch, lock
from envkit.errors import InputError
from envkit.install.bundle import bundle, opened


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """A bundle."""
    folder = tmp_path_factory.mktemp("good")
    mirror, path = mirror_and_lock(folder)
    shelf = write_shelf(folder / "wheels", real=False)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in pip_sees(shelf).items():
            patch.setenv(name, value)
        made = bundle(
            lock.read_lock(path), folder / "good.tar", name="tiny", platform=PLATFORM, cache=folder / "cache",
            routes=fetch.routes(mirror.as_uri(), only=True),
        )  # fmt: skip
    return made.path


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("ENVKIT_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("ENVKIT_CACHE", raising=False)
    return tmp_path / "home"


def _swap(raw):
    rows = members(raw)
    rows[2], rows[3] = rows[3], rows[2]
    return tar_of(rows)


def _insert(header, content=b"", place=3):
    def edit(raw):
        rows = members(raw)
        rows.insert(place, (header, content))
        return tar_of(rows)

    return edit


def _replace(header, place=2):
    def edit(raw):
        rows = members(raw)
        rows[place] = (header, b"")
        return tar_of(rows)

    return edit


def _twice(raw):
    rows = members(raw)
    return tar_of([*rows[:3], rows[2], *rows[3:]])


def _said(change):
    """bundle.json says something else, and all the rest is as it says."""

    def edit(raw):
        rows = members(raw)
        document = json.loads(rows[0][1])
        change(document)
        rows[0] = (rows[0][0], _written(document))
        return tar_of(rows)

    return edit


def _written(document):
    return json.dumps(document, indent=1, ensure_ascii=False).encode() + b"\n"


def _set(**values):
    return _said(lambda document: document.update(values))


def _manifest(content):
    def edit(raw):
        rows = members(raw)
        return tar_of([(rows[0][0], content), *rows[1:]])

    return edit


def _row(**values):
    return _said(lambda document: document["members"][0].update(values))


def _flip(place):
    def edit(raw):
        at = place(raw) if callable(place) else place
        return raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :]

    return edit


def _renamed(path):
    """A member is called otherwise, in bundle.json and in the tar."""

    def edit(raw):
        rows = members(raw)
        document = json.loads(rows[0][1])
        document["members"][0]["path"] = rows[1][0].name = path
        rows[0] = (rows[0][0], _written(document))
        return tar_of(rows)

    return edit


def _huge_header(raw):
    info = tarfile.TarInfo("bundle.json")
    info.size = 1 << 40
    return info.tobuf(tarfile.GNU_FORMAT) + raw[512:]


FAULTS = {
    "empty": (lambda raw: b"", "no bundle"),
    "no tar": (lambda raw: b"hello\n" * 1000, "no bundle"),
    "zeros": (lambda raw: bytes(100_000), "no bundle"),
    "another tar": (_insert(tarfile.TarInfo("first"), place=0), "first member"),
    "gzip": (lambda raw: gzip.compress(raw), "compressed"),
    "bzip2": (lambda raw: bz2.compress(raw), "compressed"),
    "xz": (lambda raw: lzma.compress(raw), "compressed"),
    "cut in the first header": (lambda raw: raw[:100], "no bundle"),
    "cut in bundle.json": (lambda raw: raw[:900], "cut off"),
    "cut in the middle": (lambda raw: raw[: len(raw) // 2], "cut off"),
    "cut before its end": (lambda raw: raw[:-1024], "cut off"),
    "one byte short": (lambda raw: raw[:-1], "cut off"),
    "padded with zeros": (lambda raw: raw + bytes(512), "bytes too many"),
    "padded with more": (lambda raw: raw + b"x", "bytes too many"),
    "end changed": (_flip(lambda raw: len(raw) - 1), "not as it was written"),
    "bundle.json changed": (_flip(520), "not sound"),
    "a header changed": (_flip(lambda raw: raw.index(b"conda-forge/", 512 * 10)), "should be"),
    "an archive changed": (_flip(lambda raw: raw.index(b"PK\x03\x04") + 60), "damaged"),
    "the lock changed": (_flip(lambda raw: raw.index(b"version: 1\nmetadata")), "damaged"),
    "swapped": (_swap, "stands where"),
    "a member twice": (_twice, "bytes too many|stands where"),
    "a member not listed": (_insert(tarfile.TarInfo("evil"), b"x"), "bytes too many|stands where"),
    "a link": (_replace(member("conda-forge/x", tarfile.SYMTYPE, "/etc/passwd")), "cut off|link"),
    "a hard link": (_insert(member("x", tarfile.LNKTYPE, "/etc/passwd")), "bytes too many|link"),
    "a device": (_insert(member("x", tarfile.CHRTYPE)), "bytes too many|no plain file"),
    "a path that leads out": (_renamed("../evil"), "cannot be the path"),
    "an absolute path": (_renamed("/tmp/evil"), "cannot be the path"),
    "a path with dots": (_renamed("a/./b"), "cannot be the path"),
    "a path with a newline": (_renamed("a\nb"), "cannot be the path"),
    "bundle.json huge": (_huge_header, "larger than"),
    "bundle.json deep": (_manifest(b"[" * 200_000), "no JSON"),
    "bundle.json deep mapping": (_manifest(b'{"a":' * 200_000), "no JSON"),
    "bundle.json a list": (_manifest(b"[]"), "no JSON object"),
    "bundle.json not UTF-8": (_manifest(b"\xff\xfe{}"), "no JSON"),
    "bundle.json with a long number": (_manifest(b'{"schema": ' + b"9" * 10**6 + b"}"), "JSON|schema"),
    "another schema": (_set(schema=2), "schema"),
    "schema true": (_set(schema=True), "schema"),
    "an unknown key": (_set(more=1), "keys"),
    "another platform": (_set(platform="linux-riscv64"), "is for linux-riscv64"),
    "a platform that is none": (_set(platform="../x"), "no platform"),
    "a name that is none": (_set(name="../x"), "cannot be the name"),
    "a size that is none": (_row(size=-1), "no size"),
    "a size without end": (_row(size=1 << 70), "no size"),
    "a size too large": (_row(size=1 << 61), "cut off"),
    "a sha256 that is none": (_row(sha256="x"), "no sha256"),
    "a sha256 that differs": (_row(sha256="0" * 64), "damaged"),
    "members that are none": (_set(members=[1]), "a member must have"),
    "no members": (_set(members=[]), "does not list"),
    "members no list": (_set(members={}), "must be a list"),
    "written otherwise": (_manifest(b"{}"), "keys|not sound"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_refused_before_anything_is_written(fault, good, home, tmp_path):
    edit, words = FAULTS[fault]
    path = tmp_path / "bad.tar"
    path.write_bytes(edit(good.read_bytes()))
    with pytest.raises(InputError, match=words) as failed, opened(path):
        pytest.fail("it was opened")
    assert failed.value.hint
    assert len(str(failed.value)) < 600
    assert not home.exists()


def test_equal_size_insertions_are_named(good, home, tmp_path):
    """Where the length fits, what stands there is said."""
    rows = members(good.read_bytes())
    place = next(number for number, (info, _raw) in enumerate(rows) if info.name.endswith("start.py"))
    lost = rows[place][1]
    for header, words in (
        (member("evil", tarfile.SYMTYPE, "/etc"), "link 'evil'"),
        (member("evil", tarfile.FIFOTYPE), "no plain file"),
        (tarfile.TarInfo("other"), "'other' stands where"),
    ):
        filler = tarfile.TarInfo("filler")
        blocks = -(-len(lost) // 512) - 1
        changed = [*rows[:place], (header, b""), (filler, b"x" * (512 * blocks)), *rows[place + 1 :]]
        (tmp_path / "bad.tar").write_bytes(tar_of(changed))
        assert (tmp_path / "bad.tar").stat().st_size == good.stat().st_size
        with pytest.raises(InputError, match=words), opened(tmp_path / "bad.tar"):
            pytest.fail("it was opened")
    assert not home.exists()


def test_the_sha256_is_demanded(good, home):
    right = digest(good.read_bytes())
    with pytest.raises(InputError, match=right), opened(good, "0" * 64):
        pytest.fail("it was opened")
    assert not home.exists()
    with opened(good, right) as found:
        assert found.sha256 == right
        assert found.name == "tiny"


def test_an_unpacked_one_has_the_same_sha256(good, home, tmp_path):
    with tarfile.open(good) as tar:
        tar.extractall(tmp_path / "folder")
    (tmp_path / "folder" / "index.html").write_text("left by a web server")
    with opened(tmp_path / "folder", digest(good.read_bytes())) as found:
        assert found.root == tmp_path / "folder"
    assert not home.exists()


def _cut(file):
    file.write_bytes(file.read_bytes()[:-1])


def _other(file):
    file.write_bytes(b"x" * file.stat().st_size)


def _pipe(file):
    file.unlink()
    os.mkfifo(file)


@pytest.mark.parametrize("name", ["conda-forge/noarch/bar-1.0-0.conda", "conda-lock.yml", "bundle.json"])
@pytest.mark.parametrize("harm", [_cut, _other, _pipe, os.unlink, lambda file: file.chmod(0)])
def test_a_harmed_folder(good, home, tmp_path, name, harm):
    with tarfile.open(good) as tar:
        tar.extractall(tmp_path / "folder")
    harm(tmp_path / "folder" / name)
    if harm.__name__ == "<lambda>" and os.geteuid() == 0:
        pytest.skip("root reads everything")
    with pytest.raises(InputError) as failed, opened(tmp_path / "folder"):
        pytest.fail("it was opened")
    assert failed.value.hint
    assert not home.exists()


def test_a_folder_that_lacks_a_member(good, home, tmp_path):
    with tarfile.open(good) as tar:
        tar.extractall(tmp_path / "folder")
    (tmp_path / "folder" / "conda-lock.yml").unlink()
    with (
        pytest.raises(InputError, match=r"conda-lock\.yml is missing") as failed,
        opened(tmp_path / "folder"),
    ):
        pytest.fail("it was opened")
    assert "copy or unpack" in failed.value.hint
    assert failed.value.path == tmp_path / "folder"


@pytest.mark.parametrize("place", ["nothing.tar", ".", "pipe"])
def test_what_is_no_bundle_at_all(home, tmp_path, place):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError) as failed, opened(tmp_path / place):
        pytest.fail("it was opened")
    assert failed.value.hint


def _bundled(tmp_path, *packages, edit=lambda text: text):
    """A bundle whose inside is consistent, with a lock that was changed."""
    folder = tmp_path / "made"
    write_channel(folder / "mirror" / "conda-forge", *packages)
    path = write_lock(folder / "lock" / "conda-lock.yml", *(package.locked() for package in packages))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in pip_sees(write_shelf(folder / "wheels", real=False)).items():
            patch.setenv(name, value)
        made = bundle(
            lock.read_lock(path), folder / "good.tar", name="tiny", platform=PLATFORM, cache=folder / "cache",
            routes=fetch.routes((folder / "mirror").as_uri(), only=True),
        )  # fmt: skip
    rows = members(made.path.read_bytes())
    document = json.loads(rows[0][1])
    for number, (info, raw) in enumerate(rows):
        if info.name == "conda-lock.yml":
            changed = edit(raw.decode()).encode()
            rows[number] = (info, changed)
            document["members"][number - 1] |= {"sha256": digest(changed), "size": len(changed)}
    rows[0] = (rows[0][0], _written(document))
    path = tmp_path / "stranger.tar"
    path.write_bytes(tar_of(rows))
    return path


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda text: text.replace("name: bar", "name: ../../bar"), "package name|not"),
        (lambda text: text.replace("/noarch/bar-1.0-0.conda", "/noarch/bar-1.0-1.conda"), "not in it"),
        (lambda text: text.replace("    sha256:", "    sha512:", 1), "sha256"),
        (lambda text: text.replace("https://conda.anaconda.org/", "file:///etc/"), "not in it"),
        (lambda text: text.replace(KINDS[1].sha256, "a" * 64), "not the one that its lock names"),
        (lambda text: "{" * 50_000, "conda-lock.yml"),
        (lambda text: "", "conda-lock.yml"),
    ],
)
def test_a_strangers_lock_is_data(home, tmp_path, edit, words):
    path = _bundled(tmp_path, *KINDS, edit=edit)
    with pytest.raises(InputError, match=words) as failed, opened(path):
        pytest.fail("it was opened")
    assert failed.value.hint
    assert not home.exists()


def test_what_was_copied_goes(good, home):
    with opened(good) as found:
        assert found.root.is_relative_to(home / "cache" / "bundles")
        left = found.root.parent
        assert (found.root / "conda-forge" / "noarch" / "bar-1.0-0.conda").is_file()
    assert snapshot(home / "cache" / "bundles") == [".lock"]
    left.mkdir()  # as a killed run leaves it
    (left / "big").write_bytes(b"x")
    with opened(good), opened(good):
        assert not left.exists()
        assert len(snapshot(home / "cache" / "bundles")) > 3


def test_a_dry_run_copies_nothing(good, home):
    done = call(
        "install",
        "--from",
        str(good),
        "--dry-run",
        "--json",
        env={"ENVKIT_HOME": str(home), "HOME": str(home)},
    )
    assert done.returncode == 0, done.stderr
    assert not home.exists()
    plan = json.loads(done.stdout)["result"]
    assert len(plan["unpack"]) == len(KINDS)
    assert all(part["bytes"] for part in plan["unpack"])
    assert TinyPackage("foo").name in {part["name"] for part in plan["unpack"]}
