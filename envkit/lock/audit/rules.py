"""Every rule of the audit, in the order of the report: the file, its sources, its packages, the machine."""

from __future__ import annotations

from envkit.lock.audit import channel, closure, cuda, needs, places, runs, structure, torch
from envkit.lock.audit.rule import Rule

__all__ = ["MACHINE", "RULES"]

MACHINE: tuple[Rule, ...] = (runs.glibc, runs.system, runs.cpu, runs.driver, runs.gpus)
"""Those that ask whether a machine of the right platform can run the packages."""

RULES: tuple[Rule, ...] = (
    structure.form,
    structure.names,
    structure.files,
    structure.platforms,
    structure.hashes,
    structure.md5,
    structure.twice,
    structure.conda_and_pip,
    structure.unknown_keys,
    places.urls,
    places.http,
    places.private_addresses,
    places.credentials,
    places.hosts,
    places.local_files,
    places.mirrors,
    places.licensed,
    closure.closure,
    closure.constraints,
    closure.pip_closure,
    channel.records,
    channel.builds,
    channel.constrains,
    cuda.accelerator,
    cuda.one_major,
    torch.pairs,
    torch.known_bad,
    needs.needs,
    runs.platform,
    *MACHINE,
)
