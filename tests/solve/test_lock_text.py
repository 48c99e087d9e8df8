"""Specs to lock text: solved, canonical, deterministic, readable by conda-lock and by us."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from small_specs import HELLO, LIBHELLO, OLD_LIBHELLO, PYTHON, canonical, make_spec, repodata_of
from tinychannel import TinyPackage, write_channel

from envkit.errors import Error, Findings, InputError
from envkit.lock import is_fresh, parse_lock
from envkit.model import Lock, Spec
from envkit.progress import Observer
from envkit.solve import lock_text
from envkit.solve.engine import compare_versions


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A directory of one channel called conda-forge."""
    write_channel(tmp_path / "mirror" / "conda-forge", PYTHON, HELLO, LIBHELLO, OLD_LIBHELLO)
    return tmp_path / "mirror"


def text_of(spec: Spec, root: Path, **options: object) -> str:
    return lock_text(spec, repodata=repodata_of(root), canonical=canonical, **options)  # type: ignore[arg-type]


def lock_of(spec: Spec, root: Path, **options: object) -> Lock:
    return parse_lock(text_of(spec, root, **options), Path("conda-lock.yml"))


def versions(lock: Lock, platform: str = "linux-64") -> dict[str, str]:
    return {package.name: package.version for package in lock.on(platform)}


def test_solves_and_writes_what_our_reader_and_conda_lock_read(root: Path, tmp_path: Path) -> None:
    spec = make_spec("python=3.11", "hello")
    text = text_of(spec, root)
    lock = parse_lock(text, tmp_path / "conda-lock.yml")
    assert versions(lock) == {"hello": "2.0", "libhello": "1.5", "python": "3.11.9"}
    assert is_fresh(lock, spec)
    assert lock.channels == ("conda-forge",)
    hello = next(package for package in lock.packages if package.name == "hello")
    assert hello.url == "https://conda.anaconda.org/conda-forge/noarch/hello-2.0-py_0.conda"
    assert hello.depends == {"libhello": "1.*", "python": ">=3.11"}
    assert hello.md5

    from conda_lock.lockfile import parse_conda_lock_file

    (tmp_path / "conda-lock.yml").write_text(text)
    theirs = parse_conda_lock_file(tmp_path / "conda-lock.yml")
    assert {package.name for package in theirs.package} == {"hello", "libhello", "python"}
    assert all(package.categories == {"main"} for package in theirs.package)
    assert list(theirs.metadata.content_hash) == ["linux-64"]


def test_the_c_and_the_python_emitter_agree(root: Path) -> None:
    text = text_of(make_spec("hello"), root)
    body = text[text.index("version: 1") :]
    content = yaml.safe_load(body)
    assert yaml.dump(content, Dumper=yaml.SafeDumper, sort_keys=False, width=1 << 16) == body


def test_no_machine_path_and_no_time_stamp_in_a_lock(root: Path, tmp_path: Path) -> None:
    text = text_of(make_spec("hello"), root)
    assert str(tmp_path) not in text
    assert "/tmp" not in text
    assert "time" not in text


def test_two_processes_and_two_mirrors_give_the_same_bytes(root: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "conda-forge").parent.mkdir()
    (elsewhere / "conda-forge").symlink_to(root / "conda-forge")
    script = """
import os, sys
sys.path[:0] = sys.argv[2:]
from pathlib import Path
from small_specs import make_spec, repodata_of, canonical
from envkit.solve import lock_text
spec = make_spec("python=3.11", "hello")
text = lock_text(spec, repodata=repodata_of(Path(sys.argv[1])), canonical=canonical)
sys.stdout.write(text)
sys.stdout.flush()
os._exit(0)
"""
    texts = {
        subprocess.run(
            [sys.executable, "-c", script, str(folder), *map(str, Path(__file__).parents[:2])],
            capture_output=True,
            text=True,
            check=True,
            env={"PATH": "/usr/bin:/bin", "PYTHONHASHSEED": seed, "HOME": str(tmp_path)},
        ).stdout
        for seed, folder in [("1", root), ("2", elsewhere)]
    }
    assert len(texts) == 1
    assert "hello" in texts.pop()


def test_virtual_packages_are_the_specs_never_the_hosts(tmp_path: Path) -> None:
    old = TinyPackage("demo", version="1.0", depends=["__glibc >=2.17"])
    new = TinyPackage("demo", version="2.0", depends=["__glibc >=2.29"])
    gpu = TinyPackage("gpu", depends=["__cuda >=12"])
    write_channel(tmp_path / "conda-forge", old, new, gpu)
    assert versions(lock_of(make_spec("demo"), tmp_path)) == {"demo": "1.0"}
    assert versions(lock_of(make_spec("gpu", cuda="12.4"), tmp_path)) == {"gpu": "1.0"}
    with pytest.raises(Findings, match="__cuda"):
        lock_of(make_spec("gpu", cuda="11.8"), tmp_path)


def test_strict_priority(tmp_path: Path) -> None:
    write_channel(tmp_path / "pytorch", TinyPackage("demo", version="1.0"))
    write_channel(tmp_path / "conda-forge", TinyPackage("demo", version="2.0"))
    spec = make_spec("demo", channels=("pytorch", "conda-forge"))
    lock = lock_of(spec, tmp_path)
    assert versions(lock) == {"demo": "1.0"}
    assert lock.packages[0].url.startswith("https://conda.anaconda.org/pytorch/")
    with pytest.raises(Findings, match="demo"):
        lock_of(make_spec("demo=2", channels=("pytorch", "conda-forge")), tmp_path)


def test_build_globs_reach_the_solver(tmp_path: Path) -> None:
    write_channel(
        tmp_path / "conda-forge",
        TinyPackage("pytorch", version="2.1.0", build="py3.11_cpu_0"),
        TinyPackage("pytorch", version="2.1.0", build="py3.11_cuda11.8_cudnn8_0"),
    )
    for glob in ("*cpu*", "*cuda11.8*"):
        lock = lock_of(make_spec(f"pytorch=2.1.*={glob}"), tmp_path)
        assert glob.strip("*") in lock.packages[0].build


def test_a_local_channel_keeps_its_url(root: Path) -> None:
    local = f"file://{root}/conda-forge"
    lock = parse_lock(
        lock_text(
            make_spec("hello", channels=(local,)),
            repodata=lambda channel, subdir: root / "conda-forge" / subdir / "repodata.json",
            canonical=canonical,
        ),
        Path("conda-lock.yml"),
    )
    assert lock.channels == (local,)
    assert all(package.url.startswith(f"{local}/") for package in lock.packages)


def test_an_earlier_lock_holds_packages_where_they_fit(root: Path) -> None:
    old = lock_of(make_spec("hello", "libhello=1.4"), root)
    assert versions(old)["libhello"] == "1.4"
    assert versions(lock_of(make_spec("hello"), root, locked=old))["libhello"] == "1.4"
    assert versions(lock_of(make_spec("hello"), root))["libhello"] == "1.5"
    assert versions(lock_of(make_spec("hello", "libhello>=1.5"), root, locked=old))["libhello"] == "1.5"


def torch_channel(tmp_path: Path, **versions: list[str]) -> Path:
    write_channel(
        tmp_path / "conda-forge",
        *(
            TinyPackage("pytorch", version, "cpu_0", platform=platform.replace("_", "-"), depends=depends)
            for platform, found in versions.items()
            for version in found
            for depends in ([["missing"]] if version.endswith("9") else [[]])
        ),
    )
    return tmp_path


def test_one_torch_version_on_all_platforms(tmp_path: Path) -> None:
    root = torch_channel(
        tmp_path,
        linux_64=["2.1.0", "2.3.0", "2.4.0"],
        osx_arm64=["2.1.0", "2.3.0", "2.10.0"],
        win_64=["2.1.0", "2.3.0", "2.4.0", "2.10.0"],
    )
    lock = lock_of(make_spec("pytorch", platforms=("linux-64", "osx-arm64", "win-64")), root)
    assert {package.version for package in lock.packages} == {"2.3.0"}


def test_the_next_lower_common_version_where_the_highest_does_not_solve(tmp_path: Path) -> None:
    root = torch_channel(tmp_path, linux_64=["2.1.0", "2.3.9"], osx_arm64=["2.1.0", "2.3.9", "2.10.0"])
    lock = lock_of(make_spec("pytorch", platforms=("linux-64", "osx-arm64")), root)
    assert {package.version for package in lock.packages} == {"2.1.0"}


def test_no_common_torch_version_is_a_finding(tmp_path: Path) -> None:
    root = torch_channel(tmp_path, linux_64=["2.1.0"], osx_arm64=["2.3.0"])
    with pytest.raises(Findings, match=r"linux-64 2\.1\.0, osx-arm64 2\.3\.0") as caught:
        lock_of(make_spec("pytorch", platforms=("linux-64", "osx-arm64")), root)
    assert "platform" in caught.value.hint


def test_an_unsolvable_spec_says_why_and_where(root: Path) -> None:
    with pytest.raises(Findings) as caught:
        lock_of(make_spec("hello=2", "libhello=1.4.*", "python=3.12"), root)
    assert caught.value.message.startswith("py311-test cannot be solved for linux-64")
    assert "python" in caught.value.message
    assert "matrix.yaml" in caught.value.hint
    with pytest.raises(Findings, match="nosuchthing"):
        lock_of(make_spec("nosuchthing"), root)


def test_progress_is_told(root: Path) -> None:
    class Heard(Observer):
        def __init__(self) -> None:
            self.said: list[str] = []

        def start(self, task: str, total: int | None = None, unit: str = "B") -> None:
            self.said.append(f"start {total}")

        def advance(self, task: str, amount: int = 1) -> None:
            self.said.append(f"advance {amount}")

        def finish(self, task: str) -> None:
            self.said.append("finish")

        def note(self, text: str) -> None:
            self.said.append(text)

    heard = Heard()
    lock_of(make_spec("hello"), root, observer=heard)
    assert heard.said == ["start 1", "advance 1", "linux-64: 3 packages", "finish"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (("hello >=2,<",), "hello"),
        (("=1.2",), "conda-lock cannot read"),
    ],
)
def test_constraints_that_are_none(root: Path, lines: tuple[str, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        lock_of(make_spec(*lines), root)


def test_broken_yaml_names_the_line(root: Path) -> None:
    with pytest.raises(InputError) as caught:
        lock_of(make_spec("hello", text="name: x\ndependencies: [hello\n"), root)
    assert "line 3" in str(caught.value) or "environment.yml:3" in str(caught.value)


def test_no_channels_is_an_error_not_a_crash(root: Path) -> None:
    with pytest.raises(InputError, match="no channels"):
        lock_of(make_spec("hello", channels=(), text="channels:\ndependencies: [hello]\n"), root)


def test_repodata_that_is_none(root: Path) -> None:
    (root / "conda-forge" / "linux-64" / "repodata.json").write_text("{")
    with pytest.raises(Error, match="not the repodata of conda-forge/linux-64"):
        lock_of(make_spec("hello"), root)


def test_a_record_without_a_sha256_cannot_be_locked(root: Path) -> None:
    path = root / "conda-forge" / "noarch" / "repodata.json"
    path.write_text(path.read_text().replace('"sha256"', '"was_sha256"'))
    with pytest.raises(Findings, match=r"hello-2\.0-py_0\.conda: the channel states no sha256"):
        lock_of(make_spec("hello"), root)


def test_versions_are_compared_as_conda_does() -> None:
    assert compare_versions(["2.9", "2.10", "2.10rc1", "1!1.0"]) == ["1!1.0", "2.10", "2.10rc1", "2.9"]
