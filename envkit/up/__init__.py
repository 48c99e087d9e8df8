"""From axes to a validated environment: the stages in order, each told with its time.

    pick -> lock -> install -> validate

Two ways lead to a lock: the team's channels (`team.py`), and the wheel channel (`local.py`), which is
asked for by mirror "wheels" or taken by a plain call on a machine that can reach no channel at all.

`envkit.up.provision` goes through the stages. It is not imported here, since it brings every layer with it
and half the verbs only look at the matrix and its locks.
"""

from envkit.up.request import WHEELS, Provisioned, Request, Stage
from envkit.up.team import kept_lock, lock_variant, project

__all__ = [
    "WHEELS",
    "Provisioned",
    "Request",
    "Stage",
    "kept_lock",
    "lock_variant",
    "project",
]
