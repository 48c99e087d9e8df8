"""What `--dry-run` says: the plan of an installation, for people and for programs."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from envkit.cli.frame import Outcome, Session
from envkit.errors import ExitCode
from envkit.install import Preview
from envkit.install.drift.packages import said
from envkit.install.work import Part, Work, total
from envkit.messages import _
from envkit.report import to_json, to_text
from envkit.report.size import spoken
from envkit.report.width import pad
from envkit.up import Request
from envkit.up.preview import preview

__all__ = ["planned"]

_COLUMN = 9


def planned(session: Session, request: Request) -> Outcome:
    """The plan of a request; exit code 1 where it could not succeed."""
    found = preview(request)
    return Outcome(
        data=_data(found),
        text="\n".join(_lines(found, session)),
        code=ExitCode.OK if found.possible else ExitCode.FINDINGS,
    )


def _lines(found: Preview, session: Session) -> Iterator[str]:
    place = shlex.quote(str(found.prefix))
    if found.current:
        yield _(
            "{prefix} was made from this lock, nothing would be done; "
            "`envkit drift {name}` looks at its files"
        ).format(prefix=place, name=found.name)
        return
    yield (
        _("would replace the environment {prefix}").format(prefix=place)
        if found.replaces
        else _("would make the environment {prefix}").format(prefix=place)
    )
    work = found.work
    for title, parts in (
        (_("fetch"), work.fetch),
        (_("unpack"), work.unpack),
        (_("link"), work.link),
        (_("pip"), work.pip),
    ):
        archives = parts is work.fetch or parts is work.unpack
        yield f"{pad(title, _COLUMN)}{_counted(parts, work.unsized if archives else None)}"
        if session.verbose > 0:
            yield from (f"{pad('', _COLUMN)}{_named(part)}" for part in parts)
    if found.replaces:
        user = {package.name for package in found.sync.added}
        going = [
            _("{package} (added by pip)").format(package=text) if package.name in user else text
            for package, text in zip(found.sync.remove, said(found.sync.remove), strict=True)
        ]
        for title, names in (
            (_("add"), said(found.sync.add)),
            (_("change"), said(found.sync.change)),
            (_("remove"), going),
        ):
            yield f"{pad(title, _COLUMN)}{', '.join(names) or '-'}"
    if found.processes:
        yield _("in use by process {processes}: it would not be replaced").format(
            processes=", ".join(map(str, found.processes))
        )
    if found.lacking:
        yield _("offline, and not in the cache: {packages}").format(packages=", ".join(said(found.lacking)))
    yield ""
    yield to_text(
        found.preflight,
        color=session.color,
        verbose=session.verbose,
        verdicts=(
            _("it cannot be installed offline") if found.lacking else _("it can be installed"),
            _("it cannot be installed here as it is"),
        ),
    )


def _counted(parts: Sequence[Part], unsized: int | None) -> str:
    """How many packages and bytes; `unsized` is about how many those of unknown size have together."""
    known, unknown = total(parts)
    text = _("{count} packages").format(count=len(parts))
    if not parts:
        return text
    if unknown and unsized is not None:
        return _("{packages}, about {size}").format(packages=text, size=spoken(known + unsized))
    if unknown == len(parts):
        return _("{packages}, of unknown size").format(packages=text)
    if unknown:
        return _("{packages}, {size} and {count} of unknown size").format(
            packages=text, size=spoken(known), count=unknown
        )
    return f"{text}, {spoken(known)}"


def _named(part: Part) -> str:
    package = part.package
    size = spoken(part.bytes) if part.bytes is not None else "?"
    return f"{package.name} {package.version} {package.build}".rstrip() + f"  {size}"


def _data(found: Preview) -> dict[str, Any]:
    work, change = found.work, found.sync
    return {
        "dry_run": True,
        "environment": found.name,
        "prefix": str(found.prefix),
        "lock": str(found.lock.path),
        "platform": found.platform,
        "current": found.current,
        "replaces": found.replaces,
        "possible": found.possible,
        "bytes": _bytes(work),
        "fetch": [_part(part) for part in work.fetch],
        "unpack": [_part(part) for part in work.unpack],
        "link": [_part(part) for part in work.link],
        "pip": [_part(part) for part in work.pip],
        "add": list(said(change.add)),
        "change": list(said(change.change)),
        "remove": list(said(change.remove)),
        "added_by_pip": list(said(change.added)),
        "lacking": list(said(found.lacking)),
        "processes": [asdict(user) for user in found.processes],
        "preflight": to_json(found.preflight),
    }


def _bytes(work: Work) -> dict[str, int | None]:
    """What is known of the bytes of each step; None where something is not."""
    found: dict[str, int | None] = {}
    for name, parts, rest in (
        ("fetch", work.fetch, work.unsized),
        ("unpack", work.unpack, work.unsized),
        ("link", work.link, None),
        ("pip", work.pip, None),
    ):
        known, unknown = total(parts)
        found[name] = known if not unknown else None if rest is None else known + rest
    return found


def _part(part: Part) -> dict[str, Any]:
    package = part.package
    return {
        "name": package.name,
        "version": package.version,
        "build": package.build,
        "manager": package.manager,
        "bytes": part.bytes,
        "files": part.files,
    }
