"""What pip resolves, what is refused, and how its failures are told."""

from __future__ import annotations

import os
import re
import socket
import sys
from pathlib import Path

import pytest
from wheel_shelf import ABI, MINOR, PLATFORM, Heard, make_wheel, variant

from envkit import wheels
from envkit.errors import Error, ExitCode, InputError
from envkit.progress import Observer
from envkit.report.size import spoken
from envkit.wheels import ask, pip
from envkit.wheels.plan import Wheel, WheelPlan
from envkit.wheels.size import sizes


def cuda_torch(folder: Path, version: str = "2.99.0") -> None:
    make_wheel(folder, "torch", version, requires=["nvidia-cublas; sys_platform == 'linux'"])
    make_wheel(folder, "nvidia-cublas", "13.0", files={"big.bin": os.urandom(50_000)})


def index_of(folder: Path, wheel: Path) -> None:
    """Add a wheel to a package index that is a folder."""
    project = folder / wheel.name.split("-")[0].replace("_", "-")
    project.mkdir(parents=True, exist_ok=True)
    (project / "index.html").write_text(f'<a href="{wheel.as_uri()}">{wheel.name}</a>')


def test_pip_is_in_every_plan_and_sizes_are_said_first(shelf: Path, heard: Heard) -> None:
    path = make_wheel(shelf, "alone", files={"data.bin": os.urandom(2_000_000)})
    asked = wheels.plan(variant(), ["alone"], observer=heard)
    found = asked.find("alone")
    assert found is not None
    assert found.size == path.stat().st_size
    assert found.path == path
    assert [item.key for item in asked.items] == ["alone", "pip"]
    assert asked.python == MINOR
    assert asked.requested() == ("alone", "pip")
    assert asked.download_size == 0
    assert len(heard.notes) == 1
    assert "2 wheels" in heard.notes[0]
    assert "0 B to download" in heard.notes[0]


def test_a_build_without_cuda_requirements_is_a_cpu_build(shelf: Path, heard: Heard) -> None:
    make_wheel(shelf, "torch", "2.99.0", requires=["nvidia-ml-py; extra == 'watch'"])
    assert wheels.plan(variant(), ["torch"], observer=heard).accelerator == "cpu"


def test_a_cuda_build_nobody_asked_for_is_refused(shelf: Path, heard: Heard) -> None:
    cuda_torch(shelf)
    with pytest.raises(Error) as refused:
        wheels.plan(variant(), ["torch"], observer=heard)
    assert refused.value.code == ExitCode.ENVIRONMENT
    assert "torch 2.99.0" in refused.value.message
    assert re.search(r"\(\d MB with what it needs\)", refused.value.message)
    assert "pip config set" in refused.value.hint


def test_a_local_version_says_cuda_as_well(shelf: Path, heard: Heard) -> None:
    make_wheel(shelf, "torch", "2.99.0+cu130")
    asked = wheels.plan(variant(), ["torch"], observer=heard, allow_cuda=True)
    assert asked.accelerator == "cu130"
    assert wheels.plan(variant("13.0"), ["torch"], observer=heard).accelerator == "cu130"


def test_a_cpu_build_is_refused_where_cuda_was_asked_for(shelf: Path, heard: Heard) -> None:
    make_wheel(shelf, "torch", "2.99.0+cpu")
    with pytest.raises(Error, match="a CPU build"):
        wheels.plan(variant("11.8"), ["torch"], observer=heard)


def test_pytorchs_own_index_is_tried_before_giving_up(
    shelf: Path, heard: Heard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cuda_torch(shelf)
    apart = tmp_path / "apart"
    apart.mkdir()
    index_of(tmp_path / "whl" / "cpu", make_wheel(apart, "torch", "2.99.0+cpu"))
    index_of(tmp_path / "empty", make_wheel(apart, "unrelated"))
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", (tmp_path / "empty").as_uri())
    mirrors = [(tmp_path / "whl").as_uri()]
    asked = wheels.plan(variant(), ["torch"], observer=heard, mirrors=mirrors, only=True)
    assert asked.accelerator == "cpu"
    assert asked.find("torch").version == "2.99.0+cpu"
    assert asked.find("nvidia-cublas") is None
    assert asked.options[0] == "--extra-index-url"
    assert "trying" in heard.notes[0]


def test_pip_is_stopped_before_it_downloads_a_gpu_build() -> None:
    hear = ask._guard("cpu", Path("/"), Observer())
    hear("Collecting torch==2.14.*\n")
    hear("  Downloading torch-2.14.0-cp311-cp311-manylinux_2_28_x86_64.whl.metadata (29 kB)\n")
    hear("  Downloading torch-2.13.0%2Bcpu-cp311-cp311-manylinux_2_28_x86_64.whl (310.5 MB)\n")
    hear("Downloading numpy-2.4.6-cp311-cp311-manylinux_2_28_x86_64.whl (16.9 MB)\n")
    with pytest.raises(ask.Stopped) as stopped:
        hear("Downloading torch-2.14.0-cp311-cp311-manylinux_2_28_x86_64.whl (888.1 MB)\n")
    assert stopped.value.size > 888_000_000
    hear = ask._guard("cpu", Path("/"), Observer())
    with pytest.raises(ask.Stopped):
        hear("Downloading nvidia_cudnn_cu12-9.1.0-py3-none-manylinux2014_x86_64.whl (1.2 GB)\n")
    hear = ask._guard("cu118", Path("/"), Observer())
    hear("Downloading torch-2.5.1%2Bcu118-cp311-cp311-linux_x86_64.whl (838.4 MB)\n")
    hear("Downloading nvidia_cudnn_cu11-9.1.0-py3-none-manylinux2014_x86_64.whl (663.9 MB)\n")
    with pytest.raises(ask.Stopped):
        hear("Downloading torch-2.5.1-cp311-cp311-manylinux1_x86_64.whl (906.4 MB)\n")


def test_another_python_than_the_running_one_is_bad_input(shelf: Path, heard: Heard) -> None:
    from dataclasses import replace

    with pytest.raises(InputError, match=r"3\.99 was asked for"):
        wheels.plan(replace(variant(), python="3.99"), ["pip"], observer=heard)


def test_unknown_versions_are_told_plainly(shelf: Path, heard: Heard) -> None:
    make_wheel(shelf, "alone")
    with pytest.raises(pip.PipError) as failed:
        wheels.plan(variant(), ["alone>=7"], observer=heard)
    assert failed.value.kind == "missing"
    assert "alone" in failed.value.message
    assert failed.value.hint


def test_contradictions_are_told_plainly(shelf: Path, heard: Heard) -> None:
    make_wheel(shelf, "base", "1.0")
    make_wheel(shelf, "base", "2.0")
    make_wheel(shelf, "one", requires=["base<2"])
    make_wheel(shelf, "two", requires=["base>=2"])
    with pytest.raises(pip.PipError) as failed:
        wheels.plan(variant(), ["one", "two"], observer=heard)
    assert failed.value.kind == "conflict"


def test_an_index_that_nobody_answers_at(shelf: Path, heard: Heard, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        port = silent.getsockname()[1]
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{port}/simple")
    monkeypatch.setenv("PIP_RETRIES", "1")
    with pytest.raises(pip.PipError) as failed:
        wheels.plan(variant(), ["alone"], observer=heard)
    assert failed.value.kind == "unreachable"
    assert failed.value.code == ExitCode.ENVIRONMENT
    assert "PIP_FIND_LINKS" in failed.value.hint


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "disk"),
        ("no such option: --report", "old"),
        ("SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED] x'))", "certificate"),
        ("ERROR: HTTP error 403 while getting https://a.b/x", "other"),
        ("WARNING: 401 Error, Credentials not correct for https://a.b/simple/torch/", "refused"),
        ("Retrying (Retry(total=4)) after connection broken by 'NewConnectionError'", "unreachable"),
        ("(from versions: 2.12.0, 2.13.0)\nWARNING: Retrying (Retry(total=4))", "missing"),
        ("something else", "other"),
    ],
)
def test_pips_words_are_understood(said: str, kind: str) -> None:
    told = pip._explain(said.splitlines())
    assert told.kind == kind
    assert said.splitlines()[-1] in told.message
    assert told.hint


def test_pip_comes_from_ensurepip_where_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "pip" else real(name, *rest)
    )
    command = pip.command()
    assert command[0] == sys.executable
    assert command[1].endswith(".whl/pip")
    assert Path(command[1]).parent.is_file()


@pytest.mark.slow
@pytest.mark.network
def test_a_pip_too_old_to_report_fetches_a_newer_one(
    heard: Heard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ubuntu 22.04's pip."""
    pip.run(["download", "--no-deps", "--dest", str(tmp_path), "pip==22.0.4"])
    (old,) = tmp_path.glob("pip-*.whl")
    real = pip.command
    monkeypatch.setattr(pip, "command", lambda: [sys.executable, str(old / "pip")])
    asked = wheels.plan(variant(), [], observer=heard)
    assert [item.key for item in asked.items] == ["pip"]
    assert real() != pip.command()


def test_extras_become_plain_requirements() -> None:
    def wheel(name: str, *requires: str) -> Wheel:
        return Wheel(
            name=name, version="1", url=f"file:///{name}-1-py3-none-any.whl", sha256="0" * 64,
            metadata={"requires_dist": list(requires)},
        )  # fmt: skip

    asked = WheelPlan(
        python="3.11",
        platform="linux-64",
        requirements=("app[web]>=1",),
        items=(
            wheel("app", "core", "server[fast]; extra == 'web'", "docs; extra == 'doc'"),
            wheel("server", "loop; extra == 'fast'", "server[more]; extra == 'fast'", "x; extra == 'more'"),
        ),
        environment={"python_version": "3.11", "sys_platform": "linux"},
    )
    assert asked.requested() == ("app >=1", "loop", "server", "x")
    assert asked.depends(asked.items[0]) == ("core",)


def test_two_distributions_of_one_conda_name_are_refused(shelf: Path, heard: Heard) -> None:
    make_wheel(shelf, "python")
    with pytest.raises(Error, match="conda package python"):
        wheels.plan(variant(), ["python"], observer=heard)


def test_sizes_of_what_cannot_be_asked_are_unknown(tmp_path: Path) -> None:
    here = tmp_path / "a b.whl"
    here.write_bytes(b"12345")
    gone = (tmp_path / "gone.whl").as_uri()
    refused = "http://127.0.0.1:9/x.whl"
    assert sizes([here.as_uri(), gone, refused]) == {here.as_uri(): 5, gone: None, refused: None}
    assert [spoken(size) for size in (7, 2_000, 231_400_000, 2_350_000_000)] == [
        "7 B", "2 kB", "231 MB", "2.4 GB"
    ]  # fmt: skip


def test_the_spec_names_what_was_planned(shelf: Path, heard: Heard, tmp_path: Path) -> None:
    import yaml

    make_wheel(shelf, "torch", "2.99.1+cpu", tag=f"{ABI}-{ABI}-{PLATFORM}")
    make_wheel(shelf, "other", "1.5")
    asked = wheels.plan(variant(torch="2.99.*"), ["torch==2.99.*", "other<2"], observer=heard)
    assert asked.accelerator == "cpu"
    assert asked.requested() == ("other <2a0", "pip", "pytorch 2.99.*")
    spec = wheels.spec(variant(torch="2.99.*"), asked, tmp_path / "channel")
    document = yaml.safe_load(spec.text)
    assert document["channels"] == [(tmp_path / "channel").as_uri()]
    assert document["dependencies"] == [
        f"python={MINOR}.*", "other <2a0", "pip", "pytorch=2.99.*=*cpu*"
    ]  # fmt: skip
    assert {one.name for one in spec.virtual_packages[asked.platform]} >= {"__glibc", "__linux", "__unix"}
    again = wheels.spec(variant(torch="<=2.99.1"), asked, tmp_path / "channel")
    assert "pytorch==2.99.1=*cpu*" in again.text
    assert again.digest != spec.digest
    assert wheels.spec(variant(torch="2.99.*"), asked, tmp_path / "channel") == spec


def test_the_fallback_takes_its_torch_from_the_matrix() -> None:
    from envkit.matrix import pip_requirements, read_matrix

    matrix = read_matrix(Path(__file__).parents[2] / "environments" / "matrix.yaml")
    fallback = wheels.fallback_variant(matrix)
    assert fallback.name == f"wheels-py{MINOR.replace('.', '')}-cpu"
    assert fallback.torch == matrix.sources["wheels"].torch.text
    assert matrix.named(fallback.name) is None
    asked = pip_requirements(matrix, fallback)
    assert asked[0] == f"torch=={fallback.torch}"
    assert "numpy" in asked
    assert wheels.fallback_variant(matrix, "3.12").name == "wheels-py312-cpu"


def test_what_is_no_wheel_is_refused(tmp_path: Path) -> None:
    from envkit.wheels.plan import read_report

    metadata = {"name": "x", "version": "1"}
    item = {"download_info": {"url": "https://a.b/x-1.tar.gz"}, "metadata": metadata}
    report = {"environment": {"python_version": MINOR}, "install": [item]}
    with pytest.raises(Error, match="no wheel"):
        read_report(report, ("x",), ())


def test_wheels_are_downloaded_through_pip(
    shelf: Path, heard: Heard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a loopback index, with the hash as the only address."""
    import functools
    import http.server
    import threading

    site = tmp_path / "site"
    (site / "simple" / "remote").mkdir(parents=True)
    wheel = make_wheel(site, "remote", "1.0", files={"remote.py": "X = 1\n"})
    from envkit.files import sha256_of

    (site / "simple" / "remote" / "index.html").write_text(
        f'<a href="/{wheel.name}#sha256={sha256_of(wheel)}">{wheel.name}</a>'
    )
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(site))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        monkeypatch.delenv("PIP_NO_INDEX")
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{server.server_port}/simple")
        monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
        asked = wheels.plan(variant(), ["remote"], observer=heard)
        found = asked.find("remote")
        assert found.path is None
        assert found.size == wheel.stat().st_size
        assert asked.download_size == found.size
        channel = wheels.build(asked, cache=tmp_path / "cache", observer=heard)
    finally:
        server.shutdown()
        server.server_close()
    assert list(channel.glob("noarch/remote-1.0-*.conda"))
    assert heard.tasks["downloading wheels"] == found.size
    # Everything is kept now, so that neither the server nor the shelf is needed.
    assert wheels.build(asked, cache=tmp_path / "cache", observer=Observer()) == channel
