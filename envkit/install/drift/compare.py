"""One environment against its lock: what is looked at, in order."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping

from envkit.install.drift import content, shell
from envkit.install.drift.files import Files, examine, strays
from envkit.install.drift.packages import compare
from envkit.install.drift.place import made_for
from envkit.install.drift.records import Record, conda_files, normalised, pip_records, read_records
from envkit.install.drift.subject import Subject, wanted
from envkit.messages import _
from envkit.model import Environment, Lock, Report
from envkit.progress import SILENT, Observer

__all__ = ["drift"]


def drift(
    environment: Environment,
    *,
    deep: bool = False,
    lock: Lock | None = None,
    observer: Observer = SILENT,
    environ: Mapping[str, str] | None = None,
) -> Report:
    """Compare an environment with its lock: its own copy, or `lock` where one is given.

    Files are looked at, and hashed where a look cannot tell; with `deep` all are hashed. Reads only. An
    environment without a lock to compare with has its files checked all the same, and `drift.lock` says so.
    """
    began = time.monotonic()
    subject = Subject(environment=environment)
    prefix = environment.prefix
    should, lock_check = wanted(subject, lock)
    records, faults = read_records(prefix)
    by_conda = conda_files(records)
    by_pip, pip_faults = pip_records(prefix, by_conda)
    packages = compare(prefix, records, should) if should is not None else None
    # What pip brought that is in no lock is a finding as it is, whatever became of its files.
    added = {normalised(package.name) for package in packages.added} if packages else set()
    judged = [*records, *(record for record in by_pip if record.key not in added)]
    files = _examined(subject, judged, deep=deep, observer=observer)
    owned = by_conda | {row.path for record in by_pip for row in record.rows}
    checks = (
        lock_check,
        content.records(subject, len(records), (*faults, *pip_faults)),
        content.place(subject, made_for(prefix, records)),
        *(content.packages(subject, packages) if packages is not None else ()),
        *content.files(subject, files, deep=deep),
        content.strays(subject, strays(prefix, owned)),
        *shell.checks(subject, owned, os.environ if environ is None else environ),
    )
    return Report(subject=environment.name, checks=checks, seconds=time.monotonic() - began)


def _examined(subject: Subject, records: list[Record], *, deep: bool, observer: Observer) -> Files:
    if not deep:
        return examine(subject.prefix, records, deep=False)
    task = _("hash files")
    observer.start(task)
    try:
        return examine(subject.prefix, records, deep=True, advance=lambda size: observer.advance(task, size))
    finally:
        observer.finish(task)
