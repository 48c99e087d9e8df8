"""A team's environments by axes, and which of them a user or a machine gets."""

from __future__ import annotations

from envkit.matrix.axes import Axes
from envkit.matrix.choose import Choice, choose
from envkit.matrix.hardware import Answer, Verdict, judge
from envkit.matrix.layout import Matrix
from envkit.matrix.reader import read_matrix
from envkit.matrix.requirements import pip_requirements
from envkit.matrix.root import find_root
from envkit.matrix.select import select

__all__ = [
    "Answer",
    "Axes",
    "Choice",
    "Matrix",
    "Verdict",
    "choose",
    "find_root",
    "judge",
    "pip_requirements",
    "read_matrix",
    "select",
]
