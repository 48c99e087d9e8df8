"""One file from the first host that gives it whole: who is asked, in which order, and who not again."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from envkit.channels import local_path
from envkit.fetch.disk import disk_full, is_file, writing
from envkit.fetch.failures import Attempt, failure, offline
from envkit.fetch.request import Request, from_directory
from envkit.fetch.session import Session, Stopped
from envkit.fetch.wanted import Candidate, Failed, Served, Wanted
from envkit.files import sha256_of
from envkit.messages import _
from envkit.progress import SILENT, Observer

__all__ = ["fetch", "needs_network"]

_MOST_ATTEMPTS = 60
_THIS_URL = frozenset({"missing", "page", "content", "redirect", "absent"})
"""Failures that say something of one URL only; the host may have the file in another form."""
_FOR_NOW = frozenset({"busy", "server", "stalled", "cut"})
"""Failures that may be gone in a moment. Any other is the host's last word on this file."""
_WRONG_BYTES = frozenset({"page", "size", "sha256"})
"""Failures after which the host is asked last, for every other file of the run."""


def fetch(
    session: Session,
    wanted: Wanted,
    partial: Path,
    *,
    observer: Observer = SILENT,
    task: str | None = None,
    stop: threading.Event | None = None,
) -> Served:
    """Get one file into `partial` (or find it in a directory), whole and checked.

    A host that fails is left at once for the next. One that refused or gave wrong bytes is not asked
    again for this file; one that stalled, broke off or was busy is, after all others; what it gave is
    kept and resumed. Each failure is told to `observer` in a line with host, file and reason; bytes
    are counted on `task`. Raises FetchError with what every host said, Unreachable where none could be
    reached at all, Error for a full disk, Stopped once `stop` is set.
    """
    if session.offline and needs_network(candidate.url for candidate in wanted.candidates):
        if wanted.sha256 and is_file(partial) and sha256_of(partial) == wanted.sha256:
            return Served(path=partial, candidate=wanted.candidates[0])
        raise offline((wanted.name,))
    if not session.offline:
        session.announce(observer)
    with writing(partial.parent):
        partial.parent.mkdir(parents=True, exist_ok=True)
        if os.path.lexists(partial) and not is_file(partial):
            partial.unlink()  # opening a pipe or a device would never end
    return _Fetch(session, wanted, partial, observer, task, stop).run()


def needs_network(urls: Iterable[str]) -> bool:
    """Whether none of `urls` is a file of this machine."""
    return all(local_path(url) is None for url in urls)


@dataclass(slots=True)
class _Fetch:
    session: Session
    wanted: Wanted
    partial: Path
    observer: Observer
    task: str | None
    stop: threading.Event | None
    order: tuple[Candidate, ...] = ()
    pending: list[Candidate] = field(default_factory=list)
    left_out: set[str] = field(default_factory=set)
    attempts: list[Attempt] = field(default_factory=list)
    needs: list[int] = field(default_factory=list)
    untold: dict[str, Attempt] = field(default_factory=dict)

    def run(self) -> Served:
        patience = self.session.patience
        self.order = tuple(
            sorted(self._arranged(), key=lambda candidate: self.session.last_resort(candidate.url))
        )
        if self.session.offline:
            self.order = tuple(one for one in self.order if local_path(one.url) is not None)
        self.pending = list(self.order)
        idle = 0
        while self.pending and idle < patience.rounds and len(self.attempts) < _MOST_ATTEMPTS:
            outcome = self._round()
            if isinstance(outcome, Served):
                self._served(outcome)
                return outcome
            gained, wait = outcome
            idle = 0 if gained else idle + 1
            if self.pending and idle < patience.rounds:
                self._pause(max(wait, patience.pause * idle))
        if self.needs and all(attempt.kind == "room" for attempt in self.attempts):
            raise disk_full(self.partial.parent, needed=min(self.needs))
        raise failure(self.wanted.name, self.attempts)

    def _arranged(self) -> Sequence[Candidate]:
        """The candidates, those of mirrors that nobody chose in the order of their speed here."""
        candidates, ranking = self.wanted.candidates, self.session.ranking
        if ranking is None or self.session.offline:
            return candidates
        order = ranking.arrange([one.host for one in candidates], self.session, self.observer)
        return [candidates[place] for place in order]

    def _round(self) -> Served | tuple[int, float]:
        """Ask every candidate once; the file, or the bytes gained and the seconds to wait.

        Candidates that are not worth asking again are taken out of `pending`.
        """
        gained, wait = 0, 0.0
        self.left_out.clear()
        for candidate in tuple(self.pending):
            if candidate.host in self.left_out or candidate not in self.pending:
                continue
            if left := self.session.resting(candidate.url):
                wait = max(wait, self._leave_alone(candidate, left))
                continue
            try:
                return self._ask(candidate)
            except Failed as failed:
                attempt = self._worded(failed.attempt)
                gained += failed.gained
                self.needs += [failed.needed] if failed.needed is not None else []
            if attempt.wait:
                self.session.rest(candidate.url, attempt.wait)
                wait = max(wait, attempt.wait if attempt.wait <= self.session.patience.longest_wait else 0.0)
            news = self._settle(candidate, attempt)
            self.attempts += news
            for one in news:
                self.session.ledger.failed(one)
                self._tell(one, candidate)
        return gained, wait

    def _leave_alone(self, candidate: Candidate, seconds: float) -> float:
        """Honour what a host asked for: the seconds to wait for it, 0 where that is too long."""
        self.left_out.add(candidate.host)
        if seconds <= self.session.patience.longest_wait:
            return seconds
        self._drop({candidate.host})
        if all(attempt.host != candidate.host for attempt in self.attempts):
            detail = _("asked to be left alone for {seconds:.0f} s").format(seconds=seconds)
            self.attempts.append(candidate.attempt("busy", detail))
        return 0.0

    def _served(self, served: Served) -> None:
        local = local_path(served.candidate.url) is not None
        place = _("this machine's disk") if local else served.candidate.host
        self.session.ledger.served(place, served.received)
        if (untold := self.untold.pop(served.candidate.host, None)) is not None:
            self._say(untold, served.candidate.url.rpartition("/")[2])

    def _ask(self, candidate: Candidate) -> Served:
        if self.stop is not None and self.stop.is_set():
            raise Stopped
        if (path := local_path(candidate.url)) is not None:
            return from_directory(self.wanted, candidate, path)
        if (last := self.session.dead(candidate.url)) is not None:
            raise Failed(last)
        request = Request(
            session=self.session,
            wanted=self.wanted,
            candidate=candidate,
            partial=self.partial,
            observer=self.observer,
            task=self.task,
            stop=self.stop,
        )
        return request.run()

    def _worded(self, attempt: Attempt) -> Attempt:
        if attempt.kind == "missing" and self.wanted.missing:
            return replace(attempt, detail=f"{self.wanted.missing} ({attempt.detail})")
        return attempt

    def _settle(self, candidate: Candidate, attempt: Attempt) -> list[Attempt]:
        """Decide who may be asked again: another form at the same host, the host in the next round, neither.

        Returns the attempt, and those of hosts that were found dead because of it.
        """
        if attempt.kind in _WRONG_BYTES:
            self.session.gave_wrong_bytes(candidate.url)
        if attempt.kind == "forbidden":
            self.session.refused(candidate.url)
        if attempt.kind in _THIS_URL:
            self.pending.remove(candidate)
            return [attempt]
        self.left_out.add(candidate.host)
        if not attempt.connection:
            if attempt.kind not in _FOR_NOW or attempt.wait > self.session.patience.longest_wait:
                self._drop({candidate.host})
            return [attempt]
        self.session.triage([other.url for other in self.pending])
        dead = {
            other.host: last for other in self.pending if (last := self.session.dead(other.url)) is not None
        }
        self._drop(set(dead))
        return [attempt, *(last for host, last in dead.items() if host != candidate.host)]

    def _drop(self, hosts: set[str]) -> None:
        self.pending = [other for other in self.pending if other.host not in hosts]

    def _tell(self, attempt: Attempt, candidate: Candidate) -> None:
        """One line a host: where it has the file in another form, that one's fate decides what is told."""
        following = [
            other
            for other in self.order[self.order.index(candidate) + 1 :]
            if other in self.pending and other.host not in self.left_out
        ]
        earlier = self.untold.pop(attempt.host, None)
        if attempt.kind == "missing" and earlier is not None:
            attempt = earlier  # that it lacks the other form too is no news beside a page or a cut file
        if not self.pending:
            return  # the error itself will say it
        if following and following[0].host == attempt.host:
            if attempt.kind != "missing":
                self.untold[attempt.host] = attempt
            return
        if attempt.connection and not self.session.first_time(f"unreachable {attempt.host}"):
            return
        self._say(attempt, (following or self.pending)[0].host)

    def _say(self, attempt: Attempt, following: str) -> None:
        text = _("{host}: {file}: {reason}; trying {next}").format(
            host=attempt.host, file=self.wanted.name, reason=attempt.detail, next=following
        )
        self.session.tell(attempt.url, text, self.observer)

    def _pause(self, seconds: float) -> None:
        if self.stop is None:
            time.sleep(seconds)
        elif self.stop.wait(seconds):
            raise Stopped
