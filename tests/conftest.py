"""What every part's tests need."""

from __future__ import annotations

import signal

# A shell starts background jobs with Ctrl-C ignored, nohup ignores the end of the terminal, and every child
# inherits that; tests that interrupt a command need both as a terminal would give them.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
