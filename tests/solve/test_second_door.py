"""conda-lock, unmodified, over `envkit-conda`: the same packages as `envkit lock` for every variant."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

from envkit.matrix import read_matrix
from envkit.render import render

ROOT = Path(__file__).parents[2]
SHARED = Path(os.environ.get("ENVKIT_SHARED", ROOT.parent / "shared")) / "channels"
COMMITTED = sorted(path.parent.name for path in ROOT.glob("environments/*/conda-lock.yml"))

pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason="the sampled channels are not here")


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    """benchmarks/lock.py: it calls conda-lock the way a user would."""
    spec = importlib.util.spec_from_file_location("benchmark_lock", ROOT / "benchmarks" / "lock.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def unlike(benchmark: ModuleType, folder: Path, names: list[str]) -> list[str]:
    """The variants for which the two have other packages."""
    workshop = benchmark.Workshop(folder, SHARED)
    workshop.forget(folder)
    workshop.ours()
    found = []
    for spec in workshop.specs():
        name = spec.variant.name
        if name in names:
            workshop.theirs(spec, folder / f"{name}.yml")
            ours = workshop.project / "environments" / name / "conda-lock.yml"
            if benchmark.packages_of(ours) != benchmark.packages_of(folder / f"{name}.yml"):
                found.append(name)
    return found


@pytest.mark.slow
def test_both_doors_give_the_same_packages(benchmark: ModuleType, tmp_path: Path) -> None:
    assert unlike(benchmark, tmp_path, COMMITTED) == []


def test_conda_lock_is_told_what_the_solver_is_told(benchmark: ModuleType) -> None:
    matrix = read_matrix(ROOT / "environments" / "matrix.yaml")
    spec = render(matrix, matrix.variants[1])
    packages = benchmark.machines_of(spec)["subdirs"]["linux-64"]["packages"]
    assert packages["__archspec"] == "1 x86_64"
    assert packages["__cuda"] == "11.8"
    assert len(packages) == len(spec.virtual_packages["linux-64"])
