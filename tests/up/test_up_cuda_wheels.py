"""`MIRROR=wheels,… CUDA=12.6` to the end: solved, locked, audited and installed, from loopback."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from small_project import PY, Project

sys.path.insert(0, str(Path(__file__).parents[1] / "wheels"))
from wheel_shelf import ABI, PLATFORM, add_pip, make_wheel, site

NAME = f"wheels-{PY}-cu126"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_cuda_wheels_become_an_environment(bare: Project, tmp_path: Path) -> None:
    folder = tmp_path / "wheels"
    folder.mkdir()
    tag = f"{ABI}-{ABI}-{PLATFORM}"
    runtime = make_wheel(folder, "nvidia-cuda-runtime-cu12", "12.6.77", files={"nvidia/cuda.txt": "12.6"})
    torch = make_wheel(
        folder, "torch", "2.13.0+cu126", tag=tag,
        files={"torch/__init__.py": "__version__ = '2.13.0+cu126'\n"},
        requires=["nvidia-cuda-runtime-cu12==12.6.77; platform_system == 'Linux'"],
    )  # fmt: skip
    add_pip(folder)
    (own_pip,) = folder.glob("pip-*.whl")
    others = [make_wheel(folder, name, "1.0") for name in ("numpy",)]
    with site() as index, site() as own:
        index.add("whl/cu126", torch, runtime)
        own.add("simple", own_pip, *others, make_wheel(folder, "torch", "2.13.1"))
        bare.environ |= {
            "ENVKIT_MIRROR": f"wheels,{index.url}/whl",
            "PIP_INDEX_URL": f"{own.url}/simple",
            "PIP_CONFIG_FILE": os.devnull,
        }
        done = bare.call("install", "--cuda", "12.6", "--only-mirrors", "--json")
        assert done.code == 0, done.err
        assert "needed to download, pack and install" in done.err
        assert done.err.index("to download") < done.err.index("packages by pip")
        assert NAME in str(done.result["environment"])
        asked = len(index.log)
        again = bare.ok("install", "--cuda", "cu126", "--only-mirrors")
        assert not again["installed"]
        assert len(index.log) == asked, "nothing is asked for again"
    prefix = bare.prefix(NAME)
    site_packages = next((prefix / "lib").glob("python3*/site-packages"))
    assert (site_packages / "nvidia" / "cuda.txt").read_text() == "12.6"

    (locked,) = bare.home.rglob(f"{NAME}/conda-lock.yml")
    text = locked.read_text()
    assert "__cuda" in text and "127.0.0.1" not in text
    audited = bare.call("audit", str(locked), "--cuda", "12.6", "--json")
    assert audited.code == 0, audited.out
    for driver, code in (("560.35", 0), ("470.82", 1)):
        judged = bare.call("audit", str(locked), "--host", f"glibc=2.39,driver={driver}", "--json")
        assert judged.code == code, judged.out
    shutil.rmtree(prefix)


def test_words_that_mean_nothing_are_told(bare: Project) -> None:
    bare.environ["ENVKIT_MIRROR"] = "wheels,tuna"
    assert "PyTorch's wheels" in bare.fails("install", "--cuda", "12.6", code=2)["message"]
    bare.environ["ENVKIT_MIRROR"] = "wheels"
    assert "not a CUDA version" in bare.fails("install", "--cuda", "banana", code=2)["message"]
