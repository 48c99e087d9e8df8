"""Every check, in the order of the report.

A new one is a judge in a file here and a function in envkit/probe.
"""

from __future__ import annotations

from envkit.checks.catalogue import cuda, interpreter, limits, shm, torch, workers
from envkit.checks.definition import CheckInfo

__all__ = ["CATALOGUE"]

CATALOGUE: tuple[CheckInfo, ...] = (
    interpreter.runs,
    interpreter.version,
    interpreter.isolated,
    shm.size,
    shm.writable,
    shm.capacity,
    limits.descriptors,
    limits.folder,
    torch.imported,
    torch.build,
    torch.numpy,
    *workers.WORKERS,
    *workers.LOADERS,
    cuda.init,
    cuda.arch,
    cuda.kernel,
)
