"""What a bundle is asked for, and the lock that it is made of."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from envkit import fetch, install, lock, paths
from envkit.errors import Error, InputError
from envkit.host import read_host
from envkit.install import marker
from envkit.install.bundle import Bundled, bundle
from envkit.matrix import choose
from envkit.messages import _
from envkit.model import Lock
from envkit.progress import Observer
from envkit.render import render
from envkit.up.local import plan_wheels
from envkit.up.provision import name_of
from envkit.up.request import WHEELS, Request, Stages, shown
from envkit.up.team import project, ready_lock

__all__ = ["make_bundle"]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Wanted:
    """The lock to bundle, what its environment is called, and the text it was made for."""

    lock: Lock
    name: str
    spec: str | None = None
    host_bound: bool = False


def make_bundle(request: Request, output: Path, platform: str | None, observer: Observer) -> Bundled:
    """Bundle the variant, the lock, the wheel channel or the installed environment that a request means.

    For this machine's platform unless another is named. A variant that has no lock yet is locked; a stale
    lock of the team is not replaced.
    """
    stages = Stages(observer)
    wanted = _wanted(request, observer, stages)
    target = platform or _platform(wanted.lock)
    with stages.stage("bundle", _("bundle")) as said:
        try:
            made = bundle(
                wanted.lock,
                output,
                name=wanted.name,
                platform=target,
                routes=request.routes(",".join(request.beside_wheels) or "auto" if request.wheels else None),
                cache=paths.cache(),
                observer=observer,
                spec=wanted.spec,
                host_bound=wanted.host_bound,
            )
        except fetch.Offline as problem:  # elsewhere a bundle is the way out; here it is what is to be made
            raise fetch.Offline(problem.message, _("run the same command once without --offline")) from None
        said.append(shown(output))
    return made


def _wanted(request: Request, observer: Observer, stages: Stages) -> _Wanted:
    if request.lock is not None:
        given = lock.read_lock(request.lock)
        return _Wanted(lock=given, name=request.name or name_of(given), host_bound=_is_host_bound(given))
    try:
        root, known = project()
        variant = None if request.wheels else choose(known, read_host(), request.axes).variant
    except InputError as problem:
        if not request.axes.name:
            raise
        return _installed(request, problem)
    if variant is not None and variant.source == WHEELS:
        return _installed(
            request,
            InputError(
                _("{name} is made on each machine from wheels, and none is installed").format(
                    name=variant.name
                ),
                _("bundle what this machine makes: `envkit bundle --mirror wheels -o FILE`"),
            ),
        )
    if variant is None:
        plan = plan_wheels(root, known, request, observer, stages)
        return _Wanted(lock=plan.lock, name=plan.name, host_bound=True)
    with stages.stage("lock", _("lock")) as said:
        found = ready_lock(root, known, variant, routes=request.routes(), observer=observer)
        said.append(shown(found.path))
    return _Wanted(lock=found, name=request.name or variant.name, spec=render(known, variant).text)


def _installed(request: Request, problem: InputError) -> _Wanted:
    """What the environment of that name was made from; `problem`, why it names no variant, where it is none.

    The lock beside a stranger's channels or the wheel channel is nowhere else.
    """
    name = request.axes.name or ""
    try:
        environment = None if request.axes.extras else install.read_environment(name)
    except Error:
        environment = None
    if environment is None or not (copy := marker.lock_copy(environment.prefix)).is_file():
        own = _("an installed environment: `--lock PREFIX/conda-meta/envkit-lock.yml --name NAME`")
        hint = f"{problem.hint}; {own}" if problem.hint else own
        raise InputError(problem.message, hint, path=problem.path, line=problem.line) from None
    given = lock.read_lock(copy)
    return _Wanted(lock=given, name=request.name or environment.name, host_bound=_is_host_bound(given))


def _platform(wanted: Lock) -> str:
    """This machine's, or the only one there is."""
    here = read_host().platform
    if here in wanted.platforms:
        return here
    if len(wanted.platforms) == 1:
        return wanted.platforms[0]
    raise InputError(
        _("the lock has nothing for this machine ({here}), and it has several platforms").format(here=here),
        _("choose one: --platform {platforms}").format(platforms="|".join(wanted.platforms)),
        path=wanted.path,
    )


def _is_host_bound(given: Lock) -> bool:
    """Whether the wheel channel made the packages: its folders are in a cache, wherever that is."""
    return any(url.startswith("file:") and "/wheels/channels/" in url for url in given.channels)
