"""The build strings of real channels, and what each is taken for."""

from __future__ import annotations

from pathlib import Path

import pytest

from envkit import paths
from envkit.lock import build_cuda, check_accelerator, is_fresh, lock_path
from envkit.model import Lock, Package, Spec, Variant


def conda(name: str, version: str, build: str, platform: str = "linux-64") -> Package:
    url = f"https://conda.anaconda.org/c/{platform}/{name}-{version}-{build}.conda"
    return Package(name=name, version=version, manager="conda", platform=platform, url=url, sha256="0" * 64)


def pip(name: str, version: str) -> Package:
    url = f"https://files.example.org/{name}-{version}-py3-none-any.whl"
    return Package(name=name, version=version, manager="pip", platform="linux-64", url=url, sha256="0" * 64)


@pytest.mark.parametrize(
    ("build", "cuda"),
    [
        ("py3.11_cuda11.8_cudnn8.7.0_0", "11.8"),
        ("py3.9_cuda12.1_cudnn8.9.2_0", "12.1"),
        ("py3.7_cuda10.2_cudnn7.6.5_0", "10.2"),
        ("py311_cu118", "11.8"),
        ("cuda118_py311h4ee7bbc_301", "11.8"),
        ("cuda120_py312h26b3cf7_300", "12.0"),
        ("cuda126_mkl_py311_hcada2b2_300", "12.6"),
        ("cuda130_generic_py314_h1234567_200", "13.0"),
        ("cuda112py39h3ad47f5_201", "11.2"),
        ("cuda_126py311hbd5d2f8_0", "12.6"),
        ("py3.7_cuda9.2.148_cudnn7.6.3_0", "9.2"),
        ("py37_cu92", "9.2"),
        ("cuda_py311_h8b6ad9a_1", ""),
        ("py3.11_cpu_0", None),
        ("py3.11_0", None),
        ("cpu_mkl_py311_h3da180d_103", None),
        ("cpu_generic_py311_h0123456_1", None),
        ("py311hcu118ab_0", None),
    ],
)
def test_reads_the_cuda_version_of_a_build(build: str, cuda: str | None) -> None:
    assert build_cuda(conda("pytorch", "2.3.1", build)) == cuda


def test_cuda_builds_pass_where_cuda_was_asked_for() -> None:
    packages = [
        conda("pytorch", "2.3.1", "py3.11_cuda11.8_cudnn8.7.0_0"),
        conda("torchvision", "0.18.1", "py311_cu118"),
        conda("numpy", "1.26.4", "py311h64a7726_0"),
    ]
    assert check_accelerator(packages, "11.8") == []


def test_a_silent_cpu_build_is_a_problem() -> None:
    problems = check_accelerator(
        [
            conda("pytorch", "2.1.0", "py3.11_cpu_0"),
            conda("torchvision", "0.16.0", "py311_cpu"),
        ],
        "12.4",
    )
    assert len(problems) == 2
    assert "pytorch 2.1.0 py3.11_cpu_0 is not a CUDA build" in problems[0]


def test_another_cuda_version_is_a_problem() -> None:
    (problem,) = check_accelerator([conda("pytorch", "2.4.0", "cuda118_py311h4ee7bbc_301")], "12.0")
    assert "CUDA 11.8 build, CUDA 12.0 was asked for" in problem


def test_torch_must_be_there_on_every_platform_where_cuda_was_asked_for() -> None:
    packages = [
        conda("pytorch", "2.3.1", "py3.11_cuda11.8_cudnn8.7.0_0"),
        conda("python", "3.11.9", "h1234_0", "win-64"),
    ]
    (problem,) = check_accelerator(packages, "11.8")
    assert problem.startswith("win-64:")


def test_cuda_build_is_a_problem_where_cpu_was_asked_for() -> None:
    assert check_accelerator([conda("pytorch", "2.10.0", "cpu_mkl_py311_h3da180d_103")], None) == []
    assert check_accelerator([conda("pytorch", "2.10.0", "py3.11_0", "osx-arm64")], None) == []
    (problem,) = check_accelerator([conda("pytorch", "2.10.0", "cuda129_mkl_py311_h333e2d5_303")], None)
    assert "a CPU build was asked for" in problem


def test_a_torchvision_build_need_not_say_which_cuda_it_is_for() -> None:
    torch = conda("pytorch", "2.7.1", "cuda126_mkl_py311_hcada2b2_300")
    vision = conda("torchvision", "0.22.0", "cuda_py311_h8b6ad9a_1")
    assert check_accelerator([torch, vision], "12.6") == []
    assert len(check_accelerator([torch, vision], None)) == 2
    (problem,) = check_accelerator([conda("pytorch", "2.7.1", "cuda_py311_h8b6ad9a_1")], "12.6")
    assert "does not say" in problem


def test_wheels_tell_by_local_version_or_by_the_runtime_beside_them() -> None:
    assert check_accelerator([pip("torch", "2.3.0+cu121")], "12.1") == []
    assert (
        check_accelerator([pip("torch", "2.3.0"), pip("nvidia-cuda-runtime-cu12", "12.1.105")], "12.1") == []
    )
    assert check_accelerator([pip("torch", "2.13.0+cpu")], None) == []
    assert (
        len(check_accelerator([pip("torch", "2.3.0"), pip("nvidia-cuda-runtime-cu12", "12.1.105")], None))
        == 1
    )
    assert len(check_accelerator([pip("torch", "2.3.0")], "12.1")) == 1


VARIANT = Variant(
    name="py311-cu118",
    python="3.11",
    accelerator="11.8",
    torch="2.3.*",
    source="pytorch",
    platforms=("linux-64",),
)


def test_where_locks_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENVKIT_HOME", str(tmp_path / "home"))
    assert lock_path(tmp_path, VARIANT) == tmp_path / "environments" / "py311-cu118" / "conda-lock.yml"
    unlisted = lock_path(tmp_path, VARIANT, listed=False)
    assert unlisted == paths.state() / "locks" / "py311-cu118" / "conda-lock.yml"


def test_fresh_means_the_same_digest(tmp_path: Path) -> None:
    spec = Spec(variant=VARIANT, text="", channels=(), virtual_packages={}, digest="a" * 64)
    for digest, fresh in [("a" * 64, True), ("b" * 64, False), (None, False)]:
        lock = Lock(path=tmp_path, digest=digest, channels=(), platforms=("linux-64",), packages=())
        assert is_fresh(lock, spec) is fresh
