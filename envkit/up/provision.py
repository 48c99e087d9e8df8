"""The stages in order: pick, lock, install, validate."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

from envkit import fetch, install, lock, paths
from envkit.checks import Target, validate
from envkit.errors import Error
from envkit.host import read_host
from envkit.matrix import choose
from envkit.messages import _
from envkit.model import Environment, Lock
from envkit.progress import SILENT, Observer
from envkit.up.local import earlier_fallback, plan_wheels, warning, wheels_variant
from envkit.up.proof import is_proven, remember
from envkit.up.request import Plan, Provisioned, Request, Stages, shown
from envkit.up.team import project, ready_lock

__all__ = ["find", "name_of", "planned_by_file", "provision", "up"]


def up(request: Request, observer: Observer) -> Provisioned:
    """Provision what is asked for and prove that it works: in full until it passed once, then quickly."""
    stages = Stages(observer)
    made = _provision(request, observer, stages)
    with stages.stage("validate", _("validate")) as said:
        quick = is_proven(made.environment)
        report = validate(Target.of(made.environment), quick=quick, observer=observer)
        if report.ok and not quick:
            remember(made.environment)
        verdict = _("everything works") if report.ok else _("problems found")
        said.append(_("{count} checks, {verdict}").format(count=len(report.checks), verdict=verdict))
    return replace(made, report=report, stages=tuple(stages.done))


def provision(request: Request, observer: Observer) -> Provisioned:
    """Everything `up` does but the validation."""
    stages = Stages(observer)
    return replace(_provision(request, observer, stages), stages=tuple(stages.done))


def find(request: Request) -> Environment:
    """The installed environment that a request means; Error saying what to run where there is none."""
    if request.prefix is not None or request.name is not None:
        return install.read_environment(str(request.prefix or request.name))
    root, known = project()
    if request.wheels:
        return install.read_environment(wheels_variant(known, request).name)
    host = read_host()
    variant = choose(known, host, request.axes).variant
    left = earlier_fallback(root, known, request, host, paths.environments() / variant.name)
    return left or install.read_environment(variant.name)


def _provision(request: Request, observer: Observer, stages: Stages) -> Provisioned:
    if request.bundle is not None or request.lock is not None:
        with planned_by_file(request, observer) as plan:
            return _install(plan, observer, stages)
    root, known = project()
    if request.wheels:
        return _install(plan_wheels(root, known, request, observer, stages), observer, stages)
    with stages.stage("pick", _("pick")) as said:
        host = read_host()
        choice = choose(known, host, request.axes)
        said.append(f"{choice.variant.name}: {choice.reason}")
    name, prefix = request.place(choice.variant.name)
    left = earlier_fallback(root, known, request, host, prefix)
    if left is not None:
        install.tidy(left.prefix, observer)
        return Provisioned(environment=left, reason=warning(), fresh=False, fallback=True)
    routes = request.routes()
    try:
        with stages.stage("lock", _("lock")) as said:
            wanted = ready_lock(root, known, choice.variant, routes=routes, observer=observer)
            said.append(shown(wanted.path))
        plan = Plan(
            lock=wanted,
            routes=routes,
            name=name,
            prefix=prefix,
            variant=choice.variant,
            reason=choice.reason,
            host=host,
        )
        return _install(plan, observer, stages)
    except fetch.Unreachable as nothing:
        if not request.plain or host.gpus:
            raise
        observer.note(nothing.message)
        observer.note(_("falling back to the wheels that pip can reach"))
        try:
            made = _install(plan_wheels(root, known, request, observer, stages), observer, stages)
        except Error as problem:
            raise Error(f"{nothing.message}\n{problem.message}", f"{nothing.hint}\n{problem.hint}") from None
        return replace(made, reason=warning(), fallback=True)


@contextmanager
def planned_by_file(request: Request, observer: Observer = SILENT) -> Iterator[Plan]:
    """The plan of the lock or the bundle that a request names; a bundle is open for as long as this is."""
    if request.bundle is not None:
        with _plan_bundled(request, request.bundle, observer) as plan:
            yield plan
    elif request.lock is not None:
        yield _plan_given(request, request.lock)


def _plan_given(request: Request, path: Path) -> Plan:
    wanted = lock.read_lock(path)
    name, prefix = request.place(name_of(wanted))
    mirror = ",".join(request.beside_wheels) or "auto" if request.wheels else request.mirror
    return Plan(
        lock=wanted,
        routes=request.routes(mirror),
        name=name,
        prefix=prefix,
        variant=None,
        reason=_("the lock that was given"),
    )


@contextmanager
def _plan_bundled(request: Request, path: Path, observer: Observer) -> Iterator[Plan]:
    from envkit.install.bundle import opened

    with opened(path, request.sha256, observer=observer, dry_run=request.dry_run) as bundle:
        name, prefix = request.place(bundle.name)
        yield Plan(
            lock=bundle.lock,
            routes=fetch.routes(f"file://{quote(str(bundle.root))}", only=True, offline=True),
            name=name,
            prefix=prefix,
            variant=None,
            reason=_("the bundle that was given"),
        )


def name_of(wanted: Lock) -> str:
    """A name for the environment of a bare lock: the file's, or its folder's where it has the usual name."""
    path = wanted.path.absolute()
    stem = path.name.removesuffix(".yml").removesuffix(".yaml")
    return install.fit_name(path.parent.name if stem == "conda-lock" else stem) or stem


def _install(plan: Plan, observer: Observer, stages: Stages) -> Provisioned:
    with stages.stage("install", _("install")) as said:
        found = install.read_environment(str(plan.prefix)) if install.is_environment(plan.prefix) else None
        if found is not None and install.is_current(found, plan.lock):
            install.tidy(plan.prefix, observer)
            said.append(_("{prefix} is as its lock says").format(prefix=shown(plan.prefix)))
            return Provisioned(environment=found, reason=plan.reason, fresh=False)
        made = install.install(
            plan.lock,
            plan.prefix,
            name=plan.name,
            variant=plan.variant,
            routes=plan.routes,
            cache=paths.cache(),
            observer=observer,
            host=plan.host,
        )
        said.append(shown(plan.prefix))
    return Provisioned(environment=made, reason=plan.reason, fresh=True)
