"""Which NVIDIA driver runs which CUDA runtime: data/driver_cuda.yaml, asked.

Two facts, not to be confused. A driver runs every runtime of a major version from that major's floor on,
newer minors included (minor-version compatibility). And each driver knows CUDA up to the toolkit it was
shipped with, which matters for compiling PTX only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources

from envkit.files import load_yaml

__all__ = ["Floor", "driver_floor", "newest_cuda", "numbers"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Floor:
    """The oldest driver that runs runtimes of one CUDA major version."""

    major: int
    linux: str
    windows: str

    def driver(self, *, windows: bool) -> str:
        return self.windows if windows else self.linux


@dataclass(frozen=True, kw_only=True, slots=True)
class _Table:
    floors: tuple[Floor, ...]
    shipped: tuple[tuple[str, str | None, str | None], ...]


@cache
def _table() -> _Table:
    text = (resources.files("envkit") / "data" / "driver_cuda.yaml").read_text(encoding="utf-8")
    raw = load_yaml(text)
    return _Table(
        floors=tuple(
            Floor(major=row["cuda_major"], linux=row["min_linux"], windows=row["min_windows"])
            for row in raw["minor_version_compat"]
        ),
        shipped=tuple((row["cuda"], row["linux"], row["windows"]) for row in raw["toolkit_drivers"]),
    )


def numbers(version: str) -> tuple[int, ...]:
    """A dotted version as numbers to compare: "535.104.05" is (535, 104, 5); what is no number ends it."""
    result = []
    for part in version.split("."):
        digits = "".join(character for character in part if character in "0123456789")
        if not digits:
            break
        result.append(int(digits))
    return tuple(result)


def driver_floor(cuda: str) -> Floor | None:
    """The floor for a CUDA runtime version ("12.4"); None for a major version the table does not know."""
    major = numbers(cuda)[:1]
    return next((floor for floor in _table().floors if (floor.major,) == major), None)


def newest_cuda(driver: str, *, windows: bool = False) -> str | None:
    """The newest CUDA version a driver is known to support: that of the newest toolkit not newer than it.

    Where the table of toolkits has a gap, at least the major version whose floor the driver reaches; None
    where it reaches none.
    """
    own = numbers(driver)
    known = [f"{floor.major}.0" for floor in _table().floors if own >= numbers(floor.driver(windows=windows))]
    for cuda, linux, on_windows in _table().shipped:
        shipped = on_windows if windows else linux
        if shipped is not None and own >= numbers(shipped):
            known.append(".".join(cuda.split(".")[:2]))
    return max(known, key=numbers, default=None)
