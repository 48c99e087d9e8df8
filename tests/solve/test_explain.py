"""Why there is no lock: in a few lines, with what is lacking, and a change that does solve."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from small_specs import canonical, make_spec, repodata_of
from tinychannel import TinyPackage, write_channel

from envkit.errors import Findings
from envkit.model import Spec
from envkit.solve import lock_text
from envkit.solve.conflict import conflict
from envkit.solve.engine import Index
from envkit.solve.reason import SHORT
from envkit.solve.relax import SECONDS
from envkit.solve.shelf import Shelf

ROOT = Path(__file__).parents[2]
SHARED = Path(os.environ.get("ENVKIT_SHARED", ROOT.parent / "shared"))

PYTHONS = [TinyPackage("python", version) for version in ("3.10.1", "3.11.9", "3.12.4")]
TORCH = [
    TinyPackage("pytorch", "2.1.0", "py3.11_cuda11.8_0", depends=["python 3.11.*", "pytorch-cuda 11.8.*"]),
    TinyPackage("pytorch", "2.4.0", "py3.12_cuda12.4_0", depends=["python 3.12.*", "pytorch-cuda 12.4.*"]),
    TinyPackage("pytorch", "2.4.0", "py3.12_cpu_0", depends=["python 3.12.*"]),
    TinyPackage("pytorch-cuda", "11.8"),
    TinyPackage("pytorch-cuda", "12.4"),
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_channel(
        tmp_path / "conda-forge",
        *PYTHONS,
        *TORCH,
        TinyPackage("numpy", "2.0", "py311_0"),
        TinyPackage("numpy", "1.26", "py311_0"),
        TinyPackage("modern", "1.0", depends=["__glibc >=2.34"]),
        TinyPackage("needy", "1.0", depends=["absent >=3"]),
    )
    return tmp_path


def refusal(spec: Spec, root: Path) -> Findings:
    with pytest.raises(Findings) as caught:
        lock_text(spec, repodata=repodata_of(root), canonical=canonical)
    found = caught.value
    assert len(found.message.splitlines()) <= 14
    assert found.message.startswith(f"{spec.variant.name} cannot be solved for linux-64:\n")
    assert found.details["platform"] == "linux-64"
    return found


@pytest.mark.parametrize(
    ("dependencies", "kind", "message", "hint"),
    [
        (
            ["nunpy"],
            "name",
            "conda-forge has no package 'nunpy'; it has numpy",
            "numpy 2.0 in place of `nunpy`",
        ),
        (
            ["numpy=1.25"],
            "version",
            "conda-forge has no numpy 1.25.*; the nearest versions are 1.26",
            "numpy 2.0 in place of `numpy 1.25.*`",
        ),
        (
            ["numpy=2.0=py39*"],
            "build",
            "no such build of numpy ==2.0; there are 2.0 py311_0",
            "numpy 2.0 in place of",
        ),
        (["unheard-of"], "name", "conda-forge has no package 'unheard-of'", "it solves without unheard-of"),
        (["needy"], "name", "conda-forge has no package 'absent'", ""),
        (
            ["modern"],
            "machine",
            "__glibc >=2.34 is asked for, the machines of this platform are said to have __glibc 2.28",
            "it solves for machines with glibc 2.34 or newer",
        ),
    ],
)
def test_what_is_lacking_is_named(
    root: Path, dependencies: Sequence[str], kind: str, message: str, hint: str
) -> None:
    found = refusal(make_spec(*dependencies), root)
    assert message in found.message
    assert hint in found.hint
    assert "environments/matrix.yaml" in found.hint
    assert found.details["lacking"][0]["kind"] == kind


def test_versions_that_exclude_each_other_are_a_chain(root: Path) -> None:
    found = refusal(make_spec("python=3.12", "pytorch=2.1", "numpy"), root)
    assert "python 3.11.*" in found.message
    assert found.details["proposal"]["kind"] == "specs"
    assert "pytorch 2.4.0 in place of `pytorch 2.1.*`" in found.hint


@pytest.fixture
def index(tmp_path: Path) -> Index:
    """Two packages that a third one, which both need, keeps apart; and one that has no part in it."""
    write_channel(
        tmp_path / "own",
        TinyPackage("deep", "1.0"),
        TinyPackage("deep", "2.0"),
        TinyPackage("middle", "1.0", depends=["deep 1.*"]),
        TinyPackage("left", "1.0", depends=["middle"]),
        TinyPackage("right", "1.0", depends=["deep 2.*"]),
        TinyPackage("aside", "1.0"),
    )
    return Shelf(repodata_of(tmp_path), canonical).index(["own"], "linux-64")


def test_the_specs_that_exclude_each_other_are_all_named(index: Index, tmp_path: Path) -> None:
    specs = ["aside", "left", "right"]
    for named in ((), ("left",), ("aside", "right")):
        assert conflict(specs, index, (), named=named) == ("left", "right")
    assert conflict(["aside", "left"], index, ()) == ()
    assert conflict(["left", "absent", "right"], index, ()) in (("absent",), ("left", "right"))
    assert conflict(["left", "absent", "right"], index, (), named=["absent"]) == ("absent",)
    assert conflict(specs, index, (), seconds=0) == (), "what is not known in time is not said"
    found = refusal(make_spec(*specs, channels=["own"]), tmp_path)
    assert found.details["conflict"] == ["left", "right"]
    assert "left" in found.message and "right" in found.message


def test_a_side_that_the_chain_does_not_come_to_is_told(tmp_path: Path) -> None:
    """Two chains so long that the lines end within the first."""
    packages = [TinyPackage("deep", "1.0"), TinyPackage("deep", "2.0"), TinyPackage("aside", "1.0")]
    for side, version in (("left", 1), ("right", 2)):
        needs = [f"{side}{number}" for number in range(12)] + [f"deep {version}.*"]
        for name, need in zip([side, *needs], needs, strict=False):
            packages.append(TinyPackage(name, "1.0", depends=[need]))
    write_channel(tmp_path / "own", *packages)
    found = refusal(make_spec("aside", "left", "right=1.0", channels=["own"]), tmp_path)
    assert "these exclude each other: `left`, `right 1.0.*`" in found.message
    assert len(found.details["chain"]) > SHORT, "the data has all of it"
    assert "aside" not in found.message


def test_another_cuda_is_proposed_and_no_cpu_build_ever(root: Path) -> None:
    spec = make_spec("python=3.12", "pytorch=*=*cuda11.8*", "pytorch-cuda=11.8", cuda="11.8")
    found = refusal(spec, root)
    assert found.hint.startswith("it solves for CUDA 12.4 (torch 2.4.0)")
    assert found.details["proposal"]["cuda"] == "12.4"
    none = refusal(make_spec("python=3.10", "pytorch=*=*cuda11.8*", "pytorch-cuda=11.8", cuda="11.8"), root)
    assert "cpu" not in none.hint
    assert none.hint.startswith("it solves with python 3.11.9 in place of `python 3.10.*`")


def test_two_constraints_are_relaxed_where_one_is_not_enough(root: Path) -> None:
    found = refusal(make_spec("numpy=1.25", "python=3.13"), root)
    assert "numpy 2.0 in place of `numpy 1.25.*` and python 3.12.4 in place of `python 3.13.*`" in found.hint


def test_a_channel_is_never_proposed_unread(tmp_path: Path) -> None:
    """Nothing is said of a channel that could not be looked into."""
    write_channel(tmp_path / "own", TinyPackage("thing", depends=["absent"]))
    found = refusal(make_spec("thing", channels=["own"]), tmp_path)
    assert "conda-forge" not in found.hint
    write_channel(tmp_path / "conda-forge", TinyPackage("absent"))
    found = refusal(make_spec("thing", channels=["own"]), tmp_path)
    assert found.hint.startswith("it solves with conda-forge as a further channel")
    assert found.details["proposal"]["channels"] == ["own", "conda-forge"]


def test_the_cause_is_told_and_not_the_first_of_many_lines(tmp_path: Path) -> None:
    """torchvision has a build for this torch with another Python only."""
    packages = [TinyPackage("python", f"3.{minor}.1") for minor in range(9, 14)]
    for minor in range(9, 14):
        needs = [f"python 3.{minor}.*"]
        packages += [
            TinyPackage("pytorch", "2.5.1", f"cuda126_py3{minor}", depends=needs),
            TinyPackage("pytorch", "2.7.1", f"cpu_py3{minor}", depends=needs),
            TinyPackage("torchvision", f"0.{minor}.0", f"cpu_py3{minor}", depends=[*needs, "pytorch 2.7.*"]),
        ]
    vision = TinyPackage("torchvision", "0.20.1", "py313", depends=["python 3.13.*", "pytorch 2.5.*"])
    write_channel(tmp_path / "conda-forge", *packages, vision)
    spec = make_spec("python=3.11", "pytorch=2.5.*=cuda126*", "torchvision", cuda="12.6", name="py311-cu126")
    found = refusal(spec, tmp_path)
    lines = found.message.splitlines()
    assert lines[-2:] == [
        "  these exclude each other: `python 3.11.*`, `pytorch 2.5.* cuda126*`, `torchvision`",
        "  with `pytorch 2.5.* cuda126*`, `torchvision` there is python 3.13 only",
    ]
    assert len(found.details["chain"]) > SHORT
    assert not any("more lines" in line for line in found.details["chain"])


def test_what_envkit_added_itself_says_why(tmp_path: Path) -> None:
    numpy = [TinyPackage("numpy", "1.26", depends=["python 3.12.*"]), TinyPackage("numpy", "2.0")]
    write_channel(tmp_path / "conda-forge", *PYTHONS, TinyPackage("python", "3.13.0"), *numpy)
    spec = make_spec("python=3.13", "numpy<2")
    spec = replace(spec, text=spec.text.replace("numpy<2", "numpy<2  # torch was built for NumPy 1"))
    assert "`numpy <2` stands there because: torch was built for NumPy 1" in refusal(spec, tmp_path).message
    theirs = refusal(replace(spec, origin="environment.yml"), tmp_path)
    assert "stands there" not in theirs.message, "a comment in somebody's file is theirs"
    assert "these exclude each other" in theirs.message or "python 3.13.*" in theirs.message


def test_what_was_asked_for_with_an_option_is_changed_with_one(root: Path) -> None:
    spec = replace(make_spec("python=3.12", "pytorch=2.1.*=*cuda*", cuda="12.4"), listed=False)
    found = refusal(spec, root)
    assert found.hint == "it solves with pytorch 2.4.0 in place of `pytorch 2.1.* *cuda*`: give `--torch 2.4`"
    assert "environments/matrix.yaml" in refusal(replace(spec, listed=True), root).hint


def test_another_torch_comes_before_another_cuda(tmp_path: Path) -> None:
    torches = [
        TinyPackage("pytorch", version, f"py3.12_cuda{cuda}_0", depends=[f"pytorch-cuda {cuda}.*"])
        for version, cuda in (("2.1.0", "11.8"), ("2.3.1", "11.8"), ("2.5.1", "11.8"), ("2.4.0", "12.4"))
    ]
    choosers = [TinyPackage("pytorch-cuda", cuda) for cuda in ("11.8", "12.4")]
    write_channel(tmp_path / "conda-forge", *PYTHONS, *torches, *choosers)
    wanted = ("python=3.12", "pytorch=2.4.*=*cuda11.8*", "pytorch-cuda=11.8")
    found = refusal(make_spec(*wanted, cuda="11.8", name="py311-pt23-cu118"), tmp_path)
    assert found.hint.startswith("it solves with pytorch 2.3.1 in place of `pytorch 2.4.* *cuda11.8*`")
    assert found.details["proposal"]["relaxed"] == {"pytorch 2.4.* *cuda11.8*": "pytorch 2.3.* *cuda11.8*"}


def test_a_newer_glibc_is_proposed_with_the_place_and_what_needs_none(tmp_path: Path) -> None:
    write_channel(
        tmp_path / "conda-forge",
        *PYTHONS,
        TinyPackage("pytorch", "2.4.0", "cuda118_0"),
        TinyPackage("pytorch", "2.5.0", "cuda118_0", depends=["__glibc >=2.34,<3.0.a0"]),
    )
    found = refusal(make_spec("python", "pytorch=2.5.*=cuda118*", cuda="11.8"), tmp_path)
    assert (
        "with glibc 2.34 or newer (raise `glibc` of the source conda-forge in environments/matrix.yaml)"
        in found.hint
    )
    assert "pytorch 2.4.0 in place of" in found.hint
    assert {one["kind"] for one in found.details["proposals"]} == {"machine", "specs"}


def test_names_that_are_imported_are_known_and_all_bad_ones_are_told(tmp_path: Path) -> None:
    write_channel(tmp_path / "conda-forge", *PYTHONS, TinyPackage("scikit-learn"), TinyPackage("pillow"))
    found = refusal(make_spec("sklearn", "PIL", "unheard-of"), tmp_path)
    for word in ("'sklearn'; it has scikit-learn", "'pil'; it has pillow", "'unheard-of'"):
        assert word in found.message
    assert "and without unheard-of" in found.hint
    many = refusal(make_spec(*(f"unheard-{number}" for number in range(2000))), tmp_path)
    assert "… and 1997 more" in many.message
    assert many.hint == "correct the names in environments/matrix.yaml"


ORDERS = SHARED / "cases" / "11" / "orders.txt"
EXPECTED = {
    3: ("nvidia has cuda-libraries, but conda-forge comes first", "pytorch, nvidia, conda-forge"),
    4: ("pytorch has pytorch, but conda-forge comes first", "pytorch, nvidia, conda-forge"),
    5: ("has no package 'mkl'", "conda-forge as a further channel"),
}


@pytest.mark.skipif(not ORDERS.exists(), reason="the cases are not here")
@pytest.mark.parametrize("number", sorted(EXPECTED))
def test_users_orders_of_channels(number: int) -> None:
    """Case 11: the three orders that fail, each with the order that does not."""
    order = ORDERS.read_text().split()[number - 1]
    specs = (SHARED / "cases" / "11" / "specs.txt").read_text().splitlines()
    spec = make_spec(*(f'"{line}"' for line in specs if line), channels=order.split(","), cuda="12.4")
    began = time.monotonic()
    found = refusal(spec, SHARED / "cases" / "11" / "channels")
    assert time.monotonic() - began < SECONDS + 5
    message, hint = EXPECTED[number]
    assert message in found.message
    assert hint in found.hint
    if number < 5:
        lock_text(
            make_spec(
                *(f'"{line}"' for line in specs if line),
                channels=found.details["proposal"]["channels"],
                cuda="12.4",
            ),
            repodata=repodata_of(SHARED / "cases" / "11" / "channels"),
            canonical=canonical,
        )


def test_a_channels_token_is_not_repeated(tmp_path: Path) -> None:
    folder = tmp_path / "t" / "hunter2" / "mine"
    write_channel(folder, *PYTHONS)
    spec = make_spec("python=3.99", channels=(folder.as_uri(),))
    with pytest.raises(Findings) as caught:
        lock_text(spec, repodata=lambda channel, subdir: folder / subdir / "repodata.json", canonical=str)
    said = f"{caught.value.message}{caught.value.hint}{caught.value.details}"
    assert "mine has no python 3.99.*" in said
    assert "hunter2" not in said
