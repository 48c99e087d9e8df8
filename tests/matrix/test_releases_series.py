"""Which torch the wheel channel asks for, by CUDA version."""

from __future__ import annotations

import pytest

from envkit.matrix.constraint import Constraint
from envkit.matrix.releases import series_for


@pytest.mark.parametrize(
    ("cuda", "python", "torch"),
    [
        ("12.6", "3.11", "2.13.*"),
        ("11.8", "3.11", "2.7.*"),
        ("12.1", "3.11", "2.5.*"),
        ("11.7", "3.9", "2.0.*"),
        ("99.0", "3.11", "2.13.*"),
    ],
)
def test_the_newest_series_with_that_cuda(cuda: str, python: str, torch: str) -> None:
    assert series_for(cuda, python, Constraint("2.13.*")) == torch
