"""The same variant in pip's words, for environments that are made of wheels."""

from __future__ import annotations

import re

from envkit.matrix.constraint import Constraint
from envkit.matrix.layout import Matrix
from envkit.matrix.pins import pins
from envkit.model import Variant

__all__ = ["pip_requirements", "spec_name", "torch_requirement"]


def pip_requirements(matrix: Matrix, variant: Variant) -> tuple[str, ...]:
    """What pip is asked for: torch first, then the common packages and those of the extras, pinned."""
    pinned = {spec_name(pin.spec): pin.spec for pin in pins(matrix, variant)}
    others = (pinned.get(spec, spec) for spec in matrix.packages(variant).pip)
    return (torch_requirement(Constraint(variant.torch)), *others)


def torch_requirement(torch: Constraint) -> str:
    """A conda constraint on torch as pip writes it: "2.13.*" is "torch==2.13.*"."""
    clauses = [clause if clause[0] in "=!<>~" else f"=={clause}" for clause in torch.text.split(",")]
    return "torch" + ",".join(clauses)


def spec_name(spec: str) -> str:
    """The package a spec is about: "numpy" of "numpy<2"."""
    match = re.match(r"[A-Za-z0-9._-]+", spec)
    return match[0].lower() if match else spec
