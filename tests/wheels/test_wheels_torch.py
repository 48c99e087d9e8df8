"""The real thing: PyTorch's CPU build from wherever pip finds it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from wheel_shelf import MINOR, Heard, link, run

from envkit import wheels
from envkit.matrix import pip_requirements, read_matrix
from envkit.progress import Observer

pytestmark = [pytest.mark.slow, pytest.mark.network]


@pytest.mark.timeout(900)
def test_torch_from_wheels(tmp_path: Path, heard: Heard) -> None:
    matrix = read_matrix(Path(__file__).parents[2] / "environments" / "matrix.yaml")
    fallback = wheels.fallback_variant(matrix)
    asked = wheels.plan(fallback, pip_requirements(matrix, fallback), observer=heard)
    assert asked.accelerator == "cpu"
    channel = wheels.build(asked, cache=tmp_path / "cache", observer=heard, headers=True)
    prefix = tmp_path / "prefix"
    records = link(
        channel, prefix, tmp_path / "packages",
        f"python={MINOR}.*", "numpy", "pip", f"pytorch={fallback.torch}=*cpu*",
    )  # fmt: skip
    assert not [record for record in records if "headers" in record]
    python = prefix / "bin" / "python"
    script = "import torch; print(torch.__version__, int((torch.ones(3) @ torch.ones(3)).item()))"
    version, three = run(python, "-c", script).split()
    assert version == asked.find("torch").version
    assert three == "3"
    assert "No broken requirements" in run(python, "-m", "pip", "check")
    assert "usage" in run(prefix / "bin" / "torchrun", "--help")
    assert not (prefix / f"lib/python{MINOR}/site-packages/torch/include").exists()
    assert os.access(prefix / f"lib/python{MINOR}/site-packages/torch/bin/torch_shm_manager", os.X_OK)
    link(channel, tmp_path / "with-headers", tmp_path / "packages", "pytorch-headers")
    assert (tmp_path / f"with-headers/lib/python{MINOR}/site-packages/torch/include/ATen/ATen.h").exists()
    again = wheels.build(asked, cache=tmp_path / "cache", observer=Observer(), headers=True)
    assert again == channel
