"""From axes to a validated environment: the stages in order, each told with its time.

    pick -> lock -> install -> validate

Two ways lead to a lock: the team's channels (`team.py`), and the wheel channel (`local.py`), which is
asked for by mirror "wheels" or taken by a plain call on a machine that can reach no channel at all.
"""

from envkit.up.provision import find, provision, up
from envkit.up.request import WHEELS, Provisioned, Request, Stage
from envkit.up.team import kept_lock, lock_variant, project

__all__ = [
    "WHEELS",
    "Provisioned",
    "Request",
    "Stage",
    "find",
    "kept_lock",
    "lock_variant",
    "project",
    "provision",
    "up",
]
