"""What every part's tests need."""

from __future__ import annotations

import signal

# A shell starts background jobs with Ctrl-C ignored, and every child inherits that; tests that interrupt
# a command need it as a terminal would give it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
