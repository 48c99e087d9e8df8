"""From a lock to an environment on disk, whole or not at all; and running inside it.

    plan -> fetch -> stage -> link, pip section, marker -> commit

Nothing is visible at the prefix before the commit, which is one exchange of two directories.
"""

from envkit.install.activation import SHELLS, activation
from envkit.install.current import is_current, names, read_environment
from envkit.install.drift import Repaired, drift, repair
from envkit.install.install import install, tidy
from envkit.install.plan import Plan, plan, this_platform
from envkit.install.preview import Preview, preview
from envkit.install.remove import remove
from envkit.install.run import run
from envkit.install.target import check_name, check_place, fit_name, is_environment
from envkit.install.variables import environment_variables

__all__ = [
    "SHELLS",
    "Plan",
    "Preview",
    "Repaired",
    "activation",
    "check_name",
    "check_place",
    "drift",
    "environment_variables",
    "fit_name",
    "install",
    "is_current",
    "is_environment",
    "names",
    "plan",
    "preview",
    "read_environment",
    "remove",
    "repair",
    "run",
    "this_platform",
    "tidy",
]
