"""Whether the file is what readers of conda-lock's format expect, and harmless to build paths from.

The strict reader refuses all but the last two of these, at the first one; here are all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from packaging.utils import canonicalize_name

from envkit.lock.audit.rule import Facts, Finding, Result, Subject, about, conda_key, found, rule
from envkit.lock.fields import FaultKind, expected, shown_value
from envkit.lock.pypi_names import conda_name
from envkit.lock.read import DIGEST_KEY, Entry
from envkit.messages import _
from envkit.model import Severity

__all__ = ["conda_and_pip", "files", "form", "hashes", "md5", "names", "platforms", "twice", "unknown_keys"]

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
_PYTORCH = ("pytorch", "torch")

# https://github.com/conda/conda-lock/blob/main/conda_lock/lockfile/v1/models.py
_KNOWN_KEYS: Mapping[str, frozenset[str]] = {
    kind: frozenset(keys.split())
    for kind, keys in {
        "": "version metadata package",
        "metadata": "content_hash channels platforms sources time_metadata git_metadata inputs_metadata "
        "custom_metadata",
        "package": "name version manager platform dependencies url hash source build category optional",
    }.items()
}


def _again() -> str:
    return _("make the lock again with `envkit lock` or conda-lock; do not mend it by hand")


def _of(subject: Subject, *kinds: FaultKind) -> Iterator[Finding]:
    by_place = {entry.place: entry for entry in subject.draft.entries}
    for fault in subject.draft.faults:
        if fault.kind in kinds:
            entry = by_place.get(fault.place.partition(".")[0])
            yield Finding(
                place=fault.place,
                text=fault.text,
                platform=entry.package.platform if entry else None,
                package=entry.package.name if entry else None,
            )


@rule("lock.format", Severity.FATAL, _again)
def form(subject: Subject, facts: Facts) -> Result:
    return found(
        (*_of(subject, "format"), *_refused(subject)),
        _("{count} packages for {platforms}").format(
            count=len(subject.draft.entries), platforms=", ".join(subject.platforms)
        ),
        packages=len(subject.draft.entries),
        platforms=list(subject.platforms),
    )


def _refused(subject: Subject) -> Iterator[Finding]:
    """What our reader passes over and conda-lock's models refuse."""
    for entry in subject.draft.entries:
        if "dependencies" in entry.raw and entry.raw["dependencies"] is None:
            yield about(entry, expected("mapping", None), key="dependencies")
        flag = entry.raw.get("optional", False)
        if not isinstance(flag, bool):
            yield about(
                entry, _("neither true nor false: {found}").format(found=shown_value(flag)), key="optional"
            )
    custom = subject.draft.lock.metadata.get("custom_metadata")
    for key, value in custom.items() if isinstance(custom, dict) else ():
        if not isinstance(value, str) and key != DIGEST_KEY:  # that one the reader has looked at
            yield Finding(place=f"metadata.custom_metadata.{_plain(key)}", text=expected("string", value))


@rule(
    "lock.names",
    Severity.FATAL,
    lambda: _("do not use this lock: such names are made to write or to show something else than they say"),
)
def names(subject: Subject, facts: Facts) -> Result:
    """Names and versions become paths and are shown on terminals."""
    found_already = list(_of(subject, "name"))
    seen = {finding.place for finding in found_already}
    hidden = (finding for finding in _hidden(subject) if finding.place not in seen)
    return found((*found_already, *hidden), _("names and versions are plain"))


def _hidden(subject: Subject) -> Iterator[Finding]:
    for entry in subject.draft.entries:
        for key, value in _texts(entry.raw):
            if _CONTROL.search(value):
                yield about(entry, _("control characters: {text}").format(text=ascii(value)[:80]), key=key)


def _texts(raw: Mapping[Any, Any]) -> Iterator[tuple[str, str]]:
    for key, value in raw.items():
        if isinstance(value, str) and key != "url":  # the reader looks at URLs
            yield str(key), value
        elif isinstance(value, dict):
            for inner, text in value.items():
                yield f"{key}.{_plain(inner)}", f"{inner}{text if isinstance(text, str) else ''}"


def _plain(key: object) -> str:
    return _CONTROL.sub("?", str(key))


@rule("lock.files", Severity.FATAL, _again)
def files(subject: Subject, facts: Facts) -> Result:
    """The archive must be the package that it stands for."""
    return found(_of(subject, "file"), _("every archive is named after its package"))


@rule("lock.platforms", Severity.HIGH, _again)
def platforms(subject: Subject, facts: Facts) -> Result:
    return found(
        (*_of(subject, "platform"), *_empty(subject)), _("every archive is for the platform it is listed for")
    )


def _empty(subject: Subject) -> Iterator[Finding]:
    for index, platform in enumerate(subject.draft.lock.platforms):
        if not subject.on(platform):
            text = _("no packages for {platform}").format(platform=platform)
            yield Finding(place=f"metadata.platforms[{index}]", text=text, platform=platform)


@rule(
    "lock.hashes",
    Severity.HIGH,
    lambda: _("make the lock again: without a sha256 nobody knows what a server will send"),
)
def hashes(subject: Subject, facts: Facts) -> Result:
    return found(_of(subject, "hash"), _("every archive has a sha256"))


@rule(
    "lock.md5",
    Severity.MEDIUM,
    lambda: _(
        "make the lock again: conda-lock refuses conda packages that have none, though nothing else needs it"
    ),
)
def md5(subject: Subject, facts: Facts) -> Result:
    """conda-lock's models demand an md5 of conda packages, an empty one at least."""
    missing = (
        about(entry, _("{name} has no md5").format(name=entry.package.name), key="hash.md5")
        for entry in subject.draft.entries
        if entry.package.manager == "conda" and entry.package.md5 is None
    )
    return found(missing, _("every conda package has an md5 for older readers"))


@rule("lock.twice", Severity.FATAL, _again)
def twice(subject: Subject, facts: Facts) -> Result:
    """An environment holds one package of a name: which of two would be there is chance."""
    return found(
        (*_of(subject, "twice"), *_same_name(subject), *_same_url(subject)),
        _("no package stands there twice"),
    )


def _same_name(subject: Subject) -> Iterator[Finding]:
    for platform in subject.platforms:
        seen: dict[tuple[str, str], Entry] = {}
        for entry in subject.on(platform):
            package = entry.package
            normal = (
                conda_key(package.name) if package.manager == "conda" else canonicalize_name(package.name)
            )
            first = seen.setdefault((package.manager, normal), entry)
            # Two of exactly one spelling are the reader's own finding.
            if first is not entry and first.package.name != package.name:
                text = _("{name} is {other} of {place} again, on {platform}")
                yield about(
                    entry,
                    text.format(
                        name=package.name, other=first.package.name, place=first.place, platform=platform
                    ),
                    key="name",
                )


def _same_url(subject: Subject) -> Iterator[Finding]:
    for platform in subject.platforms:
        seen: dict[str, Entry] = {}
        for entry in subject.on(platform):
            first = seen.setdefault(entry.package.url, entry)
            if first is not entry and first.package.name != entry.package.name:
                text = _("{name} and {other} have one URL")
                yield about(entry, text.format(name=entry.package.name, other=first.package.name), key="url")


@rule(
    "lock.conda-and-pip",
    Severity.HIGH,
    lambda: _(
        "keep one of the two: take the package out of the pip section, or out of the conda dependencies"
    ),
)
def conda_and_pip(subject: Subject, facts: Facts) -> Result:
    """pip writes over the files of the conda package: mixed versions, and a second libtorch."""
    return found(_both(subject), _("nothing comes by conda and by pip at once"))


def _both(subject: Subject) -> Iterator[Finding]:
    for platform in subject.platforms:
        conda = subject.conda(platform)
        for entry in subject.on(platform):
            package = entry.package
            if package.manager != "pip":
                continue
            other = conda.get(conda_name(package.name))
            if other is None:
                continue
            text = _("{name} {version} by pip beside {other} {other_version} by conda, on {platform}")
            yield about(
                entry,
                text.format(
                    name=package.name,
                    version=package.version,
                    other=other.package.name,
                    other_version=other.package.version,
                    platform=platform,
                ),
                severity=Severity.FATAL if other.package.name in _PYTORCH else None,
            )


@rule(
    "lock.unknown-keys",
    Severity.LOW,
    lambda: _("nothing reads them here: whoever wrote them may mean something by them"),
)
def unknown_keys(subject: Subject, facts: Facts) -> Result:
    document = subject.draft.document
    metadata = document.get("metadata")
    parts: list[tuple[str, str, Mapping[Any, Any]]] = [("", "", document)]
    if isinstance(metadata, dict):
        parts.append(("metadata", "metadata", metadata))
    parts += [("package", entry.place, entry.raw) for entry in subject.draft.entries]
    findings = (
        Finding(
            place=f"{place}.{_plain(key)}" if place else _plain(key),
            text=_("not a key of conda-lock's format"),
        )
        for kind, place, mapping in parts
        for key in mapping
        if key not in _KNOWN_KEYS[kind]
    )
    return found(findings, _("all keys are those of conda-lock's format"))
