"""Locks of other tools, read and written: what goes out comes back the same, and other tools read it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envkit.channels import pypi_files, pypi_simple
from envkit.errors import InputError
from envkit.lock import parse_lock, read_lock
from envkit.lock.formats import Pinned, read_spec, to_lock, v1_text, write
from envkit.lock.formats.archives import build_number
from envkit.model import Lock, Package

FORGE = "https://conda.anaconda.org/conda-forge"
TUNA = "https://mirrors.tuna.tsinghua.edu.cn/anaconda/cloud/conda-forge"
WHEELS = "https://download.pytorch.org/whl"
SHIPPED = sorted((Path(__file__).parents[2] / "environments").glob("*/conda-lock.yml"))
SHA, MD5 = "ab" * 32, "cd" * 16
ZLIB, TZDATA = "zlib-1.3.1-hb9d3cd8_2.conda", "tzdata-2024a-h0c530f3_0.conda"
NUMPY = "numpy-1.26.4-cp311-cp311-linux_x86_64.whl"


@pytest.fixture
def put(tmp_path: Path) -> Callable[[str, str], Path]:
    def put(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return put


def rows(lock: Lock, *, depends: bool = True) -> set[tuple[object, ...]]:
    return {
        (p.manager, p.name, p.version, p.platform, p.url, p.sha256, p.md5)
        + ((tuple(sorted(p.depends.items())),) if depends else ())
        for p in lock.packages
    }


EXPLICIT = f"""\
# platform: linux-64
@EXPLICIT
{TUNA}/linux-64/{ZLIB}#sha256:{SHA}
{FORGE}/noarch/{TZDATA}#{SHA}
# pip numpy @ https://pypi.tuna.tsinghua.edu.cn/packages/a/b/{NUMPY} --hash=sha256:{SHA}
"""


def test_an_explicit_file_is_a_lock(put) -> None:
    found = read_spec(put("spec-file.txt", EXPLICIT))
    lock = to_lock(found)
    assert (found.kind, found.is_lock, lock.platforms, lock.channels) == (
        "explicit", True, ("linux-64",), ("conda-forge",),
    )  # fmt: skip
    assert {(p.name, p.version, p.manager, p.url) for p in lock.packages} == {
        ("zlib", "1.3.1", "conda", f"{FORGE}/linux-64/{ZLIB}"),
        ("tzdata", "2024a", "conda", f"{FORGE}/noarch/{TZDATA}"),
        ("numpy", "1.26.4", "pip", f"{pypi_files()}/a/b/numpy-1.26.4-cp311-cp311-linux_x86_64.whl"),
    }
    assert {p.sha256 for p in lock.packages} == {SHA}


def test_without_a_sha256_it_is_refused_or_completed(put) -> None:
    path = put("e.txt", f"@EXPLICIT\n{FORGE}/linux-64/{ZLIB}#{MD5}\n{FORGE}/noarch/{TZDATA}#{MD5}\n")
    found = read_spec(path)
    with pytest.raises(InputError, match="only an md5 is given for zlib, tzdata") as caught:
        to_lock(found)
    assert (caught.value.path, caught.value.line) == (path, 2)
    assert "conda list --explicit --sha256" in caught.value.hint

    def from_repodata(package: Pinned) -> Pinned | None:
        return package.completed(sha256=SHA, depends={"libzlib": "1.3.1"}) if package.md5 == MD5 else None

    lock = to_lock(found, complete=from_repodata)
    assert [(p.name, p.sha256, p.md5, dict(p.depends)) for p in lock.packages] == [
        ("tzdata", SHA, MD5, {"libzlib": "1.3.1"}),
        ("zlib", SHA, MD5, {"libzlib": "1.3.1"}),
    ]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (f"@EXPLICIT\n{FORGE}/linux-64/{ZLIB}\n", 2, "no hash is given"),
        (f"@EXPLICIT\n{FORGE}/linux-64/{ZLIB}#sha256:12\n", 2, "not the URL of an archive"),
        ("@EXPLICIT\n./x-1-0.conda#" + MD5 + "\n", 2, "not the URL of an archive"),
        (f"@EXPLICIT\n{FORGE}/linux-64/zlib.conda#{SHA}\n", 2, "not the archive of a conda package"),
        (f"@EXPLICIT\n{FORGE}/../linux-64/{ZLIB}#{SHA}\n", 2, "not the archive of a conda package"),
        (f"@EXPLICIT\n{FORGE}/linux-64/{ZLIB}#{SHA}\n{FORGE}/win-64/{ZLIB}#{SHA}\n", 3, "in one file"),
        (f"@EXPLICIT\n{FORGE}/noarch/{TZDATA}#{SHA}\n", 1, "for which platform"),
        ("@EXPLICIT\n", None, "no packages"),
    ],
)
def test_what_is_no_explicit_file(put, text: str, line: int | None, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        to_lock(read_spec(put("e.txt", text)))
    assert caught.value.line == line


def test_harmful_names_are_refused_on_the_way_to_a_lock(put) -> None:
    path = put("pixi.lock", PIXI_6.replace("name: numpy", "name: ../../numpy"))
    with pytest.raises(InputError, match="not a package name"):
        to_lock(read_spec(path))


PIXI_6 = f"""\
version: 6
environments:
  default:
    channels:
    - url: https://prefix.dev/conda-forge/
    indexes:
    - https://pypi.tuna.tsinghua.edu.cn/simple
    packages:
      linux-64:
      - conda: https://prefix.dev/conda-forge/linux-64/{ZLIB}
      - conda: {FORGE}/noarch/{TZDATA}
      - pypi: https://mirrors.aliyun.com/pypi/packages/a/b/numpy-1.26.4-cp311-cp311-linux_x86_64.whl
      osx-arm64:
      - conda: {FORGE}/noarch/{TZDATA}
  test:
    channels:
    - url: {FORGE}/
    packages:
      linux-64:
      - conda: {FORGE}/noarch/{TZDATA}
packages:
- conda: https://prefix.dev/conda-forge/linux-64/{ZLIB}
  sha256: {SHA}
  md5: {MD5}
  depends:
  - __glibc >=2.17,<3.0.a0
  - libzlib 1.3.1 hb9d3cd8_2
- conda: {FORGE}/noarch/{TZDATA}
  sha256: {SHA}
- pypi: https://mirrors.aliyun.com/pypi/packages/a/b/numpy-1.26.4-cp311-cp311-linux_x86_64.whl
  name: numpy
  version: 1.26.4
  sha256: {SHA}
  requires_python: '>=3.9'
"""


def pixi_5() -> str:
    """The same in the words of version 5."""
    document = yaml.safe_load(PIXI_6)
    for entry in document["packages"]:
        kind = "conda" if "conda" in entry else "pypi"
        entry |= {"kind": kind, "url": entry.pop(kind)}
        if kind == "conda":
            name, version, build = entry["url"].rpartition("/")[2].removesuffix(".conda").rsplit("-", 2)
            entry |= {"name": name, "version": version, "build": build, "subdir": entry["url"].split("/")[-2]}
    return yaml.safe_dump(document | {"version": 5})


@pytest.mark.parametrize("version", [4, 5, 6, 7])
def test_every_version_of_pixi_lock(put, version: int) -> None:
    text = PIXI_6 if version > 5 else pixi_5()
    found = read_spec(
        put("pixi.lock", text.replace(f"version: {6 if version > 5 else 5}", f"version: {version}"))
    )
    lock = to_lock(found)
    assert (found.kind, lock.platforms, lock.channels) == (
        "pixi",
        ("linux-64", "osx-arm64"),
        ("conda-forge",),
    )
    assert {(p.name, p.platform) for p in lock.packages} == {
        ("zlib", "linux-64"), ("tzdata", "linux-64"), ("numpy", "linux-64"), ("tzdata", "osx-arm64"),
    }  # fmt: skip
    zlib = next(p for p in lock.packages if p.name == "zlib")
    assert zlib.url == f"{FORGE}/linux-64/{ZLIB}"
    assert (zlib.md5, dict(zlib.depends)) == (MD5, {"__glibc": ">=2.17,<3.0.a0", "libzlib": "1.3.1"})
    numpy = next(p for p in lock.packages if p.name == "numpy")
    assert numpy.url.startswith(pypi_files() or "-")


def test_one_environment_of_a_pixi_lock(put) -> None:
    path = put("pixi.lock", PIXI_6)
    assert any(
        "its environment default is taken; the others are test" in str(n) for n in read_spec(path).notes
    )
    assert [p.name for p in read_spec(path, environment="test").pinned] == ["tzdata"]
    with pytest.raises(InputError, match="no environment 'docs'"):
        read_spec(path, environment="docs")


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("version: 6", "version: 8", 1, "version 8"),
        (f"{FORGE}/noarch/{TZDATA}\n      - pypi", "./mine\n      - pypi", 11, "built from a folder"),
        (f"- conda: {FORGE}/noarch/{TZDATA}\n  sha256", "- conda: x\n  sha256", 11, "not described"),
        ("  name: numpy\n", "", 30, "no name"),
        ("environments:", "envs:", 1, "`environments:` is missing"),
        (f"  sha256: {SHA}\n  requires", "  requires", 30, "no hash is given for numpy"),
    ],
)  # fmt: skip
def test_what_a_pixi_lock_must_say(put, old: str, new: str, line: int, words: str) -> None:
    assert old in PIXI_6
    with pytest.raises(InputError, match=words) as caught:
        to_lock(read_spec(put("pixi.lock", PIXI_6.replace(old, new))))
    assert caught.value.line == line


def test_conda_lock_reads_what_was_made_of_them(put) -> None:
    parse = pytest.importorskip("conda_lock.lockfile").parse_conda_lock_file
    for name, text in {"e.txt": EXPLICIT, "pixi.lock": PIXI_6}.items():
        made = put("conda-lock.yml", v1_text(read_spec(put(name, text))))
        theirs = parse(made)
        ours = read_lock(made)
        assert {(p.name, p.url, p.platform) for p in theirs.package} == {
            (p.name, p.url, p.platform) for p in ours.packages
        }
        assert v1_text(read_spec(put(name, text))) == made.read_text()


@pytest.mark.parametrize("path", SHIPPED, ids=[path.parent.name for path in SHIPPED])
def test_a_shipped_lock_goes_out_and_comes_back(put, path: Path) -> None:
    rattler = pytest.importorskip("rattler")
    lock = read_lock(path)
    whole = put("pixi.lock", write(lock, "pixi"))
    back = to_lock(read_spec(whole))
    assert rows(back) == rows(lock)
    assert (set(back.platforms), back.channels) == (set(lock.platforms), lock.channels)
    theirs = rattler.LockFile.from_path(whole)
    default = theirs.default_environment()
    assert {str(platform.name) for platform in theirs.platforms()} == set(lock.platforms)
    for platform in theirs.platforms():
        seen = {
            (p.name, str(p.package_record.build), p.package_record.build_number, p.location,
             p.package_record.sha256.hex(), p.package_record.md5.hex())
            for p in default.packages(platform)
        }  # fmt: skip
        assert seen == {
            (p.name, p.build, build_number(p.build), p.url, p.sha256, p.md5)
            for p in lock.on(str(platform.name))
        }
    for platform in lock.platforms:
        for hashes in ("sha256", "md5"):
            text = write(lock, "explicit", platform, hashes=hashes)
            pinned = read_spec(put("explicit.txt", text)).pinned
            assert {(p.name, p.version, p.url, getattr(p, hashes)) for p in pinned} == {
                (p.name, p.version, p.url, getattr(p, hashes)) for p in lock.on(platform)
            }
        spec = read_spec(put("environment.yml", write(lock, "environment", platform)))
        assert spec.channels == lock.channels
        assert set(yaml.safe_load(spec.text)["dependencies"]) == {
            f"{p.name}={p.version}={p.build}" for p in lock.on(platform)
        }


def test_an_explicit_file_installs_in_order(put) -> None:
    lock = read_lock(SHIPPED[0])
    platform = lock.platforms[0]
    order = [p.name for p in read_spec(put("e.txt", write(lock, "explicit", platform))).pinned]
    needed = {p.name: p.depends for p in lock.on(platform)}
    assert order.index("python") < order.index("numpy")
    late = [
        (name, need)
        for name in order
        for need in needed[name]
        if need in needed and order.index(need) > order.index(name)
    ]
    assert len(late) <= 3  # what depends on each other in a circle


def pip_lock(*packages: tuple[str, str, str]) -> Lock:
    return Lock(
        path=Path("envs/mine/conda-lock.yml"),
        digest=None,
        channels=("conda-forge",),
        platforms=("linux-64",),
        packages=(
            Package(
                name="python", version="3.11.9", manager="conda", platform="linux-64",
                url=f"{FORGE}/linux-64/python-3.11.9-hb806964_0_cpython.conda", sha256=SHA, md5=MD5,
            ),
            *(
                Package(name=name, version=version, manager="pip", platform="linux-64", url=url, sha256=SHA)
                for name, version, url in packages
            ),
        ),
    )  # fmt: skip


PIP = pip_lock(
    ("numpy", "1.26.4", f"{pypi_files()}/a/b/numpy-1.26.4-cp311-cp311-linux_x86_64.whl"),
    ("torch", "2.3.0+cu121", f"{WHEELS}/cu121/torch-2.3.0%2Bcu121-cp311-cp311-linux_x86_64.whl"),
    ("own", "1", "https://h.example/own-1-py3-none-any.whl"),
)


def test_pip_packages_go_out_with_their_hashes_and_indexes(put) -> None:
    text = write(PIP, "requirements")
    assert f"--extra-index-url {WHEELS}/cu121\n" in text
    assert f"torch==2.3.0+cu121 \\\n    --hash=sha256:{SHA}\n" in text
    assert "own @ https://h.example/own-1-py3-none-any.whl" in text
    found = read_spec(put("requirements.txt", text))
    assert found.hashes == {"numpy": {SHA}, "torch": {SHA}, "own": {SHA}}
    assert found.pip.indexes == (f"{WHEELS}/cu121",)
    explicit = read_spec(put("e.txt", write(PIP, "explicit")))
    assert {(p.name, p.version, p.url, p.sha256) for p in explicit.pinned} == {
        (p.name, p.version, p.url, p.sha256) for p in PIP.packages
    }
    document = yaml.safe_load(write(PIP, "pixi"))
    assert document["environments"]["default"]["indexes"] == [pypi_simple(), f"{WHEELS}/cu121"]
    assert rows(to_lock(read_spec(put("pixi.lock", write(PIP, "pixi"))))) == rows(PIP)
    environment = yaml.safe_load(write(PIP, "environment"))
    assert environment["dependencies"][-1]["pip"][0] == f"--extra-index-url {WHEELS}/cu121"


def test_rattler_reads_pip_packages_of_ours(put) -> None:
    rattler = pytest.importorskip("rattler")
    theirs = rattler.LockFile.from_path(put("pixi.lock", write(PIP, "pixi")))
    (platform,) = theirs.platforms()
    assert {(p.name, p.location) for p in theirs.default_environment().packages(platform)} == {
        (p.name, p.url) for p in PIP.packages
    }


def test_what_cannot_be_written_is_refused() -> None:
    only_conda = pip_lock()
    with pytest.raises(InputError, match="no pip packages"):
        write(only_conda, "requirements")
    with pytest.raises(InputError, match="no packages for win-64"):
        write(only_conda, "explicit", "win-64")
    several = read_lock(next(path for path in SHIPPED if len(read_lock(path).platforms) > 1))
    with pytest.raises(InputError, match="several platforms"):
        write(several, "explicit")


names = st.from_regex(r"[a-z][a-z0-9]{0,8}(-[a-z0-9]{1,5})?", fullmatch=True)
versions = st.from_regex(r"[0-9]{1,4}(\.[0-9a-z]{1,4}){0,3}", fullmatch=True)
builds = st.from_regex(r"([a-z0-9.]{1,8}_){0,2}[0-9]{1,4}", fullmatch=True)

depends = st.dictionaries(names, st.sampled_from(["", ">=1", "1.2.*"]), max_size=3)


@st.composite
def locks(draw: st.DrawFn) -> Lock:
    platforms = draw(st.sets(st.sampled_from(["linux-64", "osx-arm64", "win-64"]), min_size=1))
    hashes = st.text("0123456789abcdef", min_size=64, max_size=64)
    packages = []
    for platform in sorted(platforms):
        for name in sorted(draw(st.sets(names, min_size=1, max_size=5))):
            version, build = draw(versions), draw(builds)
            subdir = draw(st.sampled_from([platform, "noarch"]))
            ending = draw(st.sampled_from([".conda", ".tar.bz2"]))
            # One archive has one hash, also where two platforms share it.
            url = f"{FORGE}/{subdir}/{name}-{version}-{build}{ending}"
            known = next((p for p in packages if p.url == url), None)
            packages.append(
                Package(
                    name=name, version=version, manager="conda", platform=platform, url=url,
                    sha256=known.sha256 if known else draw(hashes),
                    md5=known.md5 if known else draw(hashes)[:32],
                    depends=known.depends if known else draw(depends),
                )
            )  # fmt: skip
    return Lock(
        path=Path("conda-lock.yml"), digest=None, channels=("conda-forge",),
        platforms=tuple(sorted(platforms)), packages=tuple(packages),
    )  # fmt: skip


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lock=locks())
def test_any_lock_goes_out_and_comes_back(put, lock: Lock) -> None:
    back = to_lock(read_spec(put("pixi.lock", write(lock, "pixi"))))
    assert rows(back) == rows(lock)
    for platform in lock.platforms:
        for hashes in ("sha256", "md5"):
            text = write(lock, "explicit", platform, hashes=hashes)
            assert {(p.url, getattr(p, hashes)) for p in read_spec(put("e.txt", text)).pinned} == {
                (p.url, getattr(p, hashes)) for p in lock.on(platform)
            }
    again = parse_lock(v1_text(read_spec(put("pixi.lock", write(back, "pixi")))), Path("x"))
    assert rows(again) == rows(lock)


@pytest.mark.parametrize(
    ("build", "number"),
    [("py311h64a7726_0", 0), ("h2628c8c_101_cpython", 101), ("5_cp313", 5), ("7_kmp_llvm", 7), ("mkl", 0),
     ("16_linux64_openblas", 16), ("2_x86_64", 2), ("cuda126_mkl_py311_hcada2b2_300", 300), ("1", 1)],
)  # fmt: skip
def test_build_numbers_are_read_off_the_names(build: str, number: int) -> None:
    assert build_number(build) == number
