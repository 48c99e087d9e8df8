"""Version constraints on torch as conda writes them: "2.3.*", "<=2.5.1", ">=2.0,<2.4"."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from packaging.specifiers import SpecifierSet
from packaging.version import Version

__all__ = ["Constraint", "parse_constraint"]

_CLAUSE = re.compile(r"(?P<operator>==|!=|>=|<=|~=|=|<|>)?\s*(?P<version>\d+(?:\.\d+){0,3})(?P<any>\.\*)?")


@dataclass(frozen=True, slots=True)
class Constraint:
    """A checked constraint; `text` is in the one spelling that is rendered and compared."""

    text: str

    def __str__(self) -> str:
        return self.text

    def admits(self, version: str | Version) -> bool:
        """Whether a torch release meets the constraint."""
        number = version if isinstance(version, Version) else Version(version)
        return _specifiers(self.text).contains(number, prereleases=True)


@lru_cache(maxsize=256)
def _specifiers(text: str) -> SpecifierSet:
    clauses = [clause if clause[0] in "=!<>~" else f"=={clause}" for clause in text.split(",")]
    return SpecifierSet(",".join(clauses))


def parse_constraint(text: str) -> Constraint | None:
    """The constraint that `text` means, or None where it means none.

    A bare minor version stands for the whole series: "2.3" is "2.3.*", "2" is "2.*"; "2.3.1" is exact.
    """
    clauses = []
    for part in text.split(","):
        match = _CLAUSE.fullmatch(part.strip())
        if match is None:
            return None
        operator, version, wild = match["operator"] or "", match["version"], match["any"] or ""
        if operator == "=" or (not operator and not wild and version.count(".") < 2):
            operator, wild = "", ".*"
        if (wild and operator not in ("", "==", "!=")) or (operator == "~=" and "." not in version):
            return None
        clauses.append(("" if operator == "==" and wild else operator) + version + wild)
    return Constraint(",".join(clauses))
