"""Names of variants that no matrix lists: made from their axes by rule, and read back from it.

py312-cu126                 Python 3.12, CUDA 12.6, the source and torch that the matrix takes for them
py311-pt24-cu121            with PyTorch 2.4.*
py311-pt2.4.1-cpu-pytorch   with exactly 2.4.1, from the pytorch channel although another comes first
py311-ptge2.0_lt2.4-cu118   with a range
wheels-py311-cpu            from the wheel channel
py311-cu118+notebook+vision a listed (or made) name and the extras added to it
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from envkit.matrix.axes import cuda_version
from envkit.matrix.constraint import Constraint, parse_constraint
from envkit.model import CPU

__all__ = ["MadeName", "base_and_extras", "make_name", "read_name", "with_extras"]

_WORDS = {"==": "eq", "!=": "ne", ">=": "ge", "<=": "le", "~=": "cp", "<": "lt", ">": "gt"}
_NAME = re.compile(
    r"(?P<wheels>wheels-)?py3(?P<minor>\d{1,2})(?:-pt(?P<torch>[a-z0-9._]+))?-(?P<build>cpu|cu\d{3})(?:-(?P<source>[a-z-]+))?"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class MadeName:
    """What a name made by rule says; `source` is None where it is left to the matrix."""

    python: str
    accelerator: str
    torch: Constraint | None = None
    source: str | None = None


def make_name(name: MadeName) -> str:
    """The name for these axes."""
    wheels = "wheels-" if name.source == "wheels" else ""
    torch = f"-pt{_torch_word(name.torch)}" if name.torch else ""
    build = CPU if name.accelerator == CPU else f"cu{name.accelerator.replace('.', '')}"
    source = f"-{name.source}" if name.source and not wheels else ""
    return f"{wheels}py{name.python.replace('.', '')}{torch}-{build}{source}"


def read_name(text: str) -> MadeName | None:
    """The axes in a name made by rule; None where it is none."""
    match = _NAME.fullmatch(text)
    if match is None:
        return None
    torch = _torch_from(match["torch"]) if match["torch"] else None
    accelerator = cuda_version(match["build"])
    if accelerator is None or (match["torch"] and torch is None):
        return None
    return MadeName(
        python=f"3.{int(match['minor'])}",
        accelerator=accelerator,
        torch=torch,
        source="wheels" if match["wheels"] else match["source"],
    )


def with_extras(base: str, extras: Iterable[str]) -> str:
    """The name of `base` with extras added: sorted, so that their order does not matter."""
    return "+".join([base, *sorted(extras)])


def base_and_extras(text: str) -> tuple[str, tuple[str, ...]]:
    """A name taken apart at its plus signs."""
    base, *extras = text.split("+")
    return base, tuple(extras)


def _torch_word(torch: Constraint) -> str:
    series = re.fullmatch(r"(\d)\.(\d+)\.\*", torch.text)
    if series:
        return series[1] + series[2]
    words = []
    for clause in torch.text.split(","):
        operator = next((operator for operator in _WORDS if clause.startswith(operator)), "")
        version = clause[len(operator) :]
        words.append(_WORDS.get(operator, "") + version.replace(".*", ".x"))
    return "_".join(words)


def _torch_from(word: str) -> Constraint | None:
    if re.fullmatch(r"\d{2,3}", word):
        return parse_constraint(f"{word[0]}.{word[1:]}.*")
    clauses = []
    for part in word.split("_"):
        operator = next((sign for sign, name in _WORDS.items() if part.startswith(name)), "")
        clauses.append(operator + (part[2:] if operator else part).replace(".x", ".*"))
    return parse_constraint(",".join(clauses))
