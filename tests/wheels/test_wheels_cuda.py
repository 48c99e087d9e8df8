"""CUDA builds in the wheel channel: where they are looked for, what is demanded of them, what they become.

Small wheels on loopback stand for PyTorch's index and its mirrors.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from wheel_shelf import ABI, PLATFORM, Heard, Site, add_pip, make_wheel, site, variant

from envkit import wheels
from envkit.channels import table
from envkit.errors import Error, InputError
from envkit.files import parse_json, sha256_of
from envkit.model import Variant
from envkit.wheels import pip
from envkit.wheels.indexes import torch_indexes
from envkit.wheels.plan import WheelPlan

TAG = f"{ABI}-{ABI}-{PLATFORM.replace('2_17', '2_28')}"
CUDA = "12.6"
RUNTIME = "nvidia-cuda-runtime-cu12==12.6.77; platform_system == 'Linux'"


def torch_wheels(folder: Path, local: str = "+cu126", *, major: str = "12") -> tuple[Path, ...]:
    """A torch of one CUDA, and what it requires of NVIDIA's."""
    folder.mkdir(parents=True, exist_ok=True)
    plain = "py3-none-manylinux2014_x86_64" if os.uname().machine == "x86_64" else "py3-none-any"
    cublas = f"nvidia-cublas-cu{major}==12.6.4.1; platform_system == 'Linux'"
    return (
        make_wheel(
            folder, "torch", f"2.99.0{local}", tag=TAG,
            requires=[RUNTIME.replace("cu12", f"cu{major}"), cublas],
            files={"torch/big.bin": os.urandom(200_000)},
        ),
        make_wheel(folder, f"nvidia-cuda-runtime-cu{major}", "12.6.77", tag=plain),
        make_wheel(folder, f"nvidia-cublas-cu{major}", "12.6.4.1", tag=plain),
    )  # fmt: skip


@pytest.fixture
def torch_index(tmp_path: Path) -> Iterator[Site]:
    """A copy of PyTorch's index, with hashes."""
    with site() as made:
        made.add("whl/cu126", *torch_wheels(tmp_path / "made"))
        yield made


@pytest.fixture
def own_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """What the user's pip is configured for: an index with pip, and a CPU build of torch."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    folder = tmp_path / "own"
    folder.mkdir()
    add_pip(folder)
    with site() as made:
        made.add("simple", *folder.glob("pip-*.whl"), make_wheel(folder, "torch", "2.99.0"))
        monkeypatch.setenv("PIP_INDEX_URL", f"{made.url}/simple")
        yield made


def cuda(version: str = CUDA) -> Variant:
    return replace(variant(version, "2.99.*"), name="wheels-cuda")


def asked(heard: Heard, *mirrors: str, extra: tuple[str, ...] = (), accelerator: str = CUDA) -> WheelPlan:
    return wheels.plan(
        cuda(accelerator), ["torch==2.99.*", *extra], observer=heard, mirrors=mirrors, only=True
    )


def unreachable() -> str:
    """A URL on loopback at which nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}/whl"


def test_the_users_own_configuration_comes_first(own_index: Site, torch_index: Site, tmp_path: Path) -> None:
    own_index.add("simple", *torch_wheels(tmp_path / "more"))
    heard = Heard()
    plan = asked(heard, f"{torch_index.url}/whl")
    assert plan.accelerator == "cu126"
    assert not torch_index.log, "nothing else is asked"
    assert plan.options == ()


def test_the_index_of_that_cuda_stands_in(own_index: Site, torch_index: Site) -> None:
    heard = Heard()
    plan = asked(heard, f"{torch_index.url}/whl")
    torch = plan.find("torch")
    assert torch is not None
    assert (torch.version, plan.accelerator) == ("2.99.0+cu126", "cu126")
    assert {item.key for item in plan.items} == {
        "torch",
        "nvidia-cuda-runtime-cu12",
        "nvidia-cublas-cu12",
        "pip",
    }
    assert all(item.sha256 for item in plan.items)
    assert torch.size and torch.size > 200_000
    assert f"trying {torch_index.url}/whl/cu126" in heard.notes[0]
    assert "4 wheels" in heard.notes[-1]


def test_a_mirror_that_nobody_answers_at_is_one_line(own_index: Site, torch_index: Site) -> None:
    heard, dead = Heard(), unreachable()
    plan = asked(heard, dead, f"{torch_index.url}/whl")
    assert plan.accelerator == "cu126"
    host = dead.split("/")[2]
    lines = [note for note in heard.notes if note.startswith(f"{host}:")]
    assert lines and all("pip reaches no package index" in line and "\n" not in line for line in lines)


@pytest.mark.slow
def test_where_no_place_has_it_each_is_named(own_index: Site, tmp_path: Path) -> None:
    with site() as wrong:
        wrong.add("whl/cu126", make_wheel(tmp_path, "torch", "2.99.0+cpu"))
        with pytest.raises(Error) as refused:
            asked(Heard(), unreachable(), f"{wrong.url}/whl")
    lines = refused.value.message.splitlines()
    assert "pip offers only torch 2.99.0, a CPU build" in lines[0]
    assert any("reaches no package index" in line for line in lines)
    assert any("torch 2.99.0+cpu, a build for cpu" in line for line in lines)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("local", "major", "reason"),
    [
        ("+cu121", "12", r"torch 2\.99\.0\+cu121, a build for cu121"),
        ("+cu126", "11", r"nvidia-c.*-cu11, which is for another CUDA than cu126"),
    ],
)
def test_another_cuda_is_refused(
    own_index: Site, tmp_path: Path, local: str, major: str, reason: str
) -> None:
    with site() as wrong:
        wrong.add("whl/cu126", *torch_wheels(tmp_path / "wrong", local, major=major))
        with pytest.raises(Error, match=reason):
            asked(Heard(), f"{wrong.url}/whl")


@pytest.mark.slow
def test_a_torchvision_of_another_build_is_refused(
    own_index: Site, torch_index: Site, tmp_path: Path
) -> None:
    own_index.add("simple", make_wheel(tmp_path, "torchvision", "0.99.0", requires=["torch==2.99.0"]))
    with pytest.raises(Error, match=r"torchvision 0\.99\.0, which is no cu126 build"):
        asked(Heard(), f"{torch_index.url}/whl", extra=("torchvision",))
    torch_index.add(
        "whl/cu126", make_wheel(tmp_path, "torchvision", "0.99.0+cu126", tag=TAG, requires=["torch==2.99.0"])
    )
    plan = asked(Heard(), f"{torch_index.url}/whl", extra=("torchvision",))
    assert plan.find("torchvision").version == "0.99.0+cu126"


@pytest.mark.slow
def test_a_newer_torch_of_another_index_does_not_win(
    own_index: Site, torch_index: Site, tmp_path: Path
) -> None:
    own_index.add("simple", make_wheel(tmp_path, "torch", "2.99.1"))
    assert asked(Heard(), f"{torch_index.url}/whl").find("torch").version == "2.99.0+cu126"


def test_a_build_without_a_label_is_known_by_its_runtime(own_index: Site, tmp_path: Path) -> None:
    """What the public index has: no local version, NVIDIA's wheels required."""
    own_index.files.pop("simple/torch/")
    own_index.add("simple", *torch_wheels(tmp_path / "plain", ""))
    vision = make_wheel(tmp_path, "torchvision", "0.99.0", tag=TAG, requires=["torch==2.99.0"])
    own_index.add("simple", vision)
    plan = asked(Heard(), unreachable(), extra=("torchvision",))
    assert plan.accelerator == "cu126"
    channel = wheels.build(plan, cache=tmp_path / "cache", observer=Heard())
    records = packages(channel)
    assert records["pytorch"]["build"].startswith("cuda126_")
    assert records["torchvision"]["build"].startswith("cuda126_")
    text = wheels.spec(cuda(), plan, channel).text
    assert "pytorch=2.99.*=*cuda126*" in yaml.safe_load(text)["dependencies"]


def packages(channel: Path) -> dict[str, dict[str, object]]:
    found = {}
    for subdir in channel.iterdir():
        document = parse_json((subdir / "repodata.json").read_bytes())
        found |= {record["name"]: record for record in document["packages.conda"].values()}
    return found


def test_what_becomes_of_them(own_index: Site, torch_index: Site, tmp_path: Path) -> None:
    plan = asked(Heard(), f"{torch_index.url}/whl")
    channel = wheels.build(plan, cache=tmp_path / "cache", observer=Heard())
    records = packages(channel)
    torch = records["pytorch"]
    assert torch["build"].startswith("cuda126_py")
    assert "nvidia-cublas-cu12 ==12.6.4.1" in torch["depends"]
    assert "__cuda >=12" in torch["depends"], "a driver runs every runtime of its major version"
    assert "__glibc >=2.28" in torch["depends"]
    if os.uname().machine == "x86_64":
        assert "__glibc >=2.17" in records["nvidia-cublas-cu12"]["depends"]
    spec = wheels.spec(cuda(), plan, channel)
    assert "__cuda=12.6=0" in {str(one) for one in spec.virtual_packages[plan.platform]}
    assert wheels.unpacked(plan, cache=tmp_path / "cache") == ()


def test_a_flat_listing_without_hashes(own_index: Site, tmp_path: Path) -> None:
    files = torch_wheels(tmp_path / "flat")
    with site() as flat:
        flat.listing("whl/cu126", *files)
        heard, cache = Heard(), tmp_path / "cache"
        plan = asked(heard, f"{flat.url}/whl")
        assert plan.options[0] == "--find-links"
        assert {item.key for item in plan.items} >= {"torch", "nvidia-cublas-cu12"}
        if pip.version() >= (23, 3):
            assert not plan.find("torch").sha256
            assert flat.got(files[0].name) < 100_000, "only its end was read"
        channel = wheels.build(plan, cache=cache, observer=heard)
        again = wheels.build(plan, cache=cache, observer=Heard())
        assert again == channel
        assert packages(channel)["pytorch"]["build"].startswith("cuda126_")


def bare(plan: WheelPlan) -> WheelPlan:
    """The plan as a pip reports it that downloads nothing, of an index that gives no hashes."""
    items = (replace(item, sha256="") if item.key != "pip" else item for item in plan.items)
    return replace(plan, items=tuple(items))


@pytest.mark.slow
def test_hashes_that_no_index_gives_are_computed_and_then_demanded(own_index: Site, tmp_path: Path) -> None:
    files = torch_wheels(tmp_path / "flat")
    with site() as flat:
        flat.listing("whl/cu126", *files)
        plan = bare(asked(Heard(), f"{flat.url}/whl"))
        cache, heard = tmp_path / "cache", Heard()
        assert {item.key for item in wheels.unpacked(plan, cache=cache)} == {item.key for item in plan.items}
        channel = wheels.build(plan, cache=cache, observer=heard)
        assert [
            note for note in heard.notes if "no index gives a sha256 of" in note and files[0].name in note
        ]
        known = json.loads((cache / "wheels" / "hashes.json").read_text())
        assert sha256_of(files[0]) in known.values()

        flat.log.clear()
        assert wheels.unpacked(plan, cache=cache) == ()
        assert wheels.build(plan, cache=cache, observer=Heard()) == channel
        assert not flat.got(".whl"), "nothing comes twice"

        # The same name and size with other bytes is noticed, once it has to be packed anew.
        raw = files[0].read_bytes()
        flat.files[f"whl/cu126/{files[0].name}"] = raw[:300] + bytes([raw[300] ^ 0xFF]) + raw[301:]
        for folder in (cache / "wheels" / "packages").iterdir():
            if list(folder.glob("pytorch-*")):
                (folder / "record.json").unlink()
        for path in (cache / "wheels" / "channels").rglob("pytorch-*"):
            path.unlink()
        with pytest.raises(Error, match=r"(?i)hash"):
            wheels.build(plan, cache=cache, observer=Heard())


def test_links_that_lead_elsewhere_are_told(own_index: Site, torch_index: Site, tmp_path: Path) -> None:
    """sjtug's index of 2022 to 2026, NJU's of 2026: pages of the mirror, files of download.pytorch.org."""
    with site() as mirror:
        away = torch_index.url.replace("127.0.0.1", "localhost")
        mirror.add("whl/cu126", *sorted((tmp_path / "made").iterdir()), links=away, keep=False)
        heard = Heard()
        plan = asked(heard, f"{mirror.url}/whl")
        assert plan.accelerator == "cu126"
    assert [note for note in heard.notes if "links to localhost: its wheels come from there" in note]


def test_a_user_who_forbids_every_index_is_heard(shelf: Path, heard: Heard, torch_index: Site) -> None:
    make_wheel(shelf, "torch", "2.99.0")
    with pytest.raises(Error, match="a CPU build"):
        asked(heard, f"{torch_index.url}/whl")
    assert not torch_index.log
    assert not heard.notes


def test_places_in_order() -> None:
    facts = table()
    names = [index.name for index in torch_indexes("cu126")]
    hosts = [facts.mirrors[name].host for name in ("nju", "sjtug", "aliyun")]
    assert names == ["download.pytorch.org", *hosts]
    first = torch_indexes("cu126", ["nju"])
    assert first[0].url == f"https://{hosts[0]}/pytorch/whl/cu126"
    assert first[0].beside == ("--extra-index-url", first[0].url)
    assert [index.name for index in first] == [hosts[0], "download.pytorch.org", *hosts[1:]]
    assert [index.name for index in torch_indexes("cu126", ["nju"], only=True)] == [hosts[0]]
    assert [index.name for index in torch_indexes("cpu", only=True)] == hosts
    aliyun = torch_indexes("cu126", ["aliyun"])[0]
    assert aliyun.alone == ("--no-index", "--find-links", "https://mirrors.aliyun.com/pytorch-wheels/cu126/")
    assert [index.flat for index in torch_indexes("cu126", ["http://h.example/whl"], only=True)] == [
        False,
        True,
    ]


@pytest.mark.parametrize("word", ["tuna", "nobody", "file:///nowhere/at/all"])
def test_what_has_no_such_wheels_is_bad_input(word: str) -> None:
    with pytest.raises(InputError) as refused:
        torch_indexes("cu126", [word])
    assert refused.value.hint
