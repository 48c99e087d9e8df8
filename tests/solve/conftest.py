"""A channel that installs, for every test of this part."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_specs import HELLO, LIBHELLO, OLD_LIBHELLO, PYTHON
from tinychannel import write_channel


@pytest.fixture
def channel(tmp_path: Path) -> Path:
    """python, hello (noarch, on top of python) and two versions of libhello."""
    return write_channel(tmp_path / "channel", PYTHON, HELLO, LIBHELLO, OLD_LIBHELLO)
