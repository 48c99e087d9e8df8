"""Workers started by one start method, then a DataLoader over made-up samples whose content is known."""

from __future__ import annotations

import functools
import importlib
import multiprocessing
import os
import threading
import time
from multiprocessing import process, util
from typing import Any, Dict, List

from .channel import Emit

_SECONDS_BETWEEN_LOOKS = 1.0


def rehearse(
    emit: Emit, method: str, token: str, workers: int, epochs: int, samples: int, batch: int, shape: List[int]
) -> None:
    """Emits `workers.<method>` and `loader.<method>`. `token` names this run's semaphores in /dev/shm."""
    # Whatever a killed worker leaves is then known to be ours and can be removed, and nothing else is.
    configuration: Dict[str, Any] = process.current_process()._config  # type: ignore[attr-defined]
    configuration["semprefix"] = "/" + token
    emit.owns(util.get_temp_dir())
    context = multiprocessing.get_context(method)
    emit.at("start %d workers by %s" % (workers, method))
    emit("workers." + method, _start(context, workers))
    emit.at("import torch")
    data = importlib.import_module("torch.utils.data")
    emit.at("DataLoader, %d workers, %s" % (workers, method))
    loader = data.DataLoader(
        Samples(samples, shape),
        batch_size=batch,
        num_workers=workers,
        multiprocessing_context=method,
        persistent_workers=epochs > 1,
        worker_init_fn=functools.partial(follow, os.getpid()),
    )
    emit("loader." + method, _iterate(emit, loader, epochs, samples))


class Samples:
    """A map-style dataset: sample `i` is a float32 tensor of `shape` full of `i`, its index and worker."""

    def __init__(self, count: int, shape: List[int]) -> None:
        self._count = count
        self._shape = shape

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> Dict[str, Any]:
        torch = importlib.import_module("torch")
        worker = torch.utils.data.get_worker_info()
        return {
            "image": torch.full(self._shape, float(index)),
            "index": index,
            "worker": -1 if worker is None else worker.id,
        }


def follow(leader: int, number: int) -> None:
    """End this worker soon after its leader, which cannot end its workers when it is killed outright.

    A DataLoader's workers look for that too, but then wait for a queue that nobody reads any more.
    """
    threading.Thread(target=_watch, args=(leader,), daemon=True).start()


def _watch(leader: int) -> None:
    while True:
        time.sleep(_SECONDS_BETWEEN_LOOKS)
        try:
            os.kill(leader, 0)
        except OSError:
            os._exit(1)


def _answer(queue: Any, leader: int, number: int) -> None:
    follow(leader, number)
    queue.put((number, os.getpid()))


def _start(context: Any, workers: int) -> Dict[str, Any]:
    start = time.monotonic()
    queue = context.SimpleQueue()
    started = [
        context.Process(target=_answer, args=(queue, os.getpid(), number)) for number in range(workers)
    ]
    for worker in started:
        worker.start()
    for worker in started:
        worker.join()
    codes = [worker.exitcode for worker in started]
    answers = [] if any(codes) else sorted(queue.get() for _ in started)
    return {
        "workers": workers,
        "exit_codes": codes,
        "answers": [number for number, _ in answers],
        "processes": len({pid for _, pid in answers} - {os.getpid()}),
        "seconds": round(time.monotonic() - start, 3),
    }


def _iterate(emit: Emit, loader: Any, epochs: int, samples: int) -> Dict[str, Any]:
    start = time.monotonic()
    first = None
    orders: List[List[int]] = []
    wrong: List[int] = []
    seen_workers = set()
    for epoch in range(epochs):
        emit.at("epoch %d, first batch" % epoch)
        order: List[int] = []
        for batch in loader:
            if first is None:
                first = time.monotonic() - start
            order += batch["index"].tolist()
            seen_workers.update(batch["worker"].tolist())
            images = batch["image"].flatten(1)
            bad = (images != batch["index"].unsqueeze(1).to(images.dtype)).any(1)
            wrong += batch["index"][bad].tolist()
            emit.at("epoch %d, sample %d" % (epoch, len(order)))
        orders.append(order)
    return {
        "epochs": epochs,
        "samples": samples,
        "orders_right": [order == list(range(samples)) for order in orders],
        "counts": [len(order) for order in orders],
        "wrong_content": wrong[:20],
        "workers": sorted(seen_workers),
        "first_batch_seconds": round(first or 0.0, 3),
        "seconds": round(time.monotonic() - start, 3),
    }
