"""One file asked of one host: redirects, Range, the body, and every check of what arrives."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from envkit.fetch.credentials import auth_for
from envkit.fetch.disk import free_bytes, writing
from envkit.fetch.session import Session, Stopped
from envkit.fetch.trust import Untrusted
from envkit.fetch.wanted import Candidate, Failed, Rejected, Served, Wanted
from envkit.messages import _
from envkit.progress import Observer

if TYPE_CHECKING:
    import httpx

__all__ = ["Request", "from_directory"]

_BLOCK = 1 << 20
_BEGINNING = 64
_MOST_REDIRECTS = 5
_SLOWEST = 100
"""Bytes a second below which a host counts as one that gives nothing."""


def from_directory(wanted: Wanted, candidate: Candidate, path: Path) -> Served:
    """The file where it lies, checked like any other: rattler itself trusts `file://`. Raises Failed."""
    try:
        with path.open("rb") as file:
            beginning = file.read(_BEGINNING)
            right = wanted.sha256 is None or _digest_of(path).hexdigest() == wanted.sha256
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        raise Failed(candidate.attempt("absent", _("no such file there"))) from None
    except OSError as problem:
        raise Failed(candidate.attempt("absent", problem.strerror or str(problem))) from None
    _check_beginning(candidate, beginning)
    if not right:
        raise Failed(candidate.attempt("sha256", _("wrong sha256")))
    _check_content(wanted, candidate, path)
    return Served(path=path, candidate=candidate)


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """A request for one file at one host, which writes to `partial` and keeps what it got."""

    session: Session
    wanted: Wanted
    candidate: Candidate
    partial: Path
    observer: Observer
    task: str | None
    stop: threading.Event | None

    def run(self) -> Served:
        """The file, whole and checked. Raises Failed, Stopped, or Error where the disk is full."""
        import httpx

        from envkit.fetch.diagnosis import diagnose

        candidate = self.candidate
        digest, offset = self._already()
        if offset and digest.hexdigest() == self.wanted.sha256:
            return Served(path=self.partial, candidate=candidate)
        if reason := self.session.trust.refusal(candidate.url):
            raise Failed(candidate.attempt("untrusted", reason, allow=candidate.host))
        known = self.session.has_answered(candidate.url)
        trail = [candidate.url]
        started = False
        try:
            with self._opened(offset, trail) as response:
                started = True
                if response.status_code == 304:
                    return Served(path=None, candidate=candidate)
                start = self._start(response, offset)
                received = self._receive(response, start, digest if start else hashlib.sha256())
                headers = dict(response.headers)
        except httpx.HTTPError as problem:
            attempt = diagnose(problem, candidate.url, answered=started or known)
            if len(trail) > 1 and not started:
                attempt = candidate.attempt("redirect", _redirected(trail[-1], attempt.detail))
            if attempt.connection:
                self.session.failed(candidate.url, attempt)
            raise Failed(attempt, gained=max(0, self._size() - offset)) from None
        except Untrusted as problem:
            raise Failed(
                candidate.attempt("redirect", _redirected(trail[-1], str(problem)), allow=_host(trail[-1]))
                if len(trail) > 1
                else candidate.attempt("untrusted", str(problem), allow=candidate.host)
            ) from None
        except (httpx.InvalidURL, UnicodeError) as problem:  # IDNA's errors are of the second kind
            raise Failed(candidate.attempt("redirect", str(problem))) from None
        _check_content(self.wanted, candidate, self.partial)
        return Served(path=self.partial, candidate=candidate, received=received, headers=headers)

    def _already(self) -> tuple[hashlib._Hash, int]:
        """The hash and the number of the bytes that earlier attempts and runs left; none without a sha256."""
        if self.wanted.sha256 is None or not self._size():
            return hashlib.sha256(), 0
        return _digest_of(self.partial), self._size()

    def _size(self) -> int:
        try:
            return self.partial.stat().st_size if self.wanted.sha256 is not None else 0
        except FileNotFoundError:
            return 0

    @contextmanager
    def _opened(self, offset: int, trail: list[str]) -> Iterator[httpx.Response]:
        """The answer that is not a redirect; `trail` grows by the URLs on the way."""
        from envkit.fetch.diagnosis import judge

        headers = {"Accept-Encoding": "identity", **dict(self.candidate.headers)}
        if offset:
            headers["Range"] = f"bytes={offset}-"
        for _hop in range(_MOST_REDIRECTS + 1):
            url = trail[-1]
            with (
                self.session.slot(url, self.stop),
                self.session.client.stream(
                    "GET", url, headers=headers, auth=auth_for(url), timeout=self.session.timeout(url)
                ) as response,
            ):
                self.session.answered(self.candidate.url)
                if not response.has_redirect_location:
                    self._refuse_range(response, offset)
                    if attempt := judge(response, self.candidate.url):
                        raise Failed(attempt)
                    self._show_redirects(trail)
                    yield response
                    return
                target = str(response.url.join(response.headers["Location"]))
            self._allow(url, target)
            trail.append(target)
        raise Failed(self.candidate.attempt("redirect", _("redirected too often")))

    def _allow(self, url: str, target: str) -> None:
        if reason := self.session.trust.refusal(target, origin=url):
            # TLS is given up for nobody: where it would be, naming the host does not help.
            same = ("https:",) if url.startswith("https:") else ("https:", "http:")
            allow = _host(target) if target.startswith(same) else ""
            raise Failed(self.candidate.attempt("redirect", _redirected(target, reason), allow=allow))

    def _show_redirects(self, trail: Sequence[str]) -> None:
        """Say where a file comes from in truth: a firewall with a list of hosts must be able to know."""
        for here, there in pairwise(_host(url) for url in trail):
            if here != there and self.session.first_time(f"redirect {here} {there}"):
                self.observer.note(
                    _("{here}: {file}: redirects to {there}").format(
                        here=here, file=self.wanted.name, there=there
                    )
                )

    def _refuse_range(self, response: httpx.Response, offset: int) -> None:
        if response.status_code == 416 or (
            response.status_code == 206
            and not response.headers.get("Content-Range", "").startswith(f"bytes {offset}-")
        ):
            self.partial.unlink(missing_ok=True)
            raise Failed(self.candidate.attempt("cut", _("cannot resume there; starting again")))

    def _start(self, response: httpx.Response, offset: int) -> int:
        """The offset at which the body begins, once size and room on the disk are known to be right."""
        start = offset if response.status_code == 206 else 0
        length = response.headers.get("Content-Length", "")
        if length.isdigit() and "Content-Encoding" not in response.headers:
            total = start + int(length)
            if self.wanted.size is not None and total != self.wanted.size:
                detail = _("{total} bytes instead of {size}").format(total=total, size=self.wanted.size)
                raise Failed(self.candidate.attempt("size", detail))
            self._require_room(int(length) - (offset - start))
        return start

    def _require_room(self, needed: int) -> None:
        """Refuse a body larger than the disk: a host that announces absurd numbers is no full disk."""
        free = free_bytes(self.partial.parent)
        if needed > free:
            detail = _("announces {needed} MB, and the disk of {folder} has {free} MB free").format(
                needed=-(-needed // 10**6), folder=self.partial.parent, free=free // 10**6
            )
            raise Failed(self.candidate.attempt("room", detail), needed=needed)

    def _not_crawling(self, response: httpx.Response) -> Iterator[bytes]:
        """The body as it comes. A byte now and then is a stall that no time-out of a socket sees."""
        limit = self.session.patience.stall
        end, received, before = time.monotonic() + limit, 0, 0
        for block in response.iter_bytes() if "Content-Encoding" in response.headers else response.iter_raw():
            received += len(block)
            if (now := time.monotonic()) > end:
                if received - before < _SLOWEST * limit:
                    detail = _("only {count} bytes in {seconds:.0f} s").format(
                        count=received - before, seconds=now - end + limit
                    )
                    gained = before if self.wanted.sha256 is not None else 0
                    raise Failed(self.candidate.attempt("stalled", detail), gained=gained)
                end, before = now + limit, received
            yield block

    def _receive(self, response: httpx.Response, start: int, digest: hashlib._Hash) -> int:
        """Write the body from `start` on and check the whole; the number of bytes that came."""
        received = 0
        largest = self.wanted.largest if self.wanted.size is None else self.wanted.size
        blocks = _in_blocks(self._not_crawling(response))
        block = next(blocks, b"")
        if not start:
            _check_beginning(self.candidate, block)
        with writing(self.partial.parent):
            file = self.partial.open("r+b" if start else "wb")
        with file:
            file.seek(start)
            file.truncate()
            while block:
                if self.stop is not None and self.stop.is_set():
                    raise Stopped
                with writing(self.partial.parent):
                    file.write(block)
                    file.flush()
                digest.update(block)
                received += len(block)
                if start + received > largest:
                    file.truncate(0)
                    detail = _("more than {largest} bytes").format(largest=largest)
                    raise Failed(self.candidate.attempt("size", detail))
                if self.task is not None:
                    self.observer.advance(self.task, len(block))
                block = next(blocks, b"")
        if self.wanted.sha256 is not None and digest.hexdigest() != self.wanted.sha256:
            self.partial.unlink()
            # The first part may be another host's fault: "cut" lets this one be asked again, from the start.
            raise Failed(self.candidate.attempt("cut" if start else "sha256", _("wrong sha256")))
        return received


def _in_blocks(body: Iterable[bytes]) -> Iterator[bytes]:
    """The body in blocks as they come, none empty and the first long enough to be recognised."""
    beginning = b""
    for block in body:
        if len(beginning) < _BEGINNING:
            beginning += block
            if len(beginning) >= _BEGINNING:
                yield beginning
        elif block:
            yield block
    if 0 < len(beginning) < _BEGINNING:
        yield beginning


def _check_beginning(candidate: Candidate, beginning: bytes) -> None:
    """Refuse a soft 404: a web page, or anything else that such a file never begins with."""
    if not candidate.magic:
        return
    if beginning.lstrip().startswith(b"<"):
        raise Failed(candidate.attempt("page", _("a web page instead of the file")))
    if not beginning.startswith(candidate.magic):
        raise Failed(candidate.attempt("content", _("something else instead of the file")))


def _check_content(wanted: Wanted, candidate: Candidate, path: Path) -> None:
    if wanted.accept is not None:
        try:
            wanted.accept(path, candidate)
        except Rejected as rejected:
            raise Failed(candidate.attempt("content", str(rejected))) from None


def _digest_of(path: Path) -> hashlib._Hash:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest


def _redirected(target: str, reason: str) -> str:
    return _("redirected to {host}: {reason}").format(host=_host(target), reason=reason)


def _host(url: str) -> str:
    return Candidate(url=url).host
