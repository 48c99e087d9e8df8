"""The only part that opens connections for conda packages: mirrors, failover, resume, checks, cache.

A lock holds canonical URLs; `routes` turns each into the URLs to ask, in order. `repodata` and
`archives` bring indexes and packages to this machine, so that solving and installing need no network.
"""

from envkit.channels import Location, canonical_url, channel_name, locate
from envkit.fetch.archives import archives, downloads
from envkit.fetch.failures import Attempt, FetchError, NoSubdir, Offline, Unreachable
from envkit.fetch.repodata import repodata
from envkit.fetch.routes import Routes, Source, routes
from envkit.fetch.session import Patience, Session
from envkit.fetch.store import package_cache
from envkit.fetch.transports import folder_name
from envkit.fetch.trust import Trust
from envkit.fetch.wheels import wheel_cache, wheel_file, wheels

__all__ = [
    "Attempt",
    "FetchError",
    "Location",
    "NoSubdir",
    "Offline",
    "Patience",
    "Routes",
    "Session",
    "Source",
    "Trust",
    "Unreachable",
    "archives",
    "canonical_url",
    "channel_name",
    "downloads",
    "folder_name",
    "locate",
    "package_cache",
    "repodata",
    "routes",
    "wheel_cache",
    "wheel_file",
    "wheels",
]
