"""A shelf of wheels for pip, and one environment made from such a shelf."""

from __future__ import annotations

from pathlib import Path

import pytest
from wheel_shelf import MINOR, Heard, Made, add_pip, fill, link, only_see, variant

from envkit import wheels
from envkit.progress import Observer


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of wheels that pip sees; empty but for pip."""
    folder = tmp_path / "shelf"
    folder.mkdir()
    add_pip(folder)
    only_see(monkeypatch, folder)
    return folder


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    root = tmp_path_factory.mktemp("made with a space")
    shelf = root / "shelf"
    shelf.mkdir()
    fill(shelf)
    with pytest.MonkeyPatch.context() as monkeypatch:
        only_see(monkeypatch, shelf)
        asked = wheels.plan(variant(), ["tiny-binary"], observer=Observer())
        channel = wheels.build(asked, cache=root / "cache", observer=Observer())
    prefix = root.parent / "made-prefix"
    specs = (f"python={MINOR}.*", *asked.requested())
    records = link(channel, prefix, root / "packages", *specs)
    return Made(shelf=shelf, cache=root / "cache", channel=channel, prefix=prefix, records=tuple(records))
