"""envkit audit: look a lock over before anybody installs from it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from envkit import matrix, paths
from envkit.channels import hostname, shown
from envkit.cli.frame import Outcome, Session, verb
from envkit.errors import ExitCode, InputError
from envkit.host import read_host
from envkit.lock import LOCK_NAME, lock_path
from envkit.lock.audit import Facts, audit_file, parse_host, unreadable
from envkit.matrix import Axes, Matrix
from envkit.messages import _
from envkit.model import CPU, Check, Report, Status, Variant
from envkit.progress import Observer
from envkit.report import to_json, to_text

_ALWAYS = ("lock.format", "lock.needs")
_HOST = r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?|[0-9a-fA-F:.]+"
_ACCELERATOR = r"\d{1,2}\.\d{1,2}"


@verb("audit")
@click.argument("lock", required=False, metavar="[LOCK|VARIANT]")
@click.option("--all", "every", is_flag=True, help="The locks of all variants of the matrix.")
@click.option("--cuda", metavar="X.Y|cpu", help="The build that is wanted; a variant's own without this.")
@click.option(
    "--host", metavar="KEY=VALUE,…", help="A machine: glibc=2.17,driver=535.104,gpu=8.6; not this one."
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
    return Outcome(
        data={"ok": all(report.ok for report in reports), "reports": [to_json(each) for each in reports]},
        text="\n\n".join(_text(report, session) for report in reports),
        code=ExitCode.OK if all(report.ok for report in reports) else ExitCode.FINDINGS,
    )


def _text(report: Report, session: Session) -> str:
    words = (_("nothing serious found"), _("not to be trusted as it is"))
    return to_text(
        report, color=session.color, verbose=session.verbose, verdicts=words, shown=_shown(session.verbose)
    )


def _shown(verbose: int) -> Callable[[Check], bool]:
    """Without -v what is good has no line, but for what the lock is and what it needs."""
    return lambda check: bool(verbose) or check.status is not Status.OK or check.id in _ALWAYS


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
