"""The tables of known failures: CUDA error codes, and texts that name a cause. Each row has its source."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from envkit.checks.remedies import remedy
from envkit.files import load_yaml

__all__ = ["CudaError", "Symptom", "cuda_error", "cuda_errors", "find_cuda_error", "find_symptom", "symptoms"]


@dataclass(frozen=True, kw_only=True, slots=True)
class CudaError:
    """A row of data/cuda_errors.yaml. `at_init` is what the code means when the first call gives it."""

    code: int
    name: str
    text: str
    at_init: str
    remedy: str
    source: str

    @property
    def hint(self) -> str:
        return remedy(self.remedy)


@dataclass(frozen=True, kw_only=True, slots=True)
class Symptom:
    """A row of data/symptoms.yaml."""

    id: str
    pattern: re.Pattern[str]
    remedy: str
    source: str

    @property
    def hint(self) -> str:
        return remedy(self.remedy)


@cache
def cuda_errors() -> tuple[CudaError, ...]:
    table = _read("cuda_errors.yaml")
    return tuple(
        CudaError(
            code=row["code"],
            name=row["name"],
            text=row["text"],
            at_init=row["at_init"],
            remedy=row["remedy"],
            source=table["sources"][row["source"]],
        )
        for row in table["errors"]
    )


@cache
def symptoms() -> tuple[Symptom, ...]:
    return tuple(
        Symptom(id=row["id"], pattern=re.compile(row["pattern"]), remedy=row["remedy"], source=row["source"])
        for row in _read("symptoms.yaml")["symptoms"]
    )


def cuda_error(code: int) -> CudaError | None:
    """What is known of an error code."""
    return next((row for row in cuda_errors() if row.code == code), None)


def find_cuda_error(text: str) -> CudaError | None:
    """The CUDA error whose standard text stands in an exception's text."""
    return next((row for row in cuda_errors() if f"CUDA error: {row.text}" in text or row.name in text), None)


def find_symptom(text: str) -> Symptom | None:
    """The first symptom of the table that shows in a text."""
    return next((row for row in symptoms() if row.pattern.search(text)), None)


def _read(name: str) -> Any:
    return load_yaml((resources.files("envkit") / "data" / name).read_text(encoding="utf-8"))
