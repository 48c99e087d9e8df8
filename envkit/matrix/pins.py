"""What a variant must be kept from: rows of data/bad_combos.yaml that can be prevented by a spec."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from envkit.matrix.combos import combo_rows
from envkit.matrix.constraint import parse_constraint
from envkit.matrix.existence import admitted
from envkit.matrix.layout import Matrix
from envkit.model import CPU, Variant

__all__ = ["Pin", "pins"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Pin:
    """A spec to add, why in a few words, and the URL where the trouble was reported."""

    id: str
    spec: str
    why: str
    source: str


def pins(matrix: Matrix, variant: Variant) -> tuple[Pin, ...]:
    """The specs that keep known-bad combinations out of a variant, in the order of the table.

    A row counts as soon as the variant may come out with a torch of the row's range: the solver takes an
    older one where an extra asks for it.
    """
    found: dict[str, Pin] = {}
    for row in combo_rows():
        conditions = row.get("applies")
        if conditions and conditions["spec"] not in found and _applies(matrix, variant, conditions):
            found[conditions["spec"]] = Pin(
                id=row["id"], spec=conditions["spec"], why=conditions["why"], source=row["source"]
            )
    return tuple(found.values())


def _applies(matrix: Matrix, variant: Variant, conditions: dict[str, Any]) -> bool:
    accelerators = {variant.accelerator, CPU if variant.cuda is None else "cuda"}
    return (
        variant.source in conditions.get("sources", (variant.source,))
        and bool(accelerators.intersection(conditions.get("accelerators", accelerators)))
        and bool(set(variant.platforms).intersection(conditions.get("platforms", variant.platforms)))
        and _may_be(matrix, variant, conditions.get("torch"))
    )


def _may_be(matrix: Matrix, variant: Variant, torch: str | None) -> bool:
    constraint = parse_constraint(torch) if torch else None
    return constraint is None or any(
        constraint.admits(release.torch) for release in admitted(matrix, variant)
    )
