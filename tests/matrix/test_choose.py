"""CUDA=auto on machines from Kepler to after Blackwell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from envkit.errors import Error, InputError
from envkit.host.drivers import newest_cuda
from envkit.matrix import Axes, Matrix, choose
from envkit.model import Gpu, Host

MACHINES = yaml.safe_load((Path(__file__).parent / "machines.yaml").read_text(encoding="utf-8"))


def machine(row: dict[str, Any]) -> Host:
    driver, wsl = row.get("driver"), row.get("wsl", False)
    return Host(
        platform=row.get("platform", "linux-64"),
        glibc=row.get("glibc", "2.35"),
        driver=driver,
        driver_cuda=row.get("cuda") or (newest_cuda(driver, windows=wsl) if driver else None),
        gpus=tuple(
            Gpu(
                index=index,
                name=f"GPU {index}",
                capability=None if capability == "?" else capability,
                mig=row.get("mig", False),
            )
            for index, capability in enumerate(row.get("gpus", []))
        ),
        container=row.get("container"),
        scheduler=row.get("scheduler"),
        wsl=wsl,
        override_cuda=row.get("override"),
    )


def asked(row: dict[str, Any]) -> Axes:
    axes = dict(row.get("axes", {}))
    if "extras" in axes:
        axes["extras"] = tuple(axes["extras"])
    return Axes(**axes)


def test_there_are_at_least_forty_machines_and_none_twice() -> None:
    assert len({row["what"] for row in MACHINES}) == len(MACHINES) >= 40


@pytest.mark.parametrize("row", MACHINES, ids=[row["what"] for row in MACHINES])
def test_a_machine_gets_the_best_variant_it_runs(shipped: Matrix, row: dict[str, Any]) -> None:
    choice = choose(shipped, machine(row), asked(row))
    assert (choice.variant.name, row["because"] in choice.reason) == (row["expect"], True), choice.reason
    assert "\n" not in choice.reason


@pytest.mark.parametrize("axes", [Axes(), Axes(cuda="auto"), Axes(cuda="AUTO", python="3.12")])
def test_a_login_node_asks_for_cuda(shipped: Matrix, axes: Axes) -> None:
    with pytest.raises(InputError, match="login node") as caught:
        choose(shipped, Host(platform="linux-64", glibc="2.28", scheduler="slurm"), axes)
    assert caught.value.code == 2
    assert "--cuda" in caught.value.hint


@pytest.mark.parametrize("value", ["yes", "12,4", "12.4; rm", "-1", "1" * 99])
def test_a_wrong_override_is_refused(shipped: Matrix, value: str) -> None:
    with pytest.raises(InputError, match="CONDA_OVERRIDE_CUDA"):
        choose(shipped, Host(platform="linux-64", override_cuda=value), Axes())


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        (Host(platform="linux-64", glibc="2.12"), "glibc 2.12 is older than the 2.17"),
        (Host(platform="linux-ppc64le", glibc="2.28"), "no CPU variant is for linux-ppc64le"),
    ],
)
def test_a_machine_that_runs_nothing_is_an_error(shipped: Matrix, host: Host, reason: str) -> None:
    with pytest.raises(Error, match=reason) as caught:
        choose(shipped, host, Axes())
    assert caught.value.code == 3


def test_a_made_variant_is_for_this_platform_alone(shipped: Matrix) -> None:
    host = Host(platform="linux-aarch64", glibc="2.35")
    assert choose(shipped, host, Axes(extras=("train",))).variant.platforms == ("linux-aarch64",)
    assert len(choose(shipped, host, Axes()).variant.platforms) == 4
