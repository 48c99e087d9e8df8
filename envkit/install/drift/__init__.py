"""Drift: what an environment has become since it was made from its lock, and the way back.

Every finding is a Check with a stable id:

    drift.lock             the lock it is compared with          drift.missing     packages that it lacks
    drift.records          records that cannot be read           drift.extra       conda packages too many
    drift.place            moved or copied from elsewhere        drift.added       pip packages too many
    drift.files-missing    files that are gone                   drift.other       another version or build
    drift.files-changed    files that are not as installed       drift.strays      files of nobody
    drift.python-path      PYTHONPATH and PYTHONHOME             drift.user-site   the user's site-packages
    drift.library-path     LD_LIBRARY_PATH                       drift.path-files  .pth files that lead out
    drift.site-customs     code that runs when Python starts

A failed one means that the environment is not what its lock says, or will not behave so from this shell. A
warning is what packages do not account for and may well be wanted. A skipped one could not be told.
"""

from envkit.install.drift.compare import drift
from envkit.install.drift.repair import Repaired, repair

__all__ = ["Repaired", "drift", "repair"]
