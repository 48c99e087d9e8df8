"""Running a program inside an environment, as if it had taken this process's place."""

from __future__ import annotations

import mmap
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from envkit.errors import Error, InputError
from envkit.files import open_plain
from envkit.install.variables import environment_variables
from envkit.messages import _
from envkit.model import Environment

__all__ = ["run"]

_PASSED_ON = (
    signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2,
    signal.SIGALRM, signal.SIGWINCH,
)  # fmt: skip
_SI_KERNEL = 0x80  # asm-generic/siginfo.h: sent by the kernel, so a terminal's Ctrl-C


def run(environment: Environment, argv: Sequence[str]) -> int:
    """Run `argv` with the environment's variables; its exit code, or 128 + n where signal n ended it.

    Standard streams, working folder and terminal are shared. Signals sent to this process are passed on;
    those a terminal sends reach the program by themselves. Raises Error where it cannot be started.
    """
    if not argv:
        raise InputError(_("no command to run"), _("write it after two dashes: `envkit run NAME -- python`"))
    variables = environment_variables(environment)
    in_use = _mapped(environment.prefix)
    watched = {*_PASSED_ON, signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    try:
        child = subprocess.Popen(
            list(argv), env=variables, preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, before)
        )
        while child.poll() is None:
            received = signal.sigwaitinfo(watched)
            if received.si_signo != signal.SIGCHLD and received.si_code != _SI_KERNEL:
                child.send_signal(received.si_signo)
    except OSError as problem:
        raise Error(
            _("cannot run {command}: {reason}").format(command=argv[0], reason=problem.strerror or problem),
            _("the command is looked for in {folder} and then in PATH").format(
                folder=environment.prefix / "bin"
            ),
        ) from None
    except ValueError as problem:
        raise InputError(
            _("cannot run {command}: {reason}").format(command=ascii(argv[0]), reason=problem)
        ) from None
    finally:
        # A Ctrl-C that ended the program is its affair; let none come through late.
        while signal.sigtimedwait(watched, 0):
            pass
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if in_use is not None:
            in_use.close()
    return child.returncode if child.returncode >= 0 else 128 - child.returncode


def _mapped(prefix: Path) -> mmap.mmap | None:
    """A file of the prefix in this process's maps: by them `busy` knows who uses an environment.

    What runs may be a shell script, which has nothing of the environment open between its commands.
    """
    for name in ("envkit", "history"):
        try:
            with open_plain(prefix / "conda-meta" / name) as file:
                return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError):
            continue
    return None
