"""One question to pip: what would it install, under the user's configuration and with these options beside.

Old releases of pip download what they report, and any must read a wheel whole where an index gives neither
its metadata nor parts of it. So pip is listened to while it resolves: it is stopped before it fetches a GPU
build that was not asked for, and large files that were asked for are told before they come.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote

from envkit import paths
from envkit.errors import Error
from envkit.fetch.disk import require_room
from envkit.messages import _
from envkit.model import CPU
from envkit.progress import Observer
from envkit.report.size import spoken
from envkit.wheels import pip
from envkit.wheels.plan import WheelPlan, read_report

__all__ = ["Stopped", "ask_pip", "light_pip", "temporary_folder"]

_GPU_FILE = re.compile(r"(?:torch|triton|nvidia|cuda)[\w.]*-")
_TORCH_FILE = re.compile(r"torch-")
_DOWNLOADING = re.compile(r"\s*Downloading (?P<name>\S+\.whl) \((?P<size>[\d.]+) (?P<unit>[kMG])B\)")
_UNIT = {"k": 10**3, "M": 10**6, "G": 10**9}
_GPU_WHEEL = 300 * 10**6
_TOO_MUCH = 10**9
_TOLD = 100 * 10**6
"""From this size on a wheel that pip reads whole while it resolves is told beforehand."""


class Stopped(Exception):
    """pip was stopped before it downloaded a GPU build; `size` in bytes as pip announced it."""

    def __init__(self, name: str, size: int) -> None:
        super().__init__(name)
        self.name = name
        self.size = size


def ask_pip(
    asked: tuple[str, ...],
    options: tuple[str, ...],
    wanted: str | None,
    observer: Observer,
    *,
    program: Sequence[str] | None = None,
    limit: float | None = None,
) -> WheelPlan:
    """The plan for `asked`. Raises Stopped before another build of torch than `wanted` is downloaded (None:
    any is right), PipError where pip fails or says nothing useful within `limit` seconds. `program` is how to
    run pip."""
    with temporary_folder() as folder:
        report = folder / "report.json"
        arguments = ["install", "--dry-run", "--ignore-installed", "--only-binary", ":all:"]
        arguments += ["--report", str(report), *options]
        if wanted not in (None, CPU):
            # Flat listings have no metadata beside the wheels: let pip read the end of the file alone.
            arguments += ["--use-feature", "fast-deps"]
        arguments += ["--", *asked]
        heard = _guard(wanted, folder, observer)
        try:
            pip.run(arguments, heard=heard, limit=limit, program=program)
        except pip.PipError as failed:
            if failed.kind != "old":
                raise
            pip.run(arguments, heard=heard, limit=limit, program=_newer_pip(folder, failed))
        document = json.loads(report.read_text(encoding="utf-8"))
    return read_report(document, asked, options)


def light_pip(folder: Path) -> list[str] | None:
    """How to run a pip that does not download what it only reports: a newer one, fetched into `folder`.

    None where the user's own is one, or where no newer one can be had: then the user's own must do.
    """
    if pip.version() >= tuple(map(int, pip.FIRST_TO_REPORT_LIGHTLY.split("."))):
        return None
    try:
        return pip.newer(folder, pip.FIRST_TO_REPORT_LIGHTLY)
    except pip.PipError:
        return None


def _newer_pip(folder: Path, failed: pip.PipError) -> list[str]:
    try:
        return pip.newer(folder)
    except pip.PipError:
        raise failed from None


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder for the while. Raises Error where none can be made."""
    try:
        folder = tempfile.mkdtemp(prefix=paths.scratch("plan"))
    except OSError as problem:
        raise Error(
            _("no temporary folder can be made: {reason}").format(reason=problem.strerror or problem),
            _("free some space in /tmp, or set TMPDIR to a folder you may write to"),
        ) from None
    try:
        yield Path(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _guard(wanted: str | None, folder: Path, observer: Observer) -> Callable[[str], bool]:
    """Listens to pip and stops it before it downloads another build than wanted.

    Where that is a CPU build, nothing of the GPU's runtime and no gigabytes of anything are let through.
    What is let through and large has to fit on the disk of `folder`, and is told; True for such a line.
    """
    total = 0
    suspects, limit = (_GPU_FILE, _TOO_MUCH) if wanted == CPU else (_TORCH_FILE, None)

    def heard(line: str) -> bool:
        nonlocal total
        found = _DOWNLOADING.match(line)
        if not found:
            return False
        size = int(float(found["size"]) * _UNIT[found["unit"]])
        total += size
        name = unquote(found["name"]).rsplit("/", 1)[-1]
        large = size >= _GPU_WHEEL and suspects.match(name) and f"+{wanted}" not in name
        if wanted is not None and (large or (limit is not None and total >= limit)):
            raise Stopped(name, max(size, total))
        if size >= _TOLD:
            require_room(folder, size)
            observer.note(
                _("pip downloads {name} ({size}) already, to learn what it needs").format(
                    name=name, size=spoken(size)
                )
            )
        return size >= _TOLD

    return heard
