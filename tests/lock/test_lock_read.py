"""Reading locks: what conda-lock writes passes, what would be wrong or harmful names its place."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envkit.errors import InputError
from envkit.lock import parse_lock, read_lock
from envkit.lock.document import load_document

SHA = "c1" * 32
MD5 = "50" * 16
PYTORCH = "https://conda.anaconda.org/pytorch/linux-64/pytorch-2.3.1-py3.11_cpu_0.tar.bz2"


def entry(**changes: Any) -> dict[str, Any]:
    return {
        "name": "pytorch",
        "version": "2.3.1",
        "manager": "conda",
        "platform": "linux-64",
        "dependencies": {"python": ">=3.11,<3.12.0a0", "filelock": ""},
        "url": PYTORCH,
        "hash": {"md5": MD5, "sha256": SHA},
        "category": "main",
        "optional": False,
    } | changes


def document(*packages: dict[str, Any]) -> dict[str, Any]:
    return {
        "version": 1,
        "metadata": {
            "content_hash": {"linux-64": SHA},
            "channels": [
                {"url": "pytorch", "used_env_vars": []},
                {"url": "conda-forge", "used_env_vars": []},
            ],
            "platforms": ["linux-64"],
            "sources": ["environment.yml"],
            "custom_metadata": {"envkit-schema": "1", "envkit-spec": "d" * 64},
        },
        "package": list(packages) or [entry()],
    }


def write(folder: Path, content: object) -> Path:
    path = folder / "conda-lock.yml"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content, sort_keys=False))
    return path


def test_reads_the_committed_shape(tmp_path: Path) -> None:
    lock = read_lock(write(tmp_path, document()))
    assert lock.digest == "d" * 64
    assert lock.channels == ("pytorch", "conda-forge")
    assert lock.platforms == ("linux-64",)
    (package,) = lock.on("linux-64")
    assert (package.name, package.version, package.build, package.subdir) == (
        "pytorch",
        "2.3.1",
        "py3.11_cpu_0",
        "linux-64",
    )
    assert (package.sha256, package.md5) == (SHA, MD5)
    assert package.depends == {"python": ">=3.11,<3.12.0a0", "filelock": ""}


def test_a_strangers_lock_has_no_digest(tmp_path: Path) -> None:
    content = document()
    del content["metadata"]["custom_metadata"]
    content["metadata"]["channels"] = ["conda-forge"]
    lock = read_lock(write(tmp_path, content))
    assert lock.digest is None
    assert lock.channels == ("conda-forge",)


def test_a_package_of_two_categories_is_read_once(tmp_path: Path) -> None:
    lock = read_lock(
        write(tmp_path, document(entry(category="dev", optional=True), entry(category="docs", optional=True)))
    )
    assert [package.category for package in lock.packages] == ["dev"]


def test_pip_packages_tokens_and_epochs_pass(tmp_path: Path) -> None:
    wheel = entry(
        name="opencv-python-headless",
        version="4.10.0.84",
        manager="pip",
        url="https://files.example.org/opencv_python_headless-4.10.0.84-cp37-abi3-manylinux_2_17_x86_64.whl",
        hash={"sha256": SHA},
    )
    epoch = entry(
        name="x264",
        version="1!161.3030",
        url="https://host.example.org/t/${TOKEN}/c/linux-64/x264-1%21161.3030-h7f98852_1.tar.bz2",
    )
    mutex = entry(
        name="_libgcc_mutex",
        version="0.1",
        url="https://conda.anaconda.org/conda-forge/linux-64/_libgcc_mutex-0.1-conda_forge.tar.bz2",
    )
    lock = read_lock(write(tmp_path, document(wheel, epoch, mutex)))
    assert [package.manager for package in lock.packages] == ["pip", "conda", "conda"]
    assert lock.packages[0].depends == {}


WRONG: list[tuple[str, Any, str]] = [
    ("version", 2, "version: expected 1, found 2"),
    ("version", True, "version: expected 1"),
    ("package", {}, "package: expected a list"),
    ("metadata.platforms", "linux-64", "metadata.platforms: expected a list"),
    ("metadata.platforms", [], "metadata.platforms: at least one"),
    ("metadata.platforms", ["../x"], "metadata.platforms[0]: not a conda subdir"),
    ("metadata.channels", [3], "metadata.channels[0]: expected a string"),
    ("metadata.custom_metadata", ["x"], "metadata.custom_metadata: expected a mapping"),
    ("package.0", "pytorch", "package[0]: expected a mapping"),
    ("package.0.name", "../../etc", "package[0].name: not a package name"),
    ("package.0.name", "a..b", "package[0].name: not a package name"),
    ("package.0.name", "", "package[0].name: not a package name"),
    ("package.0.name", None, "package[0].name: expected a string"),
    ("package.0.version", 2.3, "package[0].version: expected a string, found 2.3"),
    ("package.0.version", "2/3", "package[0].version: not a version"),
    ("package.0.manager", "npm", "package[0].manager: expected conda or pip"),
    ("package.0.platform", "linux-aarch64", "package[0].url: from the folder linux-64"),
    ("package.0.hash", "c1c1", "package[0].hash: expected a mapping"),
    ("package.0.hash", {"md5": MD5}, "package[0].hash.sha256: missing"),
    ("package.0.hash.sha256", SHA[:-1], "package[0].hash.sha256: not a sha256"),
    ("package.0.hash.md5", "zz" * 16, "package[0].hash.md5: not a md5"),
    ("package.0.dependencies", ["python"], "package[0].dependencies: expected a mapping"),
    ("package.0.dependencies", {"python": 3.11}, "package[0].dependencies.python: expected a string"),
    ("package.0.dependencies", {"a/b": ""}, "package[0].dependencies: not a package name"),
    ("package.0.category", "../x", "package[0].category: not a category"),
    ("package.0.url", "ftp://h/linux-64/pytorch-2.3.1-0.conda", "package[0].url: expected a URL of https"),
    ("package.0.url", "https://h/linux-64/../pytorch-2.3.1-0.conda", "package[0].url: not the URL of a file"),
    ("package.0.url", "https://h/linux-64/..%2Fpytorch-2.3.1-0.conda", "package[0].url: not the URL"),
    ("package.0.url", "https://h/linux-64/x%2Fpytorch-2.3.1-0.conda", "package[0].url: a quoted slash"),
    ("package.0.url", "https://h/linux-64/", "package[0].url: not the URL of a file"),
    ("package.0.url", "https://h/linux-64/pytorch-2.3.1-0.zip", "package[0].url: must end in .conda"),
    ("package.0.url", "https://h/linux-64/evil-2.3.1-0.conda", "package[0].url: evil-2.3.1-0.conda is not"),
    ("package.0.url", "https://h/linux-64/pytorch-9-0.conda", "is not pytorch 2.3.1"),
]


@pytest.mark.parametrize(("place", "value", "message"), WRONG)
def test_names_the_place_of_a_mistake(tmp_path: Path, place: str, value: Any, message: str) -> None:
    content: Any = document()
    *parents, last = [int(part) if part.isdigit() else part for part in place.split(".")]
    target = content
    for part in parents:
        target = target[part]
    target[last] = value
    path = write(tmp_path, content)
    with pytest.raises(InputError) as caught:
        read_lock(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize("key", ["name", "version", "manager", "platform", "url", "hash"])
def test_every_needed_key_is_missed(tmp_path: Path, key: str) -> None:
    content = document()
    del content["package"][0][key]
    with pytest.raises(InputError, match=rf"package\[0\]\.{key}: missing"):
        read_lock(write(tmp_path, content))


def test_refuses_a_package_that_stands_twice(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"package\[1\]: pytorch stands twice for linux-64"):
        read_lock(write(tmp_path, document(entry(), entry())))
    other = entry(category="dev", url=PYTORCH.replace("_0", "_1"))
    with pytest.raises(InputError, match=r"package\[1\]"):
        read_lock(write(tmp_path, document(entry(), other)))


def test_refuses_a_platform_that_is_not_announced(tmp_path: Path) -> None:
    stray = entry(platform="osx-64", url=PYTORCH.replace("linux-64", "osx-64"))
    with pytest.raises(InputError, match=r"package\[0\]\.platform: not listed in metadata\.platforms"):
        read_lock(write(tmp_path, document(stray)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("# only a comment\n", "the file is empty"),
        ("- 1\n", "must be a mapping"),
        ("version: 1\nversion: 1\n", "a key stands twice"),
        ("version: [1\n", "expected ',' or ']'"),
        ("[" * 5000, "maximum nesting"),
        ("- " * 5000, "maximum nesting"),
        ("a: &a [*a]\n", "its aliases make it too large"),
        ("a: !!python/object/apply:os.system [id]\n", "could not determine a constructor"),
        (
            "version: 1\nmetadata: &m {platforms: [linux-64], channels: *m}\npackage: []\n",
            "its aliases make it too large",
        ),
        ("a: 2024-13-45\n", "month"),
        ("a: \x00\n", "control characters"),
    ],
)
def test_refuses_what_is_no_lock_at_all(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_lock(write(tmp_path, text))
    assert message in str(caught.value)


def test_refuses_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_lock(tmp_path / "conda-lock.yml")
    with pytest.raises(InputError, match="directory"):
        read_lock(tmp_path)
    path = tmp_path / "latin.yml"
    path.write_bytes("version: 1 # é".encode("latin-1"))
    with pytest.raises(InputError, match="not UTF-8"):
        read_lock(path)


@pytest.mark.parametrize(
    "more",
    [
        "x: {<<: {a: 1, b: two}, c: three}",
        "x: &x {a: 1}\ny: *x\nz: [*x, *x]",
        "x: {7: a, true: b, ~: c, 2.5: d, 2024-02-03: e}",
        "? &k key\n: value\n",
        "x: !!set {a, b}\ny: !!str 12\nz: !!binary aGVsbG8=\nw: !!omap [a: 1]",
        "x: |\n  a block\ny: >-\n  folded\n  text",
        "x: [~, 0x1F, 1_000, 1e3, 'quoted', \"12\", yes, 12:30:45]",
    ],
)
def test_values_are_those_of_any_yaml_reader(more: str) -> None:
    text = f"version: 1\n{more}\n"
    assert load_document(text, Path("conda-lock.yml")) == yaml.safe_load(text)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("version: 1\nx:\n  a: 1\n  b: 2\n  a: 3\n", 3, "a key stands twice"),
        ("version: 1\nx: [{a: 1},\n  {1: a, 1: b}]\n", 3, "a key stands twice"),
        ("version: 1\n? [a]\n: b\n", 2, "unhashable key"),
        ("version: 1\nx:\n  ? !!str [a]\n  : b\n", 3, "expected a scalar node"),
        ("version: 1\nx: [a, !thing b]\n", 2, "could not determine a constructor"),
        ("version: 1\nx:\n  y: !!int no\n", 3, "not a value that YAML can read here"),
    ],
)
def test_a_value_that_cannot_be_read_has_a_line(text: str, line: int, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        load_document(text, Path("conda-lock.yml"))
    assert caught.value.line == line


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(data=st.data())
@settings(max_examples=200, deadline=None)
def test_whatever_replaces_a_value_is_read_or_refused(data: st.DataObject) -> None:
    content = copy.deepcopy(document(entry(), entry(name="a", url=PYTORCH.replace("pytorch-2", "a-2"))))
    target: Any = content
    while isinstance(target, dict | list) and target:
        keys = list(target) if isinstance(target, dict) else list(range(len(target)))
        key = data.draw(st.sampled_from(keys))
        if not isinstance(target[key], dict | list) or data.draw(st.booleans()):
            target[key] = data.draw(JSON)
            break
        target = target[key]
    try:
        lock = parse_lock(yaml.safe_dump(content), Path("conda-lock.yml"))
    except InputError as problem:
        assert problem.message
    else:
        assert all(package.sha256 for package in lock.packages)


# conda-lock leaves out what is called like a virtual package (`__glibc`).
NAMES = st.from_regex(r"(?!__)[a-z_][a-z0-9_.-]{0,8}[a-z0-9]", fullmatch=True).filter(
    lambda name: ".." not in name
)
VERSIONS = st.from_regex(
    r"([0-9]!)?[0-9]{1,3}(\.[0-9]{1,3}){0,3}([a-z][0-9])?(\+cu[0-9]{3})?", fullmatch=True
)
BUILDS = st.from_regex(r"[a-z0-9_.]{1,12}", fullmatch=True)
HEX = st.integers(min_value=0)


@st.composite
def locked(draw: st.DrawFn) -> list[dict[str, Any]]:
    names = draw(st.lists(NAMES, min_size=1, max_size=6, unique=True))
    result = []
    for name in names:
        for platform in ("linux-64", "osx-arm64"):
            version, build = draw(VERSIONS), draw(BUILDS)
            subdir = draw(st.sampled_from([platform, "noarch"]))
            ending = draw(st.sampled_from([".conda", ".tar.bz2"]))
            quoted = f"{name}-{version}-{build}".replace("!", "%21").replace("+", "%2B")
            result.append(
                {
                    "name": name,
                    "version": version,
                    "manager": "conda",
                    "platform": platform,
                    "dependencies": {other: draw(VERSIONS) for other in draw(st.sets(NAMES, max_size=2))},
                    "url": f"https://conda.anaconda.org/c/{subdir}/{quoted}{ending}",
                    "hash": {
                        "md5": f"{draw(HEX) % (1 << 128):032x}",
                        "sha256": f"{draw(HEX) % (1 << 256):064x}",
                    },
                    "categories": draw(st.sampled_from([{"main"}, {"dev"}, {"dev", "docs"}])),
                }
            )
    return result


@given(packages=locked())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_reads_whatever_conda_lock_writes(
    packages: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    from conda_lock.lockfile import parse_conda_lock_file, write_conda_lock_file
    from conda_lock.lockfile.v2prelim.models import LockedDependency, Lockfile, LockMeta

    content = Lockfile(
        package=[LockedDependency.model_validate(package) for package in packages],
        metadata=LockMeta(
            content_hash={"linux-64": "a", "osx-arm64": "b"},
            channels=["conda-forge"],  # type: ignore[list-item]
            platforms=["linux-64", "osx-arm64"],
            sources=["environment.yml"],
            custom_metadata={"envkit-spec": "0" * 64},
        ),
    )
    path = tmp_path_factory.getbasetemp() / "written.yml"
    write_conda_lock_file(content, path, metadata_choices=None)
    ours = {(package.name, package.platform): package for package in read_lock(path).packages}
    theirs = {(package.name, package.platform): package for package in parse_conda_lock_file(path).package}
    assert ours.keys() == theirs.keys() == {(package["name"], package["platform"]) for package in packages}
    for key, package in ours.items():
        other = theirs[key]
        assert (package.version, package.url, package.sha256, package.md5) == (
            other.version,
            other.url,
            other.hash.sha256,
            other.hash.md5,
        )
        assert dict(package.depends) == other.dependencies
        assert package.category in other.categories
