"""The lock against the channels' own records: what the format loses, and what a channel no longer has.

Full dependencies with their build strings, `constrains`, and the hashes are judged; `read_records` reads
them beforehand, from wherever repodata comes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from envkit.channels import locate
from envkit.errors import Error, InputError
from envkit.lock.audit.match import Candidate, Unreadable, matches, spec_name
from envkit.lock.audit.rule import Facts, Finding, Result, Subject, about, conda_key, found, rule, skipped
from envkit.lock.read import Draft, Entry
from envkit.messages import _
from envkit.model import Package, Severity
from envkit.render import virtual_names

if TYPE_CHECKING:
    from rattler import RepoDataRecord

__all__ = ["Record", "Records", "builds", "constrains", "read_records", "records"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """What a channel says of one archive. Hashes are hex."""

    depends: tuple[str, ...]
    constrains: tuple[str, ...]
    sha256: str | None
    md5: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Records:
    """The channels' records of a lock's packages, by (channel, subdir, file name).

    `unread` are channels that could not be read, with the reason.
    """

    by_file: Mapping[tuple[str, str, str], Record] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)

    def of(self, package: Package) -> Record | None:
        """The record of a conda package; None where its channel has none or was not read."""
        key = _key(package)
        return self.by_file.get(key) if key else None


def _key(package: Package) -> tuple[str, str, str] | None:
    if package.manager != "conda":
        return None
    try:
        location = locate(package.url)
    except (InputError, ValueError):
        return None
    return location.channel, location.subdir, unquote(location.file)


def read_records(draft: Draft, repodata: Callable[[str, str], Path]) -> Records:
    """The records of every conda package of a lock.

    `repodata` gives the local repodata.json of a channel and a subdir. A channel that cannot be read is kept
    as unread, so that the others are judged.
    """
    names: dict[tuple[str, str], set[str]] = {}
    for entry in draft.entries:
        key = _key(entry.package)
        if key is not None:
            names.setdefault(key[:2], set()).add(entry.package.name)
    by_file: dict[tuple[str, str, str], Record] = {}
    unread: dict[str, str] = {}
    for (channel, subdir), wanted in sorted(names.items()):
        try:
            path = repodata(channel, subdir)
        except Error as problem:
            unread[channel] = problem.message
            continue
        for record in _load(channel, subdir, path, wanted):
            by_file[channel, subdir, record.file_name] = Record(
                depends=tuple(record.depends),
                constrains=tuple(record.constrains),
                sha256=record.sha256.hex() if record.sha256 else None,
                md5=record.md5.hex() if record.md5 else None,
            )
    return Records(by_file=by_file, unread=unread)


def _load(channel: str, subdir: str, path: Path, names: set[str]) -> Iterator[RepoDataRecord]:
    from rattler import Channel, SparseRepoData

    try:
        source = SparseRepoData(Channel(channel), subdir, str(path))
    except Exception as problem:  # a bare Exception or OSError, whatever is wrong
        raise Error(
            _("{path} is not the repodata of {channel}/{subdir}: {reason}").format(
                path=path, channel=channel, subdir=subdir, reason=problem
            )
        ) from None
    with source:
        for name in sorted(names):
            yield from source.load_records(name)


def _conda_entries(subject: Subject) -> Iterator[Entry]:
    return (entry for entry in subject.draft.entries if entry.package.manager == "conda")


def _not_asked() -> Result:
    return skipped(_("the channels were not asked (--records)"))


def _not_read() -> Result:
    return skipped(_("not checked: no channel could be read"))


@rule(
    "lock.records",
    Severity.HIGH,
    lambda: _(
        "`envkit lock --update NAME` for what was withdrawn; a hash that differs: do not install this lock"
    ),
)
def records(subject: Subject, facts: Facts) -> Result:
    """Every archive is one that its channel lists, with the same hashes."""
    if facts.records is None:
        return _not_asked()
    own = facts.records
    findings = [
        Finding(
            place="metadata.channels",
            text=_("not checked: {channel} could not be read: {reason}").format(
                channel=channel, reason=reason
            ),
            severity=Severity.MEDIUM,
        )
        for channel, reason in own.unread.items()
    ]
    for entry in _conda_entries(subject):
        findings += _record_problems(entry, own)
    return found(findings, _("every package is as its channel has it"))


def _record_problems(entry: Entry, own: Records) -> Iterator[Finding]:
    package, key, record = entry.package, _key(entry.package), own.of(entry.package)
    if record is None:
        if key is None or key[0] not in own.unread:
            text = _("{file} is not in its channel")
            yield about(entry, text.format(file=ascii(package.file_name)[1:-1]), key="url")
        return
    for kind, stated, listed in (("sha256", package.sha256, record.sha256), ("md5", package.md5, record.md5)):
        if stated and listed and stated != listed:
            text = _("the {kind} of {name} is not the one its channel states")
            yield about(
                entry,
                text.format(kind=kind, name=package.name),
                key=f"hash.{kind}",
                severity=Severity.FATAL,
            )


@rule(
    "lock.builds",
    Severity.FATAL,
    lambda: _(
        "lock the environment.yml again: the packages do not fit together as their channel describes them"
    ),
)
def builds(subject: Subject, facts: Facts) -> Result:
    """The full dependencies of the channel's records, with the build strings that the format loses."""
    if facts.records is None:
        return _not_asked()
    if facts.records.unread and not facts.records.by_file:
        return _not_read()
    return found(
        _judged(subject, facts.records, constrains=False),
        _("every dependency of the channels' records is met, build strings too"),
    )


@rule(
    "lock.constrains",
    Severity.FATAL,
    lambda: _("lock the environment.yml again: a package forbids what stands beside it"),
)
def constrains(subject: Subject, facts: Facts) -> Result:
    """What a record does not need, but allows in some versions only."""
    if facts.records is None:
        return _not_asked()
    if facts.records.unread and not facts.records.by_file:
        return _not_read()
    return found(_judged(subject, facts.records, constrains=True), _("no package forbids another"))


def _judged(subject: Subject, own: Records, *, constrains: bool) -> Iterator[Finding]:
    for platform in subject.platforms:
        virtual = virtual_names(platform)
        here = {
            name: Candidate(
                name=entry.package.name,
                version=entry.package.version,
                build=entry.package.build,
                subdir=entry.package.subdir,
            )
            for name, entry in subject.conda(platform).items()
        }
        for entry in subject.on(platform):
            record = own.of(entry.package)
            for spec in (record.constrains if constrains else record.depends) if record else ():
                problem = _problem(spec, here, virtual, optional=constrains)
                if problem:
                    yield about(
                        entry,
                        _("{package} {version} on {platform}: {problem}").format(
                            package=entry.package.name,
                            version=entry.package.version,
                            platform=platform,
                            problem=problem,
                        ),
                    )


def _problem(spec: str, here: Mapping[str, Candidate], virtual: frozenset[str], *, optional: bool) -> str:
    try:
        name = conda_key(spec_name(spec))
        other = here.get(name)
        if name.startswith("__"):
            missing = not optional and name not in virtual
            return _("no machine of the platform has {spec}").format(spec=spec) if missing else ""
        if other is None:
            return "" if optional else _("{spec} is not there").format(spec=spec)
        if matches(spec, other):
            return ""
    except Unreadable as problem:
        return _("'{spec}' cannot be read: {reason}").format(spec=spec, reason=problem)
    text = _("forbids {other}: {spec}") if optional else _("needs {spec}, {other} is there")
    return text.format(spec=spec, other=f"{other.name} {other.version} {other.build}")
