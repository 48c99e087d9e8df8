"""The wheel channel: a local conda channel of the running Python and the wheels that pip resolves.

    fallback_variant -> plan -> build -> spec

From there on it is a channel like any other, to be solved, locked and installed. Linux only, bound to this
machine; nothing here imports the solver.
"""

from __future__ import annotations

from envkit.wheels.channel import build, unpacked
from envkit.wheels.download import download
from envkit.wheels.indexes import torch_indexes
from envkit.wheels.plan import Wheel, WheelPlan
from envkit.wheels.resolve import plan
from envkit.wheels.spec import fallback_variant, spec

__all__ = [
    "Wheel",
    "WheelPlan",
    "build",
    "download",
    "fallback_variant",
    "plan",
    "spec",
    "torch_indexes",
    "unpacked",
]
