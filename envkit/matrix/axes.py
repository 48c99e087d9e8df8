"""What a user asks for on the command line, and the spellings each axis is accepted in."""

from __future__ import annotations

import re
from dataclasses import dataclass

from envkit.model import CPU

__all__ = ["AUTO", "Axes", "cuda_version", "python_version"]

AUTO = "auto"

_PYTHON = re.compile(r"(?:python|py)?[=-]?3\.?(\d{1,2})", re.IGNORECASE)
_CUDA = re.compile(r"(?:cuda|cu)?[=-]?(?:(\d{1,2})\.(\d)|(\d{2})(\d))", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Axes:
    """The axes as they were written; None where nothing was asked.

    `cuda` may be "auto". `extras` are added to those the variant has by itself. `name` is that of a
    variant, listed or made by rule ("py312-cu126", "py311-cu118+notebook").
    """

    python: str | None = None
    cuda: str | None = None
    torch: str | None = None
    source: str | None = None
    extras: tuple[str, ...] | None = None
    name: str | None = None


def python_version(text: str) -> str | None:
    """ "3.11" from "3.11", "py311" or "311"; None where it is no Python 3 minor version."""
    match = _PYTHON.fullmatch(text.strip())
    return f"3.{int(match[1])}" if match else None


def cuda_version(text: str) -> str | None:
    """ "11.8" from "11.8", "cu118" or "118", and "cpu"; None where it is neither."""
    text = text.strip().lower()
    if text == CPU:
        return CPU
    match = _CUDA.fullmatch(text)
    if match is None:
        return None
    return f"{int(match[1] or match[3])}.{int(match[2] or match[4])}"
