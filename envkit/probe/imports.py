"""Import torch, once for the whole run, and say what was imported."""

from __future__ import annotations

import importlib
import os
import sys
import time
import warnings
from typing import Any, Dict

from .channel import Emit


def load_torch(emit: Emit) -> None:
    emit.at("import torch")
    start = time.monotonic()
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        torch = importlib.import_module("torch")
        seconds = time.monotonic() - start
    emit(
        "imports.torch",
        {
            "version": str(torch.__version__),
            "folder": os.path.realpath(os.path.dirname(os.path.dirname(torch.__file__ or ""))),
            "prefixes": [os.path.realpath(sys.prefix), os.path.realpath(sys.base_prefix)],
            "seconds": round(seconds, 3),
            "warnings": [str(w.message)[:500] for w in heard if issubclass(w.category, UserWarning)][:10],
        },
    )
    emit(
        "torch.build",
        {
            "version": str(torch.__version__),
            "cuda": torch.version.cuda,
            "hip": getattr(torch.version, "hip", None),
            "debug": bool(getattr(torch.version, "debug", False)),
            "threads": torch.get_num_threads(),
        },
    )
    emit.at("tensor.numpy()")
    emit("imports.numpy", _numpy_bridge(torch))


def _numpy_bridge(torch: Any) -> Dict[str, Any]:
    """Whether tensors and arrays turn into each other: not where torch was built for another numpy."""
    try:
        numpy = importlib.import_module("numpy")
    except ModuleNotFoundError as error:
        if error.name == "numpy":
            return {"version": None, "works": None}
        return {"version": None, "works": False, "problem": str(error)}
    except Exception as error:
        return {"version": None, "works": False, "problem": str(error)[-500:]}
    found = {"version": str(numpy.__version__), "works": False}
    try:
        there = torch.zeros(2).numpy()
        back = torch.from_numpy(there + 1)
        found["works"] = float(back.sum()) == 2.0
    except Exception as error:
        found["problem"] = "%s: %s" % (type(error).__name__, str(error)[-500:])
    return found
