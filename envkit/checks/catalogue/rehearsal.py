"""The batches that shared memory and loaders are measured against. Sizes in bytes."""

from __future__ import annotations

from typing import Final

__all__ = [
    "BATCH",
    "EPOCHS",
    "REHEARSAL_NEED",
    "SAMPLES",
    "SHAPE",
    "TENSORS",
    "TYPICAL_BATCH",
    "TYPICAL_NEED",
    "WORKERS",
]

WORKERS: Final = 2
EPOCHS: Final = 2
SAMPLES: Final = 96
BATCH: Final = 16
SHAPE: Final = (3, 128, 128)
TENSORS: Final = 3
"""Tensors in a batch: the image, the index and the worker."""

_FLOAT32 = 4
_PREFETCH = 2
_IN_FLIGHT = WORKERS * _PREFETCH + 2
"""Batches alive at once: those prefetched, the one in use and the one being handed over."""

REHEARSAL_NEED: Final = _IN_FLIGHT * BATCH * SHAPE[0] * SHAPE[1] * SHAPE[2] * _FLOAT32

TYPICAL_BATCH: Final = 64 * 3 * 224 * 224 * _FLOAT32
"""64 images of 224 x 224 as float32: 38.5 MB, the batch of many an image classifier."""

TYPICAL_NEED: Final = _IN_FLIGHT * TYPICAL_BATCH
