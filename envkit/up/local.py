"""The wheel channel's way to a lock, and the environment an earlier fallback left behind."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from envkit import fetch, install, lock, paths
from envkit.errors import Error, InputError
from envkit.matrix import Matrix, pip_requirements
from envkit.matrix.axes import cuda_version
from envkit.matrix.constraint import Constraint, parse_constraint
from envkit.matrix.releases import series_for
from envkit.messages import _
from envkit.model import CPU, Environment, Host, Variant
from envkit.progress import Observer
from envkit.up.request import Plan, Request, Stages
from envkit.up.room import require_room

__all__ = ["earlier_fallback", "plan_wheels", "warning", "wheels_variant"]


def wheels_variant(known: Matrix, request: Request) -> Variant:
    """The variant the wheel channel gives: this interpreter, the extras asked for, CUDA only where asked."""
    from envkit import wheels

    variant = wheels.fallback_variant(known)
    axes = request.axes
    extras = tuple(sorted(axes.extras or ()))
    cuda = _cuda(axes.cuda)
    name, torch = variant.name, variant.torch
    if cuda:
        name = name.removesuffix(f"-{CPU}") + "-cu" + cuda.replace(".", "")
        torch = series_for(cuda, variant.python, Constraint(torch))
    asked = parse_constraint(axes.torch) if axes.torch else None
    if axes.torch and asked is None:
        raise InputError(
            _("'{value}' is not a version of torch").format(value=axes.torch),
            _("write `--torch 2.7`, or 2.7.1"),
        )
    return replace(
        variant,
        name="+".join((name, *extras)),
        accelerator=cuda or CPU,
        torch=asked.text if asked else torch,
        extras=extras,
    )


def _cuda(written: str | None) -> str | None:
    """The CUDA version that was asked for ("12.6"); none where that is left to envkit."""
    if written in (None, "auto"):
        return None
    found = cuda_version(written or "")
    if found is None:
        raise InputError(
            _("'{value}' is not a CUDA version").format(value=written), _("write `--cuda 12.6`, or cpu")
        )
    return None if found == CPU else found


def plan_wheels(root: Path, known: Matrix, request: Request, observer: Observer, stages: Stages) -> Plan:
    """Repack what pip resolves, solve it and lock it; nothing is done again that lies there already."""
    from envkit import solve, wheels

    variant = wheels_variant(known, request)
    name, prefix = request.place(variant.name)
    path = lock.lock_path(root, variant, listed=False)
    kept = _installed(path, prefix, variant)
    if kept is None and request.offline and not path.exists():
        raise Error(
            _("the wheel channel asks the Python index, and no connection may be made"),
            _("leave out --offline once, or name a lock or a bundle"),
        )
    if kept is None and not request.offline:
        with stages.stage("wheels", _("wheels")) as said:
            asked = wheels.plan(
                variant,
                pip_requirements(known, variant),
                observer=observer,
                mirrors=request.beside_wheels,
                only=request.only_mirrors,
            )
            require_room(wheels.unpacked(asked, cache=paths.cache()), prefix, paths.cache(), observer)
            channel = wheels.build(asked, cache=paths.cache(), observer=observer)
            said.append(_("{count} packages by pip").format(count=len(asked.items)))
        with stages.stage("lock", _("lock")) as said:
            spec = wheels.spec(variant, asked, channel)
            wanted = solve.write_lock(
                spec,
                path,
                routes=fetch.routes("official"),
                cache=paths.cache(),
                observer=observer,
                fresh=True,
            )
            said.append(_("{count} packages").format(count=len(wanted.packages)))
    else:
        wanted = lock.read_lock(path)
    return Plan(
        lock=wanted,
        routes=request.routes("official"),
        name=name,
        prefix=prefix,
        variant=variant,
        reason=_("made from this machine's Python and the wheels that pip resolves"),
    )


def earlier_fallback(
    root: Path, known: Matrix, request: Request, host: Host, team_prefix: Path
) -> Environment | None:
    """The environment an earlier fallback made, where the team's own has not come since."""
    if not request.plain or host.gpus or install.is_environment(team_prefix):
        return None
    variant = wheels_variant(known, request)
    prefix = request.place(variant.name)[1]
    return _installed(lock.lock_path(root, variant, listed=False), prefix, variant)


def warning() -> str:
    """What must be said of every environment that a fallback made."""
    return _(
        "this is not the team's lock: no channel could be reached, so it was made from wheels; "
        "`ENVKIT_FALLBACK=never envkit up` tries the channels again"
    )


def _installed(path: Path, prefix: Path, variant: Variant) -> Environment | None:
    if not (path.exists() and install.is_environment(prefix)):
        return None
    found = install.read_environment(str(prefix))
    if found.asked != variant or not install.is_current(found, lock.read_lock(path)):
        return None
    return found
