"""Where the archives come from: schemes, servers, credentials, mirrors and channels that need a licence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from envkit.channels import Canonical, canonicalise_url, is_licensed, shown
from envkit.lock.audit.addresses import is_private_host
from envkit.lock.audit.rule import Facts, Finding, Result, Subject, found, rule
from envkit.messages import _
from envkit.model import Severity

__all__ = ["credentials", "hosts", "http", "licensed", "local_files", "mirrors", "private_addresses", "urls"]

_VARIABLE = re.compile(r"\$\{?\w+\}?|\$\w*")
"""A name of an environment variable, as conda-lock writes it in the place of a token or password."""

_TOKEN_PATH = re.compile(r"/t/([^/]+)/")
_SECRET_KEY = re.compile(
    r"(?i)(?:^|[-_])(?:token|access[-_]?key|api[-_]?key|auth|password|passwd|pwd|secret|signature|sig|credential|key)(?:$|[-_])"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Url:
    """A URL of the lock, in its parts; `text` has nothing secret in it and may be shown."""

    place: str
    text: str
    parts: SplitResult
    canonical: Canonical
    platform: str | None = None
    package: str | None = None

    @property
    def host(self) -> str:
        return self.parts.hostname or ""

    def finding(self, text: str, severity: Severity | None = None) -> Finding:
        return Finding(
            place=self.place, text=text, platform=self.platform, package=self.package, severity=severity
        )


def _all(subject: Subject) -> Iterator[_Url]:
    """Every URL that can be taken apart: those of packages, and channels that are named by one."""
    for index, channel in enumerate(subject.draft.lock.channels):
        if "://" in channel:
            yield from _taken_apart(f"metadata.channels[{index}]", channel, None, None)
    for entry in subject.draft.entries:
        package = entry.package
        yield from _taken_apart(f"{entry.place}.url", package.url, package.platform, package.name)


def _taken_apart(place: str, url: str, platform: str | None, package: str | None) -> Iterator[_Url]:
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018, raises where it is none
        text = shown(url)
    except ValueError:
        return  # told by lock.urls
    yield _Url(
        place=place,
        text=ascii(text)[1:-1],
        parts=parts,
        canonical=canonicalise_url(url),
        platform=platform,
        package=package,
    )


@rule(
    "lock.urls",
    Severity.FATAL,
    lambda: _("do not use this lock: make one from the environment.yml it is said to be for"),
)
def urls(subject: Subject, facts: Facts) -> Result:
    """The reader's own findings: other schemes, `..`, control characters, quoted slashes."""
    faults = (
        Finding(place=fault.place, text=fault.text) for fault in subject.draft.faults if fault.kind == "url"
    )
    return found((*faults, *_bad_ports(subject)), _("every URL is that of a file"))


def _bad_ports(subject: Subject) -> Iterator[Finding]:
    for entry in subject.draft.entries:
        try:
            urlsplit(entry.package.url).port  # noqa: B018
        except ValueError:
            yield Finding(place=f"{entry.place}.url", text=_("the port is none"), package=entry.package.name)


@rule(
    "lock.http",
    Severity.HIGH,
    lambda: _("make the lock again from channels with https, or run `envkit lock --canonicalise LOCK`"),
)
def http(subject: Subject, facts: Facts) -> Result:
    """Whoever is on the way sees what is fetched; only the hash keeps them from changing it."""
    findings = (
        url.finding(_("{url} is fetched without TLS").format(url=url.text))
        for url in _all(subject)
        if url.parts.scheme == "http"
    )
    return found(findings, _("nothing is fetched without TLS"))


@rule(
    "lock.private-address",
    Severity.HIGH,
    lambda: _(
        "where that is your own mirror, name it with --allow-host; from a stranger, do not use the lock"
    ),
)
def private_addresses(subject: Subject, facts: Facts) -> Result:
    findings = (
        url.finding(_("{host} is an address of a private network").format(host=ascii(url.host)[1:-1]))
        for url in _all(subject)
        if url.parts.scheme != "file" and is_private_host(url.host) and url.host not in facts.allowed_hosts
    )
    return found(findings, _("no URL leads into a private network"))


@rule(
    "lock.credentials",
    Severity.HIGH,
    lambda: _(
        "revoke them, then lock with an environment variable in the channel's URL: https://$USER:$TOKEN@host"
    ),
)
def credentials(subject: Subject, facts: Facts) -> Result:
    """Whatever is committed is read by others. Never shows what it found."""
    return found(_secrets(subject), _("no URL holds a password or a token"))


def _secrets(subject: Subject) -> Iterator[Finding]:
    for url in _all(subject):
        parts = url.parts
        words = [word for word in (parts.username, parts.password) if word]
        if any(not _VARIABLE.fullmatch(word) for word in words):
            yield url.finding(_("a user name or password for {host}").format(host=url.host))
        elif any(not _VARIABLE.fullmatch(word) for word in _TOKEN_PATH.findall(f"{parts.path}/")):
            yield url.finding(_("a token for {host}").format(host=url.host))
        elif any(_names_secret(word) for word in (parts.query, parts.fragment)):
            yield url.finding(_("a signed query or a key for {host}").format(host=url.host))


def _names_secret(query: str) -> bool:
    pairs = (pair.partition("=") for pair in query.split("&"))
    return any(
        value and _SECRET_KEY.search(key) and not _VARIABLE.fullmatch(value) for key, _eq, value in pairs
    )


@rule(
    "lock.hosts",
    Severity.HIGH,
    lambda: _("if you trust the server, say so: --allow-host HOST; otherwise lock again from known channels"),
)
def hosts(subject: Subject, facts: Facts) -> Result:
    """A hash says that an archive is the one the lock's maker saw, not who made it."""
    findings = (
        url.finding(_("{host} is no known channel server, mirror or package index").format(host=url.host))
        for url in _all(subject)
        if url.parts.scheme in ("http", "https")
        and not url.canonical.known
        and url.host not in facts.allowed_hosts
        and not is_private_host(url.host)
    )
    return found(findings, _("every server is a known one"))


@rule(
    "lock.local-files",
    Severity.MEDIUM,
    lambda: _("such a lock works where the folder is: do not commit it"),
)
def local_files(subject: Subject, facts: Facts) -> Result:
    findings = (
        url.finding(_("a folder of the machine it was made on"))
        for url in _all(subject)
        if url.parts.scheme == "file"
    )
    return found(findings, _("nothing comes from a folder of one machine"))


@rule(
    "lock.mirrors",
    Severity.MEDIUM,
    lambda: _("run `envkit lock --canonicalise LOCK`: the lock then serves every mirror, the hashes stay"),
)
def mirrors(subject: Subject, facts: Facts) -> Result:
    """A mirror is a transport: it closes, it lags, and it is not everybody's nearest."""
    return found(_mirrored(subject), _("every URL is that of the channel itself"))


def _mirrored(subject: Subject) -> Iterator[Finding]:
    for url in _all(subject):
        own = url.canonical
        if not own.known or urlsplit(own.url).hostname == url.host:
            continue
        text = _("{host} is a mirror of {canonical}")
        yield url.finding(text.format(host=url.host, canonical=own.channel or urlsplit(own.url).hostname))


@rule(
    "lock.licensed",
    Severity.MEDIUM,
    lambda: _(
        "put conda-forge in the place of defaults and lock again, or see that you have a licence for it"
    ),
)
def licensed(subject: Subject, facts: Facts) -> Result:
    """Anaconda's terms ask organisations of 200 people and more to pay for `defaults`, whoever serves it.

    Source: https://www.anaconda.com/legal/terms/terms-of-service
    """
    findings = [
        url.finding(
            _("{channel} needs a licence in larger organisations").format(channel=url.canonical.channel)
        )
        for url in _all(subject)
        if is_licensed(url.canonical.channel)
    ]
    findings += [
        Finding(
            place=f"metadata.channels[{index}]",
            text=_("{channel} needs a licence in larger organisations").format(channel=channel),
        )
        for index, channel in enumerate(subject.draft.lock.channels)
        if is_licensed(channel)
    ]
    return found(findings, _("no channel needs a licence"))
