"""An environment.yml from a stranger: locked in canonical words, or refused with the line."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest
import yaml

from envkit.errors import InputError
from envkit.lock.formats import Foreign, read_spec

ROOT = Path(__file__).parents[2]
CASES = Path(__file__).parents[2].parent / "shared" / "cases"
WHEELS = "https://download.pytorch.org/whl"
needs_cases = pytest.mark.skipif(not CASES.is_dir(), reason="the cases are not beside this checkout")

EXPORT = """\
name: base
channels:
  - https://mirrors.tuna.tsinghua.edu.cn/anaconda/cloud/pytorch/
  - https://mirrors.ustc.edu.cn/anaconda/pkgs/main/
  - defaults
  - https://conda.corp.example/team
dependencies:
  - _libgcc_mutex=0.1=main
  - python=3.10.14=h955ad1f_1
  - numpy >=1.20, <2
  - numpy=1.26
  - scipy  # [linux]
  - https://mirrors.sustech.edu.cn/anaconda-extra/cloud/nvidia/label/cuda-12.1.1::cuda-toolkit
  - pip:
    - torch==2.3.0+cu121  # 显卡
    - requests==2.31.0
    - requests>=2
prefix: /home/张三/miniconda3
variables:
  DATA: /srv
"""


@pytest.fixture
def read(tmp_path: Path):
    def read(text: str | bytes, name: str = "environment.yml") -> Foreign:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_spec(path)

    return read


def said(foreign: Foreign) -> str:
    return "\n".join(str(note) for note in foreign.notes)


def test_an_export_full_of_mirrors(read) -> None:
    found = read(EXPORT)
    document = yaml.safe_load(found.text)
    assert found.channels == (
        "pytorch", "pkgs/main", "pkgs/r", "https://conda.corp.example/team", "nvidia/label/cuda-12.1.1",
    )  # fmt: skip
    assert document["channels"] == [*found.channels, "nodefaults"]
    assert document["pip-repositories"] == [f"{WHEELS}/cu121"]
    assert document["dependencies"] == [
        "_libgcc_mutex=0.1=main",
        "python=3.10.14=h955ad1f_1",
        "numpy>=1.20,<2,1.26.*",
        "scipy",
        "nvidia/label/cuda-12.1.1::cuda-toolkit",
        {"pip": ["torch==2.3.0+cu121", "requests==2.31.0,>=2"]},
    ]
    assert "scipy  # [linux]" in found.text
    assert (found.name, found.platforms, found.accelerator) == ("base", ("linux-64",), "12.1")
    assert found.variables == {"DATA": "/srv"}
    assert "tuna" not in found.text and "张三" not in found.text and "prefix" not in found.text
    notes = said(found)
    for words in (
        "line 3: https://mirrors.tuna.tsinghua.edu.cn/anaconda/cloud/pytorch/ is a mirror of the channel py",
        "line 4: pkgs/main means Anaconda's own channels",
        "line 6: https://conda.corp.example/team is no channel that envkit knows",
        "line 11: numpy stands twice (first in line 10)",
        f"line 15: torch==2.3.0+cu121 is on {WHEELS}/cu121 alone",
        "line 18: `prefix:` is a folder of one machine",
        "line 19: a lock holds no variables",
    ):
        assert words in notes


def test_the_text_that_comes_out_says_the_same_when_read_again(read) -> None:
    once = read(EXPORT)
    again = read(once.text)
    assert again.text == once.text
    assert again.channels == once.channels
    assert again.pip == once.pip


@needs_cases
def test_channels_by_name_and_label() -> None:
    """Cases 03 and 04: no mirror gets into the spec, and a label counts as a channel."""
    third, fourth = (read_spec(CASES / number / "environment.yml") for number in ("03", "04"))
    assert third.channels == ("pytorch", "nvidia", "conda-forge")
    assert "tuna" not in third.text
    assert fourth.channels[1:3] == ("nvidia/label/cuda-12.1.1", "conda-forge/label/pytorch_rc")
    assert "nvidia/label/cuda-12.1.1::cuda-toolkit" in fourth.text


@needs_cases
def test_empty_channels_are_refused_and_nodefaults_is_rendered() -> None:
    """Case 05."""
    assert yaml.safe_load(read_spec(CASES / "05/environment.yml").text)["channels"] == [
        "conda-forge",
        "nodefaults",
    ]
    with pytest.raises(InputError, match="names no channel") as caught:
        read_spec(CASES / "05/environment-empty-channels.yml")
    assert caught.value.line == 1


@needs_cases
@pytest.mark.parametrize(
    ("number", "indexes", "default_index", "accelerator"),
    [(1, (f"{WHEELS}/cu121",), False, "12.1"), (2, (), True, None), (3, (f"{WHEELS}/cu121",), True, "12.1")],
)
def test_indexes_among_pip_requirements_are_lifted(
    number: int, indexes: tuple[str, ...], default_index: bool, accelerator: str | None
) -> None:
    """Case 06: the mirror is transport, the index that is meant stays."""
    found = read_spec(CASES / f"06/environment-{number}.yml")
    assert (found.pip.indexes, found.pip.default_index) == (indexes, default_index)
    assert found.accelerator == accelerator
    document = yaml.safe_load(found.text)
    assert tuple(document.get("pip-repositories", ())) == indexes
    assert document.get("allow-pypi-requests", True) is default_index
    assert document["dependencies"][-1] == {"pip": ["torch==2.3.0"]}


@needs_cases
@pytest.mark.parametrize(
    ("number", "option"), [(4, "-f https://mirrors.aliyun.com"), (5, "-r requirements.txt")]
)
def test_folders_and_files_among_pip_requirements_are_refused(number: int, option: str) -> None:
    """Case 06."""
    path = CASES / f"06/environment-{number}.yml"
    with pytest.raises(InputError) as caught:
        read_spec(path)
    assert (caught.value.path, caught.value.line) == (path, 6)
    assert str(caught.value).startswith(f"{path}:6: {option}")
    assert (
        f"--extra-index-url {WHEELS}/cu121" if number == 4 else "--file requirements.txt"
    ) in caught.value.hint


REFUSALS = {
    "no dependencies": ("channels: [conda-forge]\n", None, "`dependencies:` is missing"),
    "no packages": ("channels: [conda-forge]\ndependencies:\n", None, "no packages"),
    "a list": ("- python\ndependencies:\n", 2, "could not find|did not find|expected"),
    "a mapping for a package": ("dependencies:\n- numpy\n- python: 3.9\n", 3, "`python: 3.9` is neither"),
    "a tab": ("dependencies:\n\t- python\n", 2, "cannot start any token"),
    "a key twice": ("dependencies: [a]\nchannels: [x]\ndependencies: [b]\n", 3, "stands twice"),
    "an archive": ("dependencies:\n- https://h.example/c/linux-64/a-1-0.conda\n", 2, "is an archive"),
    "a pip requirement": ("dependencies:\n- torch~~2\n", 2, "is no conda package"),
    "an at sign": ("dependencies:\n- python@3.9\n", 2, "is no conda package"),
    "a template": ("dependencies:\n- python={{ py }}\n", 2, "is a template"),
    "a bracket channel": ("dependencies:\n- numpy[channel=x]\n", 2, "names a channel in brackets"),
    "a contradiction": ("dependencies:\n- a=1=h0_0\n- a=2\n", 3, "contradicts a=1=h0_0 in line 2"),
    "an empty entry": ("dependencies:\n- a\n-\n", 3, "is empty"),
    "channels of mappings": ("channels: {a: b}\ndependencies: [a]\n", 1, "must be a list"),
    "no channel at all": ("channels: ['a b']\ndependencies: [a]\n", 1, "not the name of a channel"),
    "an ftp channel": ("channels: ['ftp://x/y']\ndependencies: [a]\n", 1, "is no channel"),
    "an unknown platform": ("platforms: [linux]\ndependencies: [a]\n", 1, "is no platform"),
    "editable": ("dependencies:\n- pip\n- pip:\n  - -e .\n", 4, "installed in place"),
    "a path": ("dependencies:\n- pip:\n  - ./wheels/x-1-py3-none-any.whl\n", 3, "a file of one machine"),
    "a frozen path": ("dependencies:\n- pip:\n  - numpy @ file:///h/x\n", 3, "a file of one machine"),
    "a repository": ("dependencies:\n- pip:\n  - git+https://github.com/o/r\n", 3, "no hash to lock"),
    "a named repository": ("dependencies:\n- pip:\n  - x @ git+https://h.example/r\n", 3, "no hash to lock"),
    "one equals sign": ("dependencies:\n- pip:\n  - numpy=1.2\n", 3, "is no requirement"),
    "constraints": ("dependencies:\n- pip:\n  - -c pins.txt\n", 3, "constraints of another file"),
    "no index": ("dependencies:\n- pip:\n  - --no-index\n", 3, "cannot be locked"),
    "an unknown option": ("dependencies:\n- pip:\n  - --frobnicate\n", 3, "cannot be locked"),
    "an index of this machine": ("dependencies:\n- pip:\n  - -i /srv/wheels\n", 3, "is no index"),
    "option and package": ("dependencies:\n- pip:\n  - -i https://h.example torch\n", 3, "in one line"),
    "a bare wheel": (
        f"dependencies:\n- pip:\n  - {WHEELS}/cu121/torch-2.3.0%2Bcu121-cp311-cp311-linux_x86_64.whl\n",
        3,
        "has no sha256",
    ),
    "two systems": ("dependencies:\n- pywin32\n- _libgcc_mutex\n", 3, "exists on win-64 alone and"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_what_cannot_be_locked_is_refused_with_its_line(read, case: str) -> None:
    text, line, words = REFUSALS[case]
    with pytest.raises(InputError, match=words) as caught:
        read(text)
    assert caught.value.line == line
    assert caught.value.hint


def test_hints_name_what_to_write_instead(read) -> None:
    for case, words in {
        "a mapping for a package": "`python=3.9`",
        "a tab": "spaces",
        "one equals sign": "numpy==1.2",
        "a frozen path": "pip list --format=freeze",
        "a bare wheel": f"torch==2.3.0+cu121 and `--extra-index-url {WHEELS}/cu121`",
    }.items():
        with pytest.raises(InputError) as caught:
            read(REFUSALS[case][0])
        assert words in caught.value.hint


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_encodings_and_line_ends(read, encoding: str, ends: str) -> None:
    text = "# 环境\nname: t\nchannels:\n- conda-forge\ndependencies:\n- python=3.11\n- numpy  # [win]\n"
    raw = text.replace("\n", ends).encode(encoding)
    found = read((b"\xfe\xff" + raw) if encoding == "utf-16-be" else raw)
    assert found.channels == ("conda-forge",)
    assert "- numpy  # [win]\n" in found.text


def test_an_encoding_that_does_not_say_so_is_refused_with_its_line(read) -> None:
    with pytest.raises(InputError, match="not UTF-8") as caught:
        read("name: t\nprefix: 环境\n".encode("gb18030"))
    assert caught.value.line == 2
    assert "iconv -f GB18030" in caught.value.hint
    with pytest.raises(InputError, match="UTF-16 without its mark"):
        read("name: t\n".encode("utf-16-le"))


def test_a_windows_export_is_locked_for_windows(read) -> None:
    found = read("name: w\nchannels: [conda-forge]\ndependencies:\n- vs2015_runtime=14.3\n- python=3.11\n")
    assert found.platforms == ("win-64",)
    assert "line 4: vs2015_runtime exists on win-64 alone" in said(found)


def test_no_channels_and_no_name(read) -> None:
    found = read("dependencies: [python]\n", "my project.yml")
    assert (found.channels, found.name) == (("conda-forge",), "my-project")
    assert "no channels are named" in said(found)


def test_selectors_that_conda_lock_does_not_know_are_named(read) -> None:
    found = read("channels: [conda-forge]\ndependencies:\n- a  # [py>36]\n- b  # see [1] for more\n")
    assert "line 3: the selector [py>36] is not understood" in said(found)
    assert "- b\n" in found.text


@pytest.mark.parametrize(
    ("written", "taken"),
    [
        ("numpy", "numpy"),
        ("NumPy", "numpy"),
        ("numpy 1.26", "numpy 1.26"),
        ("numpy 1.26.4 py311h64a7726_0", "numpy=1.26.4=py311h64a7726_0"),
        ("numpy==1.26.4=py311h64a7726_0", "numpy=1.26.4=py311h64a7726_0"),
        ("python = 3.9", "python=3.9"),
        ("numpy >= 1.2 , < 2", "numpy>=1.2,<2"),
        ("numpy >=1.2 <2", "numpy>=1.2,<2"),
        ("pytorch=2.1.*=*cuda*", "pytorch=2.1.*=*cuda*"),
        ("numpy[version='>=1.2',build=py311*]", "numpy[version='>=1.2',build=py311*]"),
        ("conda-forge/linux-64::numpy", "conda-forge::numpy"),
        ("defaults::numpy", "pkgs/main::numpy"),
        ("python!=3.9.7|>3.10", "python!=3.9.7|>3.10"),
        ("__glibc>=2.17", "__glibc>=2.17"),
    ],
)
def test_one_package_as_people_write_it(read, written: str, taken: str) -> None:
    pytest.importorskip("conda_lock")
    from conda_lock.src_parser.conda_common import conda_spec_to_versioned_dep

    found = read(f'channels: [conda-forge]\ndependencies:\n- "{written}"\n')
    (spec,) = yaml.safe_load(found.text)["dependencies"]
    assert spec == taken
    assert conda_spec_to_versioned_dep(spec, "main").name in written.lower()


def test_conda_lock_parses_what_comes_out(tmp_path: Path, read) -> None:
    make_lock_spec = pytest.importorskip("conda_lock.src_parser").make_lock_spec
    found = read(EXPORT)
    path = tmp_path / "out" / "environment.yml"
    path.parent.mkdir()
    path.write_text(found.text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parsed = make_lock_spec(
            src_files=[path], platform_overrides=["linux-64", "win-64"], mapping_url=_name_map()
        )
    assert [channel.url for channel in parsed.channels] == list(found.channels)
    assert [repository.url for repository in parsed.pip_repositories] == [f"{WHEELS}/cu121"]
    names = {platform: {each.name for each in wanted} for platform, wanted in parsed.dependencies.items()}
    assert names["linux-64"] - names["win-64"] == {"scipy"}
    assert {"torch", "requests", "pip"} <= names["win-64"]


def _name_map() -> str:
    from envkit.lock.pypi_names import conda_lock_map

    return conda_lock_map()


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("pytorch <=2.5.1 *cuda11.8*", "pytorch <=2.5.1 *cuda11.8*"),
        ("pytorch >=2.0, <2.6 *cuda*", "pytorch >=2.0,<2.6 *cuda*"),
        ("pytorch >=2.0 <2.6 *cuda*", "pytorch >=2.0,<2.6 *cuda*"),
        ("pytorch >=2.0|1.13.* *cuda*", "pytorch >=2.0|1.13.* *cuda*"),
        ("pytorch =2.5 *cuda*", "pytorch =2.5 *cuda*"),
        ("pytorch != 2.1 *cuda*", "pytorch !=2.1 *cuda*"),
        ("pytorch 2.5.* *cuda*", "pytorch=2.5.*=*cuda*"),
        ("pytorch ==2.5.1 *cuda*", "pytorch=2.5.1=*cuda*"),
        ("pytorch>=2.0=*cuda*", "pytorch>=2.0=*cuda*"),
        ("pytorch =1.2|=1.3", "pytorch=1.2|=1.3"),
    ],
)
def test_a_version_of_any_form_stands_beside_a_build(read, written: str, kept: str) -> None:
    found = read(f"channels: [pytorch]\ndependencies:\n  - {json.dumps(written)}\n")
    assert yaml.safe_load(found.text)["dependencies"] == [kept]


@pytest.mark.parametrize(
    "path", sorted(ROOT.glob("environments/*/environment.yml")), ids=lambda path: path.parent.name
)
def test_what_envkit_renders_it_reads(path: Path) -> None:
    """Every spec means to `--file` what it meant where it was rendered."""
    from rattler import MatchSpec

    def meant(specs: list[object]) -> list[tuple[str, ...]]:
        parsed = (MatchSpec(spec, strict=False) for spec in specs if isinstance(spec, str))
        return sorted((str(spec.name), str(spec.version), str(spec.build)) for spec in parsed)

    written = yaml.safe_load(path.read_text())
    found = yaml.safe_load(read_spec(path).text)
    assert meant(found["dependencies"]) == meant(written["dependencies"])
    assert found["channels"] == [
        *(name for name in written["channels"] if name != "nodefaults"),
        "nodefaults",
    ]
