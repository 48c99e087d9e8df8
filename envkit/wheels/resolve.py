"""Asks pip what it would install, and refuses what nobody asked for before anything large is downloaded.

Old releases of pip download what they report, so pip is watched while it resolves, and stopped before it
fetches a GPU build that was not asked for.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

from envkit import paths
from envkit.errors import Error, InputError
from envkit.messages import _
from envkit.model import CPU, Variant
from envkit.progress import Observer
from envkit.report.size import spoken
from envkit.wheels import pip
from envkit.wheels.constraints import parse_requirement
from envkit.wheels.interpreter import running_interpreter
from envkit.wheels.plan import WheelPlan, read_report
from envkit.wheels.size import sizes

__all__ = ["plan", "running_python"]

_TORCH_INDEX = "https://download.pytorch.org/whl"
_GPU_FILE = re.compile(r"(?:torch|triton|nvidia|cuda)[\w.]*-")
_TORCH_FILE = re.compile(r"torch-")
_DOWNLOADING = re.compile(r"\s*Downloading (?P<name>\S+\.whl) \((?P<size>[\d.]+) (?P<unit>[kMG])B\)")
_TORCH_ALONE = ("--no-deps", "--retries", "0", "--timeout", "10")
_UNIT = {"k": 10**3, "M": 10**6, "G": 10**9}
_GPU_WHEEL = 300 * 10**6
_TOO_MUCH = 10**9


def plan(
    variant: Variant,
    requirements: Sequence[str],
    *,
    observer: Observer,
    allow_cuda: bool = False,
) -> WheelPlan:
    """What pip resolves `requirements` to for the interpreter that runs this, configured as the user has it.

    Where torch comes out as another build than the variant's accelerator, PyTorch's own index is added and
    pip asked once more; where that does not help either, nothing is downloaded and Error says what was found.
    `allow_cuda` accepts a CUDA build in place of a CPU one.
    InputError where the variant wants another Python than the running one, PipError where pip fails.
    """
    interpreter = running_interpreter()
    if variant.python != interpreter.minor:
        raise InputError(
            _("the wheel channel repacks the Python that runs envkit, {own}; {wanted} was asked for").format(
                own=interpreter.minor, wanted=variant.python
            ),
            _("run envkit with Python {wanted}, or leave `--python` out").format(wanted=variant.python),
        )
    asked = tuple(dict.fromkeys([*requirements, "pip"]))
    wanted = "cu" + variant.cuda.replace(".", "") if variant.cuda else CPU
    anything = allow_cuda and wanted == CPU
    sized = _with_sizes(_resolve(asked, wanted, anything, observer))
    _say_sizes(sized, observer)
    return sized


class _Stopped(Exception):
    """pip was stopped before it downloaded a GPU build; `size` in bytes as pip announced it."""

    def __init__(self, name: str, size: int) -> None:
        super().__init__(name)
        self.name = name
        self.size = size


def _resolve(asked: tuple[str, ...], wanted: str, anything: bool, observer: Observer) -> WheelPlan:
    try:
        found = _ask_pip(asked, (), None if anything else _guard(wanted))
    except _Stopped as stopped:
        refusal = _refused(wanted, stopped.name, stopped.size)
    else:
        if anything or found.accelerator == wanted:
            return found
        refusal = _refused_plan(wanted, found)
    observer.note(
        _("as configured, pip gives no {wanted} build of torch; trying {index} beside").format(
            wanted=wanted, index=f"{_TORCH_INDEX}/{wanted}"
        )
    )
    return _ask_with_torch_index(asked, wanted, refusal)


def _ask_with_torch_index(asked: tuple[str, ...], wanted: str, refusal: Error) -> WheelPlan:
    """The plan with PyTorch's own index beside the user's; `refusal` where that gives no such build either.

    torch alone comes first: an index that does not answer then costs seconds once, not for every package.
    """
    index = ("--extra-index-url", f"{_TORCH_INDEX}/{wanted}")
    torch = tuple(text for text in asked if (one := parse_requirement(text)) and one.name.lower() == "torch")
    try:
        alone = _ask_pip(torch or ("torch",), (*index, *_TORCH_ALONE), _guard(wanted))
        found = _ask_pip(asked, index, _guard(wanted)) if alone.accelerator == wanted else alone
    except (_Stopped, pip.PipError):
        raise refusal from None
    if found.accelerator != wanted:
        raise refusal
    return found


def _refused_plan(wanted: str, found: WheelPlan) -> Error:
    torch = found.find("torch")
    name = f"torch {torch.version}" if torch else "torch"
    if found.accelerator == CPU:
        return Error(
            _("{wanted} was asked for, and pip offers only {name}, a CPU build").format(
                wanted=wanted, name=name
            ),
            _hint(wanted),
        )
    known = [item.size for item in _with_sizes(found).items]
    return _refused(wanted, name, sum(size or 0 for size in known))


def _refused(wanted: str, name: str, size: int) -> Error:
    return Error(
        _("pip offers {name}, a GPU build ({size} with what it needs), and {wanted} was asked for").format(
            name=name, size=spoken(size) if size else _("size unknown"), wanted=wanted
        ),
        _hint(wanted),
    )


def _hint(wanted: str) -> str:
    return _("let pip see such builds: `pip config set global.extra-index-url {index}`, or a mirror").format(
        index=f"{_TORCH_INDEX}/{wanted}"
    )


def _ask_pip(
    asked: tuple[str, ...], options: tuple[str, ...], heard: Callable[[str], None] | None
) -> WheelPlan:
    with _temporary_folder() as folder:
        report = folder / "report.json"
        arguments = ["install", "--dry-run", "--ignore-installed", "--only-binary", ":all:"]
        arguments += ["--report", str(report), *options, "--", *asked]
        try:
            pip.run(arguments, heard=heard)
        except pip.PipError as failed:
            if failed.kind != "old":
                raise
            pip.run(arguments, heard=heard, program=_newer_pip(folder, failed))
        document = json.loads(report.read_text(encoding="utf-8"))
    return read_report(document, asked, options)


def _newer_pip(folder: Path, failed: pip.PipError) -> list[str]:
    try:
        return pip.newer(folder)
    except pip.PipError:
        raise failed from None


@contextlib.contextmanager
def _temporary_folder() -> Iterator[Path]:
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


def _guard(wanted: str) -> Callable[[str], None]:
    """Listens to pip and stops it before it downloads another build than wanted.

    Where that is a CPU build, nothing of the GPU's runtime and no gigabytes of anything are let through.
    """
    total = 0
    suspects, limit = (_GPU_FILE, _TOO_MUCH) if wanted == CPU else (_TORCH_FILE, sys.maxsize)

    def heard(line: str) -> None:
        nonlocal total
        found = _DOWNLOADING.match(line)
        if not found:
            return
        size = int(float(found["size"]) * _UNIT[found["unit"]])
        total += size
        name = unquote(found["name"]).rsplit("/", 1)[-1]
        large = size >= _GPU_WHEEL and suspects.match(name) and f"+{wanted}" not in name
        if large or total >= limit:
            raise _Stopped(name, max(size, total))

    return heard


def _with_sizes(found: WheelPlan) -> WheelPlan:
    known = sizes([item.url for item in found.items])
    return replace(found, items=tuple(replace(item, size=known[item.url]) for item in found.items))


def _say_sizes(found: WheelPlan, observer: Observer) -> None:
    remote = [item for item in found.items if item.path is None]
    unknown = sum(item.size is None for item in remote)
    text = _("{count} wheels: {here} on this machine's disk, {size} to download").format(
        count=len(found.items),
        here=spoken(sum(item.size or 0 for item in found.items if item.path)),
        size=spoken(found.download_size),
    )
    if unknown:
        text += _(" and {count} of unknown size").format(count=unknown)
    observer.note(text)


def running_python() -> str:
    """The minor version of the interpreter that runs this: "3.11"."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"
