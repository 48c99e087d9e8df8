"""CUDA in two steps: the driver alone, without torch; then torch's own kernels on every visible device."""

from __future__ import annotations

import ctypes
import glob
import importlib
import math
import os
import time
from typing import Any, Dict, Optional

from .channel import Emit

_SIDE = 128


def initialise(emit: Emit) -> None:
    """cuInit through the driver's own library. It may hang or crash: nothing else runs in this process."""
    found: Dict[str, Any] = {
        "nodes": sorted(glob.glob("/dev/nvidia[0-9]*") + glob.glob("/dev/nvidiactl") + glob.glob("/dev/dxg")),
        "module": _first_line("/proc/driver/nvidia/version"),
        "visible": os.environ.get("CUDA_VISIBLE_DEVICES"),
        "library": None,
        "code": None,
        "driver_cuda": None,
        "devices": None,
    }
    emit.at("load libcuda.so.1")
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        found["problem"] = str(error)
        emit("cuda.init", found)
        return
    found["library"] = _mapped("libcuda.so")
    version, count = ctypes.c_int(0), ctypes.c_int(0)
    # The version can be asked for before cuInit, and tells a missing driver from one that is too old.
    if driver.cuDriverGetVersion(ctypes.byref(version)) == 0:
        found["driver_cuda"] = version.value
    emit.at("cuInit")
    found["code"] = driver.cuInit(0)
    if found["code"] == 0:
        emit.at("cuDeviceGetCount")
        found["code"] = driver.cuDeviceGetCount(ctypes.byref(count))
        found["devices"] = count.value
    emit("cuda.init", found)


def kernel(emit: Emit) -> None:
    """Each device: its capability against torch's arch list, then an element-wise kernel and a matmul."""
    emit.at("import torch")
    torch = importlib.import_module("torch")
    emit.at("torch.cuda.init")
    torch.cuda.init()
    count = torch.cuda.device_count()
    devices = [
        {
            "index": index,
            "name": torch.cuda.get_device_name(index),
            "capability": "%d.%d" % torch.cuda.get_device_capability(index),
        }
        for index in range(count)
    ]
    emit("cuda.arch", {"devices": devices, "archs": list(torch.cuda.get_arch_list())})
    results = []
    for index in range(count):
        emit.at("kernel on cuda:%d" % index)
        results.append(_compute(torch, index))
    emit("cuda.kernel", {"results": results})


def _compute(torch: Any, index: int) -> Dict[str, Any]:
    start = time.monotonic()
    device = torch.device("cuda", index)
    generator = torch.Generator().manual_seed(0)
    left = torch.randn(_SIDE, _SIDE, generator=generator)
    right = torch.randn(_SIDE, _SIDE, generator=generator)
    total = float((torch.arange(1024, device=device) * 2).sum())
    first = time.monotonic() - start
    product = (left.to(device) @ right.to(device)).cpu()
    torch.cuda.synchronize(device)
    exact = left.double() @ right.double()
    worst = float((product.double() - exact).abs().max())
    return {
        "index": index,
        "sum_right": total == 1023 * 1024,
        "worst_error": worst if math.isfinite(worst) else None,
        "first_kernel_seconds": round(first, 3),
    }


def _first_line(path: str) -> Optional[str]:
    try:
        with open(path) as file:
            return file.readline().strip()
    except OSError:
        return None


def _mapped(name: str) -> Optional[str]:
    """The file a loaded library came from, links followed: a compat library shows itself here."""
    try:
        with open("/proc/self/maps") as file:
            for line in file:
                path = line.rsplit(None, 1)[-1]
                if name in os.path.basename(path):
                    return os.path.realpath(path)
    except OSError:
        pass
    return None
