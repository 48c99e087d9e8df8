"""envkit audit: look a lock over before anybody installs from it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from envkit import matrix, paths
from envkit.channels import hostname, shown
from envkit.cli.frame import Outcome, Session, verb
from envkit.cli.invocation import typed
from envkit.cli.view import terminal_columns
from envkit.errors import Error, ExitCode, InputError
from envkit.host import read_host
from envkit.lock import LOCK_NAME, lock_path
from envkit.lock.audit import KEYS, Facts, audit_file, parse_host, unreadable
from envkit.matrix import Axes, Matrix
from envkit.messages import _
from envkit.model import CPU, Check, Report, Status, Variant
from envkit.progress import Observer
from envkit.report import table, to_json, to_text

_ALWAYS = ("lock.format", "lock.needs")
_MACHINE = "lock.host-"
_HOST = r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?|[0-9a-fA-F:.]+"
_ACCELERATOR = r"\d{1,2}\.\d{1,2}"


@verb("audit")
@click.argument("lock", required=False, metavar="[LOCK|VARIANT]")
@click.option("--all", "every", is_flag=True, help="The locks of all variants of the matrix.")
@click.option("--cuda", metavar="X.Y|cpu", help="The build that is wanted; a variant's own without this.")
@click.option(
    "--host",
    metavar="KEY=VALUE,…",
    help="A machine, not this one: " + ", ".join(f"{key}={word}" for key, (word, _put) in KEYS.items()) + ".",
)
@click.option("--no-host", is_flag=True, help="Look at no machine.")
@click.option("--records", metavar="MIRROR", help="Compare with the channels' own records, from this mirror.")
@click.option(
    "--allow-host", "allowed", metavar="HOST", multiple=True, help="A server that is trusted; again for more."
)
def command(
    session: Session,
    lock: str | None,
    every: bool,
    cuda: str | None,
    host: str | None,
    no_host: bool,
    records: str | None,
    allowed: tuple[str, ...],
) -> Outcome:
    """LOCK is the file of any conda-lock.yml, ours or a stranger's, or the folder that holds one. Nothing in
    it is fetched or run. Exits 1 where something fatal or high is found."""
    if bool(lock) == every:
        raise InputError(_("which lock?"), _("name a file or a variant, or give --all"))
    facts = _facts(cuda, host, no_host=no_host, allowed=allowed)
    repodata = _repodata(records, session.observer) if records else None
    if every:
        reports = list(_all(facts, repodata))
    else:
        path, variant = _meant(lock or "")
        reports = [_audited(path, facts, variant, repodata)]
    if every and session.verbose <= 0:
        text = _summary(reports, facts, quiet=session.verbose < 0)
    else:
        text = "\n\n".join(_text(report, session, facts) for report in reports)
    rows = [{**to_json(each), "trusted": _trusted(each), "fits": _fits(each)} for each in reports]
    return Outcome(
        data={"ok": all(report.ok for report in reports), "reports": rows},
        text=text,
        code=ExitCode.OK if all(report.ok for report in reports) else ExitCode.FINDINGS,
    )


def _text(report: Report, session: Session, facts: Facts) -> str:
    """The report. Whether the lock can be trusted and whether it runs on a machine are two questions."""
    trusted, fits = _trusted(report), _fits(report)
    if not trusted:
        word = _("not to be trusted as it is")
    elif fits is False:
        word = (
            _("nothing serious found in it, but it does not run on that machine")
            if facts.named
            else _("nothing serious found in it, but it does not run on this machine")
        )
    else:
        word = _("nothing serious found")
    text = to_text(
        typed(report),
        color=session.color,
        verbose=session.verbose,
        verdicts=(word, word),
        shown=_shown(session.verbose),
        timed=False,
    )
    other = _that_fits(facts) if fits is False and session.verbose >= 0 else ""
    return f"{text}\n{other}" if other else text


def _shown(verbose: int) -> Callable[[Check], bool]:
    """Without -v what is good has no line, but for what the lock is and what it needs."""
    return lambda check: verbose > 0 or check.status is not Status.OK or check.id in _ALWAYS


def _of_machine(check: Check) -> bool:
    return check.id.startswith(_MACHINE)


def _trusted(report: Report) -> bool:
    return not any(check.bad for check in report.checks if not _of_machine(check))


def _fits(report: Report) -> bool | None:
    """Whether the machine can run it; None where nothing says that it cannot and something is not known."""
    own = [check for check in report.checks if _of_machine(check)]
    if any(check.bad for check in own):
        return False
    return True if own and all(check.status is Status.OK for check in own) else None


def _summary(reports: Sequence[Report], facts: Facts, *, quiet: bool) -> str:
    """A line a lock: whether it can be trusted, and whether it runs on the machine or why not."""
    runs = {True: _("yes"), None: _("not known")}
    rows = []
    for report in reports:
        bad = [check for check in report.checks if check.bad]
        why = [f"{check.id}: {check.summary}" for check in bad if not _of_machine(check)]
        why += [check.summary for check in bad if _of_machine(check)]
        if bad or not quiet:
            trusted, fits = _trusted(report), _fits(report)
            fit = _("no") if fits is False else runs[fits]
            machine = () if facts.host is None else (fit,)
            rows.append((report.subject, _("yes") if trusted else _("no"), *machine, "; ".join(why[:1])))
    if not rows:
        return ""
    there = _("runs there") if facts.named else _("runs here")
    header = (_("lock file"), _("trusted"), *(() if facts.host is None else (there,)), _("why not"))
    return table(header, rows, columns=terminal_columns())


def _that_fits(facts: Facts) -> str:
    """Which variant of the matrix the machine would run, where there is a matrix and such a variant."""
    try:
        _root, known = _project()
        assert facts.host is not None
        name = matrix.choose(known, facts.host, Axes()).variant.name
    except Error:
        return ""
    return _("{name} runs there; `envkit variants` lists all").format(name=name)


def _facts(cuda: str | None, host: str | None, *, no_host: bool, allowed: tuple[str, ...]) -> Facts:
    if cuda is not None and cuda != CPU and not re.fullmatch(_ACCELERATOR, cuda):
        raise InputError(_("'{cuda}' is no CUDA version").format(cuda=cuda), _("write --cuda 12.4, or cpu"))
    if host is not None and no_host:
        raise InputError(_("--host and --no-host were both given"), _("leave out one of the two"))
    for name in allowed:
        if not re.fullmatch(_HOST, name):
            raise InputError(
                _("'{host}' is not the name of a server").format(host=shown(name)),
                _("write it without https:// and path: --allow-host {example}").format(
                    example=hostname(name) or "conda.corp.example"
                ),
            )
    return Facts(
        accelerator=cuda,
        host=None if no_host else parse_host(host) if host is not None else read_host(),
        named=host is not None,
        allowed_hosts=frozenset(name.lower() for name in allowed),
    )


def _repodata(mirror: str, observer: Observer) -> Callable[[str, str], Path]:
    from envkit import fetch
    from envkit.channels import read_condarc

    routes = fetch.routes(mirror, condarc=read_condarc())
    return partial(fetch.repodata, routes=routes, cache=paths.cache(), observer=observer)


def _all(facts: Facts, repodata: Callable[[str, str], Path] | None) -> Iterator[Report]:
    root, known = _project()
    for variant in known.variants:
        path = lock_path(root, variant)
        if not known.commits(variant) and not path.exists():
            continue
        try:
            yield _audited(path, facts, variant, repodata)
        except InputError as problem:
            yield unreadable(path, problem)


def _audited(
    path: Path, facts: Facts, variant: Variant | None, repodata: Callable[[str, str], Path] | None
) -> Report:
    if variant is not None and facts.accelerator is None:
        facts = replace(facts, accelerator=variant.accelerator)
    return audit_file(path, facts, repodata=repodata, subject=variant.name if variant else str(path))


def _meant(word: str) -> tuple[Path, Variant | None]:
    """The file that an argument means, and the variant it belongs to where that is known."""
    path = Path(word)
    if path.is_dir() and (path / LOCK_NAME).exists():
        path /= LOCK_NAME
    if path.is_file() or "/" in word or path.suffix in (".yml", ".yaml"):
        return path, _owner(path)
    root, known = _project()
    variant = matrix.select(known, Axes(name=word))
    return lock_path(root, variant, listed=known.lists(variant)), variant


def _owner(path: Path) -> Variant | None:
    """The variant whose committed lock this is: it says which build was wanted."""
    try:
        root, known = _project(path.absolute().parent)
    except InputError:
        return None
    same = (variant for variant in known.variants if lock_path(root, variant).absolute() == path.absolute())
    return next(same, None)


def _project(start: Path | None = None) -> tuple[Path, Matrix]:
    root = matrix.find_root(start)
    return root, matrix.read_matrix(root / "environments" / "matrix.yaml")
