"""Prove that an environment works here: the target's own interpreter measures, envkit judges.

validate(Target.of(environment)) -> Report
"""

from __future__ import annotations

from envkit.checks.catalogue import CATALOGUE
from envkit.checks.definition import CheckInfo
from envkit.checks.run import validate
from envkit.checks.target import UNKNOWN, Target

__all__ = ["CATALOGUE", "UNKNOWN", "CheckInfo", "Target", "validate"]
