"""What went wrong at which host, and the errors that list it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from envkit.channels import MAINLAND, shown, table
from envkit.errors import Error
from envkit.messages import _

__all__ = [
    "CONNECTION",
    "Attempt",
    "FetchError",
    "NoSubdir",
    "Offline",
    "Unreachable",
    "failure",
    "host_of",
    "offline",
]

CONNECTION = frozenset({"dns", "refused", "tls", "timeout", "connect", "silent", "reset"})
"""The kinds of failure in which a host gave no answer: "silent" took the request, "reset" broke it off."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    """One request that did not give the file.

    `kind` is one of CONNECTION, or "missing" (404, 410), "forbidden" (401, 403, 407, 451), "busy" (429),
    "server" (5xx), "status" (any other), "stalled", "cut" (fewer bytes than announced), "page" (a web page
    instead of the file), "size", "room" (more bytes than there is room for), "sha256", "content", "redirect"
    (to where it may not lead), "untrusted" (a host that nobody chose) and "absent" (not in a directory).
    `url` shows no credentials. `wait` is what the host asked for, in seconds. `allow` is the host that
    `--allow-host` would let be asked.
    """

    host: str
    url: str
    kind: str
    detail: str
    wait: float = 0.0
    allow: str = ""

    @property
    def connection(self) -> bool:
        """Whether the host could not be reached at all."""
        return self.kind in CONNECTION


class FetchError(Error):
    """A file could not be had from any host; `attempts` says what each one answered."""

    def __init__(self, message: str, hint: str = "", *, attempts: Sequence[Attempt] = ()) -> None:
        super().__init__(message, hint)
        self.attempts = tuple(attempts)


class Unreachable(FetchError):
    """Every host failed before it could answer: no network, a filter, or a proxy that is not set."""


class NoSubdir(FetchError):
    """Every host that answered says that the channel has no such subdir."""


class Offline(FetchError):
    """The run may not open a connection, and the cache lacks what it needs."""


_SHOWN = 12


def offline(names: Sequence[str]) -> Offline:
    """The error for files that the cache lacks while no host may be asked."""
    lines = [f"  {name}" for name in names[:_SHOWN]]
    if len(names) > _SHOWN:
        lines.append("  " + _("and {count} more").format(count=len(names) - _SHOWN))
    return Offline(
        _("no connection may be made (--offline), and this is not in the cache:") + "\n" + "\n".join(lines),
        _("run the same command once without --offline, or install from a bundle: --from FILE"),
    )


def failure(name: str, attempts: Sequence[Attempt]) -> FetchError:
    """The error for a file that no host gave, after `attempts`."""
    lines = dict.fromkeys(f"  {attempt.host}: {attempt.detail}" for attempt in attempts)
    asked = [attempt for attempt in attempts if attempt.kind != "absent"]
    if asked and all(attempt.connection for attempt in asked):
        return Unreachable(
            _("no host can be reached for {name}:").format(name=name) + "\n" + "\n".join(lines),
            _(
                "let one of them through the firewall or set HTTPS_PROXY; or choose a mirror that you reach "
                "({mirrors}), a copy of the channels (`--mirror file:///dir`, with CHANNEL/linux-64/… "
                "in it), or the wheels that pip reaches (`--mirror wheels`)"
            ).format(mirrors=_others(asked)),
            attempts=attempts,
        )
    if refused := [attempt.allow for attempt in asked if attempt.allow]:
        hint = _("where you trust it: --allow-host {host}").format(host=refused[0])
    else:
        hint = _("choose another mirror, or a list in order: {mirrors}").format(
            mirrors=_others(asked, first="official,")
        )
    return FetchError(
        _("{name} cannot be had:").format(name=name) + "\n" + "\n".join(lines),
        hint,
        attempts=attempts,
    )


def _others(asked: Sequence[Attempt], first: str = "") -> str:
    """An option that names a mirror in mainland China which was not just asked in vain."""
    known = {mirror: table().mirrors[mirror] for mirror in MAINLAND}
    hosts = {attempt.host for attempt in asked}
    left = [name for name, mirror in known.items() if mirror.host not in hosts]
    return f"`--mirror {first}{left[0]}`" if left else _("`envkit mirrors` lists them")


def host_of(url: str) -> str:
    """The host (and port, where it is written) of a URL, or the path of a `file://` URL."""
    parts = urlsplit(shown(url))
    return parts.netloc or parts.path
