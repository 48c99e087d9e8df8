"""Looking at a lock must stay quick: neither conda-lock (a second) nor rattler is imported for it."""

from __future__ import annotations

import subprocess
import sys


def test_neither_engine_is_imported_early() -> None:
    script = (
        "import sys, envkit.lock, envkit.solve, envkit.solve.lock, envkit.solve.conda_actions\n"
        "print([name for name in sys.modules if name.split('.')[0] in ('conda_lock', 'rattler')])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
