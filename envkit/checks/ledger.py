"""The checks made so far: what each found, and what that means for those that need it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from envkit.checks.definition import CheckInfo, Context, Data, Verdict, fail, skip
from envkit.checks.ending import tell
from envkit.checks.outcome import Outcome
from envkit.checks.target import Target
from envkit.messages import _
from envkit.model import Check, Status

__all__ = ["Ledger"]

_PASSED = (Status.OK, Status.WARN)


class Ledger:
    """Turns outcomes into Checks, one for each check of a selection; `entered` is called for each."""

    def __init__(self, target: Target, infos: Sequence[CheckInfo], entered: Callable[[], None]) -> None:
        self._target = target
        self._infos = tuple(infos)
        self._entered = entered
        self._facts: dict[str, Data] = {}
        self._checks: dict[str, Check] = {}

    def __contains__(self, id: str) -> bool:
        return id in self._checks

    def check(self, id: str) -> Check:
        return self._checks[id]

    @property
    def checks(self) -> tuple[Check, ...]:
        """Every check made, in the catalogue's order."""
        return tuple(self._checks[info.id] for info in self._infos if info.id in self._checks)

    def ready(self, info: CheckInfo) -> bool:
        """Whether everything it needs has been decided (what is not to be run counts as decided)."""
        running = {other.id for other in self._infos}
        return all(need in self._checks for need in info.needs if need in running)

    def spare(self, info: CheckInfo) -> bool:
        """Decide a check without running it, where that can be: a need of it failed, or it does not apply."""
        known = (need for need in info.needs if need in self._checks)
        failed = next((self._checks[need] for need in known if not self._passed(need)), None)
        if failed is not None:
            self._enter(info, self._not_run(failed))
            return True
        verdict = info.spared(self._context())
        if verdict is not None:
            self._enter(info, verdict)
        return verdict is not None

    def judge(self, infos: Sequence[CheckInfo], outcome: Outcome) -> None:
        """Enter the checks that one job was run for, in their order."""
        for info in infos:
            part = outcome.parts.get(info.id)
            # An early part that came through was not spoilt by what happened after it; the last one was.
            spoilt = info is infos[-1] and not outcome.ended_well
            if part is None or spoilt:
                if info.id not in self._checks and not self.spare(info):
                    self._enter(info, self._told(info, outcome), part.data if part else None, outcome.seconds)
                continue
            if not self.spare(info):
                self._facts[info.id] = part.data
                self._enter(info, self._judged(info, part.data), part.data, part.seconds)

    def _context(self) -> Context:
        return Context(target=self._target, facts=self._facts)

    def _passed(self, id: str) -> bool:
        return self._checks[id].status in _PASSED

    def _not_run(self, failed: Check) -> Verdict:
        if failed.status is Status.SKIP:
            return skip(failed.summary)
        return skip(_("not run: {id} failed").format(id=failed.id))

    def _judged(self, info: CheckInfo, data: Data) -> Verdict:
        try:
            return info.judge(data, self._context())
        except Exception as problem:
            return self._crashed(problem)

    def _told(self, info: CheckInfo, outcome: Outcome) -> Verdict:
        try:
            return info.ended(outcome, self._context()) or tell(outcome)
        except Exception as problem:
            return self._crashed(problem)

    def _crashed(self, problem: Exception) -> Verdict:
        summary = _("this check itself failed: {problem}").format(
            problem=f"{type(problem).__name__}: {problem}".splitlines()[0]
        )
        verdict = fail(summary, hint=_("this is a bug in envkit; please report it with the output of -v"))
        return Verdict(status=Status.CRASH, summary=verdict.summary, hint=verdict.hint)

    def _remedy(self, verdict: Verdict) -> str:
        """What to do about a failure of which no more is known than that it happened."""
        if verdict.status not in (Status.FAIL, Status.CRASH):
            return ""
        return _("see all it said with -v; if the environment is damaged, {renewal}").format(
            renewal=self._target.renewal
        )

    def _enter(
        self, info: CheckInfo, verdict: Verdict, data: Data | None = None, seconds: float = 0.0
    ) -> None:
        self._checks[info.id] = Check(
            id=info.id,
            status=verdict.status,
            severity=info.severity,
            summary=verdict.summary,
            detail=verdict.detail,
            hint=verdict.hint or self._remedy(verdict),
            data=data or {},
            seconds=round(seconds, 3),
        )
        self._entered()
