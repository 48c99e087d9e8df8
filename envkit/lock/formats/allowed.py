"""Whether a lock took the files that a file of requirements allows."""

from __future__ import annotations

from envkit.lock.formats.foreign import Foreign
from envkit.messages import _
from envkit.model import Lock

__all__ = ["check_hashes"]


def check_hashes(foreign: Foreign, lock: Lock) -> list[str]:
    """What is wrong, one line each: pip packages locked to a file whose sha256 the requirements do not list.

    `--hash` is a promise about bytes, and a resolver that asks an index again must not break it unseen.
    """
    problems = []
    for package in lock.packages:
        allowed = foreign.hashes.get(package.name)
        if package.manager == "pip" and allowed and package.sha256 not in allowed:
            problems.append(
                _("{platform}: {name} {version} is a file that {path} does not allow by its --hash").format(
                    platform=package.platform,
                    name=package.name,
                    version=package.version,
                    path=foreign.path.name,
                )
            )
    return problems
