"""envkit install: a lock to an environment, without proving it."""

from __future__ import annotations

from envkit.cli.axes import request_options
from envkit.cli.frame import Outcome, Session, verb
from envkit.cli.planned import planned
from envkit.cli.speak import activation_line, provisioned_data
from envkit.up import Request
from envkit.up.provision import provision


@verb("install")
@request_options
def command(session: Session, request: Request) -> Outcome:
    if request.dry_run:
        return planned(session, request)
    made = provision(request, session.observer)
    lines = [made.reason] if made.fallback else []
    return Outcome(data=provisioned_data(made), text="\n".join([*lines, activation_line(made.environment)]))
