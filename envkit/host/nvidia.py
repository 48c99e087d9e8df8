"""The NVIDIA driver and its GPUs: from NVML, else from what the kernel module shows in /proc.

NVML loads the driver's own library; it needs no CUDA toolkit and starts no CUDA context.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from envkit.host.drivers import newest_cuda
from envkit.model import Gpu

__all__ = ["Nvidia", "read_nvidia"]

_Value = TypeVar("_Value")


@dataclass(frozen=True, kw_only=True, slots=True)
class Nvidia:
    """What was found; all empty where there is no driver."""

    driver: str | None = None
    driver_cuda: str | None = None
    gpus: tuple[Gpu, ...] = ()


def read_nvidia(root: Path, *, windows: bool = False) -> Nvidia:
    """The driver and GPUs seen from here. Never raises: a missing or broken driver is no driver.

    `windows` says that the driver is numbered as on Windows (WSL). NVML describes the running machine, so
    it is asked only where `root` is "/".
    """
    found = _from_nvml() if root == Path("/") else Nvidia()
    from_proc = _from_proc(root)
    driver = found.driver or from_proc.driver
    return Nvidia(
        driver=driver,
        driver_cuda=found.driver_cuda or (newest_cuda(driver, windows=windows) if driver else None),
        gpus=found.gpus or from_proc.gpus,
    )


def _from_nvml() -> Nvidia:
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception:  # a missing library, a mismatched one, no permission: all mean the same here
        return Nvidia()
    try:
        return Nvidia(
            driver=_ask(lambda: _string(pynvml.nvmlSystemGetDriverVersion())),
            driver_cuda=_ask(lambda: _cuda(int(pynvml.nvmlSystemGetCudaDriverVersion_v2()))),
            gpus=tuple(
                gpu
                for index in range(_ask(pynvml.nvmlDeviceGetCount) or 0)
                if (gpu := _nvml_gpu(pynvml, index)) is not None
            ),
        )
    finally:
        _ask(pynvml.nvmlShutdown)


def _nvml_gpu(nvml: Any, index: int) -> Gpu | None:
    handle = _ask(lambda: nvml.nvmlDeviceGetHandleByIndex(index))
    if handle is None:
        return None
    capability = _ask(lambda: nvml.nvmlDeviceGetCudaComputeCapability(handle))
    mode = _ask(lambda: nvml.nvmlDeviceGetMigMode(handle))
    return Gpu(
        index=index,
        name=_ask(lambda: _string(nvml.nvmlDeviceGetName(handle))) or f"GPU {index}",
        capability=f"{capability[0]}.{capability[1]}" if capability else None,
        memory=_ask(lambda: int(nvml.nvmlDeviceGetMemoryInfo(handle).total)),
        uuid=_ask(lambda: _string(nvml.nvmlDeviceGetUUID(handle))),
        mig=bool(mode and mode[0]),
    )


def _ask(question: Callable[[], _Value]) -> _Value | None:
    """The answer, or None where this driver or GPU does not know the question."""
    try:
        return question()
    except Exception:  # NVMLError has a subclass per code, and old drivers lack whole functions
        return None


def _string(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _cuda(number: int) -> str | None:
    """12020 is "12.2"; 0 means that there is no libcuda."""
    return f"{number // 1000}.{number % 1000 // 10}" if number > 0 else None


def _from_proc(root: Path) -> Nvidia:
    """Works without NVML (a container that was given the devices alone), but does not tell capabilities."""
    folder = root / "proc/driver/nvidia"
    match = re.search(r"NVRM version:.*?\s(\d{3,}(?:\.\d+)+)\s", _text(folder / "version") + "\n")
    try:
        cards = sorted((folder / "gpus").iterdir())
    except OSError:
        cards = []
    gpus = tuple(
        Gpu(
            index=index,
            name=_field(text, "Model") or f"GPU {index}",
            uuid=_field(text, "GPU UUID"),
        )
        for index, text in enumerate(_text(card / "information") for card in cards)
    )
    return Nvidia(driver=match[1] if match else None, gpus=gpus)


def _field(text: str, name: str) -> str | None:
    match = re.search(rf"^{name}:\s*(\S.*?)\s*$", text, re.MULTILINE)
    return match[1] if match else None


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
