"""In words, how a job ended that did not end well: a hang, a signal, an exception, an early exit."""

from __future__ import annotations

import re

from envkit.checks.definition import Verdict, fail
from envkit.checks.outcome import Link, Outcome
from envkit.checks.remedies import remedy
from envkit.checks.tables import find_symptom
from envkit.messages import _
from envkit.model import Status

__all__ = ["decisive", "tell"]

_LONGEST = 240
_TAIL_LINES = 40
# What a DataLoader says when it knows no more; the reason is further in.
_UNINFORMATIVE = re.compile(r"DataLoader worker \(pid\(s\) [\d, ]+\) exited unexpectedly")
_WORKER_TRACE = re.compile(r"^Caught \w+ in .*\n(?:.*\n)*Original Traceback", re.MULTILINE)
# Exceptions that, raised in the probe's own lines, are the probe's mistakes and not the environment's.
_MISTAKES = frozenset(
    {"NameError", "UnboundLocalError", "TypeError", "KeyError", "IndexError", "AssertionError"}
)


def tell(outcome: Outcome) -> Verdict:
    """The verdict on a job that gave no data, or gave it and then did not end well."""
    summary, hint = _told(outcome)
    found = find_symptom(outcome.text)
    status = Status.CRASH if _is_mistake(outcome) else Status.FAIL
    verdict = fail(summary[:_LONGEST], detail=_detail(outcome), hint=found.hint if found else hint)
    return Verdict(status=status, summary=verdict.summary, detail=verdict.detail, hint=verdict.hint)


def decisive(chain: tuple[Link, ...]) -> str:
    """The one line of an exception chain that says what happened.

    Of a worker's exception it is the last line of the traceback inside the text; of a worker that was
    killed it stands in the context, behind an exception that only says that it is gone.
    """
    informative = [link for link in chain if not _UNINFORMATIVE.search(link.text)] or list(chain)
    if not informative:
        return ""
    best = next((link for link in informative if find_symptom(str(link))), informative[0])
    lines = [line.strip() for line in best.text.splitlines() if line.strip()]
    if not lines:
        return best.type
    if _WORKER_TRACE.search(best.text):
        return lines[-1]
    return f"{best.type}: {lines[0]}"


def _told(outcome: Outcome) -> tuple[str, str]:
    if outcome.not_started:
        return outcome.not_started, ""
    if outcome.timed_out:
        return _told_late(outcome)
    if outcome.out_of_memory:
        return _("the kernel killed it: out of memory ({at})").format(at=outcome.at or "-"), remedy(
            "out-of-memory"
        )
    if outcome.signal is not None:
        return _told_signal(outcome)
    if outcome.chain:
        return decisive(outcome.chain), ""
    return (
        _("the process ended early, with exit code {code} ({at})").format(
            code=outcome.code, at=outcome.at or "-"
        ),
        "",
    )


def _told_late(outcome: Outcome) -> tuple[str, str]:
    if outcome.done:
        return (
            _("the work was done, but the process had not exited after {limit:.0f} s").format(
                limit=outcome.limit
            ),
            _("something keeps it from exiting, a thread or a child process most likely"),
        )
    return (
        _("no answer within {limit:.0f} s ({at})").format(limit=outcome.limit, at=outcome.at or "-"),
        _("see where it hangs with -v: the stack was written down before it was killed"),
    )


def _told_signal(outcome: Outcome) -> tuple[str, str]:
    if outcome.signal == "SIGKILL":
        return (
            _("killed from outside, without a word ({at})").format(at=outcome.at or "-"),
            _("most often a memory limit or a batch system does that: look at dmesg and at the job's limits"),
        )
    where = _("at exit, its work done") if outcome.done else outcome.at or "-"
    return (
        _("crashed with {signal} ({at})").format(signal=outcome.signal, at=where),
        remedy("shm-small") if outcome.signal == "SIGBUS" else "",
    )


def _detail(outcome: Outcome) -> str:
    parts = [str(link) for link in outcome.chain]
    if outcome.output:
        parts += outcome.output.splitlines()[-_TAIL_LINES:]
    return "\n".join(parts)


def _is_mistake(outcome: Outcome) -> bool:
    return bool(outcome.chain) and outcome.chain[0].ours and outcome.chain[0].type in _MISTAKES
