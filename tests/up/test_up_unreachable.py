"""No host can be reached: networking is unshared, so that nothing answers and nothing can."""

from __future__ import annotations

import os
import subprocess

import pytest
from small_project import ROOT, VARIANT, Project

from envkit import fetch
from envkit.fetch.failures import host_of
from envkit.host import read_host

ALONE = ["unshare", "-rn"]
PACKAGE = "https://conda.anaconda.org/conda-forge/noarch/x-1-0.conda"

pytestmark = pytest.mark.skipif(
    subprocess.run([*ALONE, "true"], capture_output=True, check=False).returncode != 0,
    reason="no user namespaces here",
)
WITHOUT_GPU = pytest.mark.skipif(bool(read_host().gpus), reason="with a GPU nothing falls back")


@pytest.fixture
def alone(project: Project) -> Project:
    """The project where nothing but pip's own idea of the world is configured."""
    project.environ |= {"ENVKIT_MIRROR": "auto", "PIP_CONFIG_FILE": os.devnull}
    return project


def hosts() -> set[str]:
    """Every host that would be asked for a package of conda-forge."""
    return {host_of(url) for url in fetch.routes("auto").urls(PACKAGE)}


def test_cuda_names_every_host_tried_and_what_to_do(alone: Project) -> None:
    error = alone.fails("up", "--cuda", "11.8", code=3, cwd=ROOT, within=ALONE)
    listed = {line.strip().partition(": ")[0] for line in error["message"].splitlines()[1:]}
    assert listed == hosts()
    for way_out in ("firewall", "HTTPS_PROXY", "--mirror", "file:///"):
        assert way_out in error["hint"]
    assert not (alone.home / "state" / "locks").exists()


def test_a_team_that_wants_no_fallback(alone: Project) -> None:
    error = alone.fails("up", code=3, within=ALONE, ENVKIT_FALLBACK="never")
    assert all(host in error["message"] for host in hosts())
    assert "pip" not in error["message"].splitlines()[-1]


@WITHOUT_GPU
def test_a_fallback_that_pip_cannot_serve_names_both_causes(alone: Project) -> None:
    error = alone.fails("up", code=3, within=ALONE)
    assert all(host in error["message"] for host in hosts())
    assert "pip reaches no package index" in error["message"]
    assert "--mirror" in error["hint"]
    assert "pip config set global.index-url" in error["hint"]


def test_what_is_there_already_needs_no_network(alone: Project, mirror: str) -> None:
    assert alone.ok("install", ENVKIT_MIRROR=mirror)["installed"]
    again = alone.ok("install", within=ALONE)
    assert (again["installed"], again["fallback"]) == (False, False)
    alone.ok("remove", VARIANT)
    assert alone.ok("install", within=ALONE)["installed"], "the cache holds every package"
