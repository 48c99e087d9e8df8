"""envkit mirrors: who carries what, who is asked here, and who answers, how fast."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from envkit import paths
from envkit.channels import Condarc, Mirror, Table, read_condarc, table
from envkit.cli.axes import Mirrors, matrix_channels, mirror_options
from envkit.cli.frame import Outcome, Session, verb
from envkit.cli.view import terminal_columns
from envkit.errors import ExitCode, InputError
from envkit.messages import _
from envkit.progress import Observer
from envkit.report import table as columns_of
from envkit.report.width import wrap

if TYPE_CHECKING:
    from envkit import fetch
    from envkit.fetch.measure import Measurement, Target
    from envkit.fetch.measured import Memory

_COLUMNS = 80
_UNKNOWN = "?"


@verb("mirrors")
@click.argument("action", type=click.Choice(["test"]), required=False)
@mirror_options
def command(session: Session, action: str | None, mirrors: Mirrors) -> Outcome:
    """Without `test` nothing is contacted: what is known of each mirror, and whom this machine would ask for
    the channels of the matrix. `test` asks each one for the beginning of an index, all at once and for three
    seconds at most; for a day `auto` then goes by it, on this network.
    """
    condarc = read_condarc()
    routes = mirrors.routes()
    if action == "test":
        return measurements(routes, table(), session.observer, columns=terminal_columns() or _COLUMNS)
    return carriage(routes, table(), condarc, matrix_channels(), columns=terminal_columns() or _COLUMNS)


def carriage(
    routes: fetch.Routes, facts: Table, condarc: Condarc, channels: Sequence[str], *, columns: int
) -> Outcome:
    """The table of mirrors for some channels, the routes of this machine, the mistakes of its .condarc."""
    from envkit.fetch.measured import told

    rows = [_row(mirror, facts, channels) for mirror in facts.mirrors.values()]
    places = {channel: _places(routes, channel) for channel in channels}
    asked = [
        *routes.describe(channel for channel in channels if places[channel]),
        *(
            _("{channel}: nobody who may be asked has it").format(channel=name)
            for name in channels
            if not places[name]
        ),
    ]
    measured = _measured(routes)
    header = (_("mirror"), *channels, _("pip"), "wheels", _("as of"))
    lines = [
        (
            row["id"],
            *(_cell(row["channels"][channel]) for channel in channels),
            _cell(row["pip"]),
            _cell(row["wheels"]),
            row["date"] or _UNKNOWN,
        )
        for row in rows
    ]
    text = [
        columns_of(header, lines, columns=columns),
        "",
        _("cache: fetched when it is first asked for; via: redirects there; ?: nobody knows"),
        _("pip, wheels: copies of the Python index's files and of PyTorch's own wheels"),
        "",
        _("asked here, with --mirror {choice}:").format(choice=routes.choice),
        *_indented(asked, columns),
    ]
    if measured:
        said = _("measured here within a day: {mirrors}").format(mirrors=", ".join(map(told, measured)))
        text += ["", *_indented([said], columns)]
    if condarc.paths:
        text += ["", _("read: {files}").format(files=", ".join(map(str, condarc.paths)))]
    text += ["", *map(str, condarc.mistakes)] if condarc.mistakes else []
    data = {
        "as_of": facts.as_of,
        "channels": list(channels),
        "mirrors": rows,
        "choice": routes.choice,
        "measured": [asdict(one) for one in measured],
        "routes": places,
        "condarc": [str(path) for path in condarc.paths],
        "mistakes": [{**asdict(mistake), "path": str(mistake.path)} for mistake in condarc.mistakes],
    }
    return Outcome(data=data, text="\n".join(text))


def _places(routes: fetch.Routes, channel: str) -> list[str]:
    """Who is asked for a channel, in order; nobody where only mirrors may be that lack it."""
    try:
        return [source.place for source in routes.sources(channel)]
    except InputError:
        return []


def _measured(routes: fetch.Routes) -> Sequence[Measurement]:
    """What is remembered of the mirrors that nobody chose, the fastest first."""
    ranking = routes.session.ranking
    kept = () if ranking is None or ranking.memory is None else ranking.memory.read()
    return sorted(kept, key=lambda one: (one.cost, one.id))


def _indented(lines: Iterable[str], columns: int) -> Iterator[str]:
    """Paragraphs, their first lines further out."""
    for line in lines:
        first, *rest = wrap(line, columns - 4)
        yield f"  {first}"
        yield from (f"    {other}" for other in rest)


def _row(mirror: Mirror, facts: Table, channels: Sequence[str]) -> dict[str, Any]:
    upstream = mirror is facts.upstream
    return {
        "id": mirror.id,
        "name": mirror.name,
        "host": mirror.host,
        "channels": {channel: _carried(mirror, channel) for channel in channels},
        "pip": "yes" if upstream or mirror.files else "unknown",
        "wheels": "yes" if upstream or mirror.wheels else mirror.wheels_carried,
        "redirects": mirror.redirects,
        "date": mirror.date,
    }


def _carried(mirror: Mirror, channel: str) -> str:
    """ "yes", "no", "cache", "unknown", or "via" and the mirror that answers instead."""
    name, _slash, label = channel.partition("/label/")
    found = mirror.channels.get(name)
    if found is None:
        return "unknown"
    if label and not found.labels and found.carried != "unknown":
        return "no"
    return f"via {mirror.redirects}" if found.carried == "redirect" and mirror.redirects else found.carried


def _cell(carried: str) -> str:
    words = {"yes": _("yes"), "no": _("no"), "cache": _("cache"), "unknown": _UNKNOWN}
    return words.get(carried, carried)


def measurements(
    routes: fetch.Routes, facts: Table, observer: Observer, *, columns: int, memory: Memory | None = None
) -> Outcome:
    """Measure all mirrors of a table that may have the sample, remember it, and tell it. Exits 3 where none
    answers."""
    from envkit.fetch import measured
    from envkit.fetch.measure import SECONDS, measure, targets

    wanted = targets(facts.mirrors.values())
    known = {target.host for target in wanted}
    wanted = (*wanted, *(target for target in _own_targets(routes) if target.host not in known))
    observer.note(
        _("asking {count} mirrors, {seconds:.0f} seconds at most").format(count=len(wanted), seconds=SECONDS)
    )
    found = sorted(measure(wanted, routes.session), key=lambda one: (one.cost, one.id))
    answered = any(one.answered for one in found)
    if answered:
        kept = memory or measured.Memory(
            path=paths.state() / "mirrors.json", network=measured.network(routes.session.access)
        )
        kept.write(found)
    header = (_("mirror"), _("first byte"), _("speed"), _("index of"), _("remark"))
    lines = [(one.id, _latency(one), _speed(one), _changed(one), one.problem) for one in found]
    text = [columns_of(header, lines, columns=columns)]
    text += ["", _("remembered for a day on this network: `auto` asks in this order")] if answered else []
    text += [] if answered else ["", _("no mirror answers: no network, a filter, or a proxy that is not set")]
    return Outcome(
        data={"answered": answered, "mirrors": [{**asdict(one), "answered": one.answered} for one in found]},
        text="\n".join(text),
        code=ExitCode.OK if answered else ExitCode.ENVIRONMENT,
    )


def _own_targets(routes: fetch.Routes) -> Iterator[Target]:
    """What to ask the servers that the user named, and those of a .condarc."""
    from envkit.fetch.measure import target_at

    for source in routes.sources("conda-forge", "noarch"):
        if source.directory is None:
            yield target_at(source.place, source.url, zst=source.zst)


def _latency(one: Measurement) -> str:
    return "" if one.latency is None or not one.answered else f"{one.latency * 1000:.0f} ms"


def _speed(one: Measurement) -> str:
    return "" if one.speed is None or not one.answered else f"{one.speed / 1e6:.1f} MB/s"


def _changed(one: Measurement) -> str:
    if one.changed is None:
        return _UNKNOWN if one.answered else ""
    hours = max(0.0, time.time() - one.changed) / 3600
    return (
        _("{hours:.0f} h ago").format(hours=hours)
        if hours < 48
        else _("{days:.0f} days ago").format(days=hours / 24)
    )
