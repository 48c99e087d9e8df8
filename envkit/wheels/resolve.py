"""Asks pip what it would install, and refuses what nobody asked for before anything large is downloaded.

The user's own configuration comes first. Where it gives another build of torch than was asked for, PyTorch's
own index and its mirrors are asked, one after the other, until one has it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

from envkit.channels import hostname, index_url, shown, table
from envkit.errors import Error, InputError
from envkit.messages import _
from envkit.model import CPU, Variant
from envkit.progress import Observer
from envkit.report.size import spoken
from envkit.wheels import pip
from envkit.wheels.ask import Stopped, ask_pip, light_pip, temporary_folder
from envkit.wheels.builds import is_torch_wheel, wrong_build
from envkit.wheels.constraints import parse_requirement
from envkit.wheels.indexes import TorchIndex, torch_indexes
from envkit.wheels.interpreter import running_interpreter
from envkit.wheels.plan import WheelPlan
from envkit.wheels.size import sizes

__all__ = ["plan", "running_python"]

_TORCH_ALONE = ("--no-deps", "--retries", "1", "--timeout", "8")
_ALONE_SECONDS = 60.0
"""What one index has to say what torch it has, where pip must read the wheel itself for that."""


def plan(
    variant: Variant,
    requirements: Sequence[str],
    *,
    observer: Observer,
    allow_cuda: bool = False,
    mirrors: Sequence[str] = (),
    only: bool = False,
) -> WheelPlan:
    """What pip resolves `requirements` to for the interpreter that runs this, configured as the user has it.

    Where torch comes out as another build than the variant's accelerator, pip is asked once more with one of
    `torch_indexes` beside, until one gives it; where none does, nothing is downloaded and Error says what was
    found. `mirrors` and `only` are those of `torch_indexes`. `allow_cuda` accepts a CUDA build in place of a
    CPU one.
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
    indexes = torch_indexes(wanted, mirrors, only=only)
    with temporary_folder() as folder:
        program = light_pip(folder) if variant.cuda else None
        ask = _Question(asked=asked, wanted=wanted, anything=anything, program=program, observer=observer)
        sized = _with_sizes(_resolve(ask, indexes))
    _say_sizes(sized, observer)
    return sized


@dataclass(frozen=True, kw_only=True, slots=True)
class _Question:
    """What pip is asked for: requirements, and what torch has to be for, if not `anything`."""

    asked: tuple[str, ...]
    wanted: str
    anything: bool
    program: Sequence[str] | None
    observer: Observer

    def put(
        self, asked: tuple[str, ...], options: tuple[str, ...] = (), limit: float | None = None
    ) -> WheelPlan:
        wanted = None if self.anything else self.wanted
        return ask_pip(asked, options, wanted, self.observer, program=self.program, limit=limit)


def _resolve(ask: _Question, indexes: Sequence[TorchIndex]) -> WheelPlan:
    wanted, observer = ask.wanted, ask.observer
    try:
        found = ask.put(ask.asked)
    except Stopped as stopped:
        refusal: Error = _refused(wanted, stopped.name, stopped.size)
    except pip.PipError as failed:
        if wanted == CPU or failed.kind != "missing":
            raise
        refusal = failed
    else:
        problem = None if ask.anything else wrong_build(found, wanted)
        if problem is None:
            return found
        refusal = _refused_plan(wanted, found, problem)
    if pip.has_no_index():
        raise refusal
    tried = []
    for index in indexes:
        observer.note(
            _("as configured, pip gives no {wanted} build of torch; trying {index} beside").format(
                wanted=wanted, index=shown(index.url)
            )
        )
        answer = _ask_beside(index, ask)
        if isinstance(answer, WheelPlan):
            return answer
        observer.note(answer)
        tried.append(answer)
    raise Error("\n".join([refusal.message, *dict.fromkeys(tried)]), refusal.hint)


def _ask_beside(index: TorchIndex, ask: _Question) -> WheelPlan | str:
    """The plan with an index beside the user's; one line saying why there is none.

    torch alone comes first, of that index alone: one that does not answer then costs seconds once, not for
    every package. Its version is kept, since another index may have a newer one that is another build.
    """
    asked, wanted = ask.asked, ask.wanted
    torch = tuple(text for text in asked if _is_torch(text)) or ("torch",)
    try:
        alone = ask.put(torch, (*index.alone, *_TORCH_ALONE), _ALONE_SECONDS)
        found = alone.find("torch")
        if alone.accelerator != wanted or found is None:
            return _line(index, _offered(alone))
        pinned = tuple(f"torch=={found.version}" if _is_torch(text) else text for text in asked)
        plan = replace(ask.put(pinned, index.beside), requirements=asked)
    except Stopped as stopped:
        return _line(index, _("it offers {name}").format(name=stopped.name))
    except pip.PipError as failed:
        return _line(index, failed.message.splitlines()[0])
    problem = wrong_build(plan, wanted)
    if problem is not None:
        return _line(index, problem)
    _tell_hosts(index, plan, ask.observer)
    return plan


def _is_torch(text: str) -> bool:
    one = parse_requirement(text)
    return one is not None and one.name.lower() == "torch"


def _line(index: TorchIndex, reason: str) -> str:
    return _("{index}: {reason}").format(index=index.name, reason=reason)


def _offered(plan: WheelPlan) -> str:
    torch = plan.find("torch")
    name = f"torch {torch.version}" if torch else "torch"
    return _("it offers {name}, a build for {accelerator}").format(name=name, accelerator=plan.accelerator)


def _tell_hosts(index: TorchIndex, plan: WheelPlan, observer: Observer) -> None:
    """Say where the links of an index lead, if not to itself: a stale copy is as slow as what it copies.

    sjtug/mirror-requests#288 and #373, ustclug/ustcmirror-images#154.
    """
    away = {
        host
        for item in plan.items
        if is_torch_wheel(item.key) and not index.owns(item.url) and (host := hostname(item.url))
    }
    if away and hostname(index.url) != hostname(table().pytorch):
        observer.note(
            _("the index of {index} links to {hosts}: its wheels come from there").format(
                index=index.name, hosts=", ".join(sorted(away))
            )
        )


def _refused_plan(wanted: str, found: WheelPlan, problem: str) -> Error:
    torch = found.find("torch")
    name = f"torch {torch.version}" if torch else "torch"
    if found.accelerator == wanted:
        return Error(
            _("{wanted} was asked for, and pip's choice does not fit: {problem}").format(
                wanted=wanted, problem=problem
            ),
            _hint(wanted),
        )
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
        index=index_url(wanted)
    )


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
