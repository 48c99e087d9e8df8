"""The cases that users reported, solved or refused as the answers beside them say."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from small_specs import PYTHON, canonical, make_spec, repodata_of
from tinychannel import write_channel

from envkit.errors import Findings, InputError
from envkit.lock import parse_lock
from envkit.solve import lock_text
from envkit.solve.pip_lines import lift_pip_options

CASES = Path(__file__).parents[2].parent / "shared" / "cases"

pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason="the cases are not here")


def orders() -> list[str]:
    path = CASES / "11" / "orders.txt"
    return path.read_text().split() if path.exists() else []


@pytest.mark.parametrize(("number", "order"), list(enumerate(orders(), 1)))
def test_the_order_of_channels_decides(number: int, order: str) -> None:
    """Case 11: conda-forge above nvidia hides the CUDA libraries; without conda-forge mkl is missing."""
    specs = (CASES / "11" / "specs.txt").read_text().splitlines()
    spec = make_spec(*(f'"{line}"' for line in specs if line), channels=order.split(","), cuda="12.4")
    root = CASES / "11" / "channels"
    if number <= 2:
        lock = parse_lock(lock_text(spec, repodata=repodata_of(root), canonical=canonical), Path("lock.yml"))
        urls = {package.name: package.url for package in lock.packages}
        assert "cuda" in urls["pytorch"]
        assert "/nvidia/" in urls["cuda-libraries"]
    else:
        with pytest.raises(Findings) as caught:
            lock_text(spec, repodata=repodata_of(root), canonical=canonical)
        assert ("strict channel priority" if number <= 4 else "mkl") in caught.value.message


def test_the_literal_nodefaults_is_no_channel_and_no_channels_are_an_error(tmp_path: Path) -> None:
    """Case 05."""
    write_channel(tmp_path / "conda-forge", PYTHON)
    lock = parse_lock(
        lock_text(make_spec("python"), repodata=repodata_of(tmp_path), canonical=canonical), Path("lock.yml")
    )
    assert lock.channels == ("conda-forge",)
    text = (CASES / "05" / "environment-empty-channels.yml").read_text()
    with pytest.raises(InputError, match="no channels"):
        lock_text(
            make_spec("python", text=text, channels=()), repodata=repodata_of(tmp_path), canonical=canonical
        )


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5])
def test_option_lines_of_pip_sections(number: int) -> None:
    """Case 06: an index is lifted, a folder or another file of requirements refused with its line."""
    text = (CASES / "06" / f"environment-{number}.yml").read_text()
    if number <= 3:
        lifted, found = lift_pip_options(text)
        # A mirror is read as what it copies: of the public index it is no further one.
        index = "https://download.pytorch.org/whl/cu121"
        assert found.indexes == (() if number == 2 else (index,))
        assert found.default_index is (number != 1)
        assert yaml.safe_load(lifted)["dependencies"][-1] == {"pip": ["torch==2.3.0"]}
    else:
        with pytest.raises(InputError) as caught:
            lift_pip_options(text)
        assert "environment.yml:6" in str(caught.value)
