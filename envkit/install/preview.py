"""What an installation would do, worked out without touching anything: `--dry-run`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from envkit.host import read_host
from envkit.install.busy import User, users
from envkit.install.current import is_current, read_environment
from envkit.install.plan import plan
from envkit.install.preflight import preflight
from envkit.install.sync import Sync, sync
from envkit.install.target import check_place, is_environment, normal
from envkit.install.work import Work, measure
from envkit.lock import download_size
from envkit.model import Host, Lock, Package, Report

if TYPE_CHECKING:
    from envkit.fetch import Routes

__all__ = ["Preview", "preview"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Preview:
    """A plan: the work of each step, what differs from what stands there, and what would stop it.

    `current` says that nothing would be done: the environment is as its lock says. `processes` use the
    environment that would be replaced. `lacking` has what would have to be fetched where nothing may be.
    """

    lock: Lock
    name: str
    prefix: Path
    platform: str
    replaces: bool
    current: bool
    work: Work
    sync: Sync
    processes: tuple[User, ...]
    preflight: Report
    lacking: tuple[Package, ...] = ()

    @property
    def possible(self) -> bool:
        """Whether the installation can begin, as far as that can be known beforehand."""
        return self.current or (self.preflight.ok and not self.processes and not self.lacking)


def preview(
    lock: Lock,
    prefix: Path,
    *,
    name: str,
    cache: Path,
    routes: Routes | None = None,
    sizes: Mapping[str, int] | None = None,
    host: Host | None = None,
    platform: str | None = None,
) -> Preview:
    """What `install` would do with the same arguments. Nothing is written, no lock taken, nothing fetched.

    Raises InputError where `install` would, for a prefix or a lock that cannot be.
    """
    wanted = plan(lock, platform)
    prefix = normal(prefix)
    replaces = check_place(prefix)
    together = download_size(lock, wanted.platform)
    offline = routes is not None and routes.session.offline
    work = measure(wanted, cache=cache, routes=routes, sizes=sizes, together=together)
    return Preview(
        lock=lock,
        name=name,
        prefix=prefix,
        platform=wanted.platform,
        replaces=replaces,
        current=is_environment(prefix) and is_current(read_environment(str(prefix)), lock),
        work=work,
        sync=sync(prefix, wanted),
        processes=users(prefix) if replaces else (),
        preflight=preflight(work, lock, prefix, cache=cache, host=host or read_host()),
        lacking=tuple(part.package for part in work.fetch) if offline else (),
    )
