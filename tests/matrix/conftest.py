"""The shipped matrix, and a way to write others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from envkit.matrix import Matrix, read_matrix

MATRIX = Path(__file__).parents[2] / "environments" / "matrix.yaml"

SMALL = """\
schema: 1
defaults:
  python: "3.11"
  sources: {cpu: [conda-forge], cuda: [pytorch, conda-forge]}
  platforms: {cpu: [linux-64, linux-aarch64], cuda: [linux-64]}
sources:
  pytorch:
    channels: [pytorch, nvidia, conda-forge]
    torch: "<=2.5.1"
    builds: {cpu: "<=2.5.1", "11.8": ">=2.0,<=2.5.1"}
    guard: {cpu: "py*_cpu_*", cuda: "*cuda{cuda}*"}
    needs: {cpu: [cpuonly], cuda: ["pytorch-cuda={cuda}"]}
    platforms: [linux-64]
  conda-forge:
    channels: [conda-forge]
    builds: {cpu: ">=2.4", "12.6": ">=2.5,<2.8"}
    guard: {cpu: "cpu_*", cuda: "cuda{tag}*"}
extras:
  notebook: {conda: [jupyterlab], pip: [jupyterlab]}
  torchvision: {conda: [torchvision], pip: [torchvision]}
variants:
  py311-cpu: {cuda: cpu, source: conda-forge}
  py311-cu118: {cuda: "11.8", source: pytorch, extras: [torchvision]}
"""


@pytest.fixture(scope="session")
def shipped() -> Matrix:
    return read_matrix(MATRIX)


@pytest.fixture
def small() -> str:
    """The text of a small matrix that is right."""
    return SMALL


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], Path]:
    """Writes a matrix into a project folder and returns its path."""

    def written(text: str) -> Path:
        path = tmp_path / "environments" / "matrix.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return written
