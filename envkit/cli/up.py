"""envkit up: axes or a variant to a validated environment."""

from __future__ import annotations

from envkit.cli.axes import request_options
from envkit.cli.frame import Outcome, Session, verb
from envkit.cli.invocation import typed
from envkit.cli.planned import planned
from envkit.cli.speak import activation_line, provisioned_data
from envkit.errors import ExitCode
from envkit.report import to_text
from envkit.up import Request
from envkit.up.provision import up


@verb("up")
@request_options
def command(session: Session, request: Request) -> Outcome:
    if request.dry_run:
        return planned(session, request)
    made = up(request, session.observer)
    report = made.report
    assert report is not None
    lines = []
    if not report.ok or session.verbose > 0:
        lines.append(to_text(typed(report), color=session.color, verbose=session.verbose))
    if made.fallback:
        lines.append(made.reason)
    lines.append(activation_line(made.environment))
    return Outcome(
        data=provisioned_data(made),
        text="\n".join(lines),
        code=ExitCode.OK if report.ok else ExitCode.FINDINGS,
    )
