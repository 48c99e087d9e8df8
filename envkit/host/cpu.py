"""Which instructions the processor has, as the levels of the x86-64 psABI count them.

Source: https://gitlab.com/x86-psABIs/x86-64-ABI (low-level system information, micro-architecture levels),
in the words of /proc/cpuinfo.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["cpu_level"]

_LEVELS = (
    {"lm"},
    {"cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3"},
    {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"},
    {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
)


def cpu_level(root: Path) -> int | None:
    """The highest level (1 to 4) all of whose instructions are there; None where this is no x86-64 Linux."""
    try:
        lines = (root / "proc" / "cpuinfo").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return None
    flags = next((set(line.partition(":")[2].split()) for line in lines if line.startswith("flags")), set())
    level = 0
    for wanted in _LEVELS:
        if not wanted <= flags:
            break
        level += 1
    return level or None
