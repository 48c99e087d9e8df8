"""The plan that a request makes, from the locks that lie there: nothing is solved, fetched or written."""

from __future__ import annotations

from envkit import install, lock, paths
from envkit.errors import Error
from envkit.host import read_host
from envkit.install.preview import Preview
from envkit.matrix import choose
from envkit.messages import _
from envkit.model import Host
from envkit.up.local import wheels_variant
from envkit.up.provision import planned_by_file
from envkit.up.request import Plan, Request
from envkit.up.team import found_lock, project

__all__ = ["preview"]


def preview(request: Request) -> Preview:
    """What `provision` would do. Raises Error where that begins with making a lock, which needs writing."""
    host = read_host()
    if request.bundle is not None or request.lock is not None:
        with planned_by_file(request) as plan:
            return _preview(plan, host)
    return _preview(_plan(request, host), host)


def _plan(request: Request, host: Host) -> Plan:
    root, known = project()
    if request.wheels:
        variant, mirror = wheels_variant(known, request), "official"
        path = lock.lock_path(root, variant, listed=False)
        wanted = lock.read_lock(path) if path.exists() else None
    else:
        variant, mirror = choose(known, host, request.axes).variant, None
        wanted = found_lock(root, known, variant)
    if wanted is None:
        raise Error(
            _("{name} has no lock here yet, and making one is more than a dry run may do").format(
                name=variant.name
            ),
            _("run `envkit lock {name}` first, or leave out --dry-run").format(name=variant.name),
        )
    name, prefix = request.place(variant.name)
    return Plan(
        lock=wanted, routes=request.routes(mirror), name=name, prefix=prefix, variant=variant, reason=""
    )


def _preview(plan: Plan, host: Host) -> Preview:
    return install.preview(
        plan.lock, plan.prefix, name=plan.name, cache=paths.cache(), routes=plan.routes, host=host
    )
