"""Whatever is asked: a lock that comes out is sound, and where none does the reason names a real conflict."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from random_requests import Drawn, Sample, draw, impossible, line_name, match_spec

from envkit.channels import canonical_url
from envkit.errors import Findings
from envkit.lock.audit import Facts, audit, read_records
from envkit.lock.read import parse_draft
from envkit.matrix import Matrix, read_matrix
from envkit.solve import lock_text

ROOT = Path(__file__).parents[2]
SHARED = Path(os.environ.get("ENVKIT_SHARED", ROOT.parent / "shared")) / "channels"

pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason="the sampled channels are not here")


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    return Sample(SHARED, tmp_path_factory.mktemp("sample"))


@pytest.fixture(scope="module")
def matrix() -> Matrix:
    return read_matrix(ROOT / "environments" / "matrix.yaml")


class Judge:
    """Solves requests, audits what comes out and looks into why nothing does.

    `thorough`: conflicts are brought down to what each needs, proven without a solver where that goes, and
    taken out one by one until there is a lock.
    """

    def __init__(self, sample: Sample, *, thorough: bool) -> None:
        self.sample = sample
        self.thorough = thorough
        self.seen: Counter[str] = Counter()

    def judge(self, drawn: Drawn) -> None:
        try:
            text = self.lock(drawn)
        except Findings as problem:
            self.seen["no lock"] += 1
            self.verify_reason(drawn, problem.message)
        else:
            self.seen["lock"] += 1
            self.verify_lock(drawn, text)

    def lock(self, drawn: Drawn) -> str:
        return lock_text(drawn.spec, repodata=self.sample.repodata, canonical=canonical_url)

    def verify_lock(self, drawn: Drawn, text: str) -> None:
        draft = parse_draft(text, Path("drawn/conda-lock.yml"))
        facts = Facts(accelerator=drawn.accelerator, records=read_records(draft, self.sample.repodata))
        report = audit(draft, facts)
        bad = [f"{check.id}: {check.detail}" for check in report.checks if check.bad]
        assert not bad, (drawn.lines, drawn.spec.variant.platforms, bad)

    def verify_reason(self, drawn: Drawn, reason: str) -> None:
        """Taking out what the reasons name, one conflict after the other, ends in a lock that is sound."""
        platforms = drawn.spec.variant.platforms
        for platform in platforms:
            here = drawn.on(platform)
            if len(platforms) > 1 and not self.solves(here.lines, here):
                try:
                    self.lock(here)
                except Findings as problem:
                    self.untangle(here, problem.message)
                return
        if len(platforms) > 1:
            # Each platform solves alone: they cannot agree on PyTorch, and the reason must say so.
            assert "pytorch" in reason.lower(), (drawn.lines, reason)
            self.seen["no torch for all platforms"] += 1
            return
        self.untangle(drawn, reason)

    def untangle(self, drawn: Drawn, reason: str) -> None:
        for _each in drawn.lines:
            named = drawn.named_in(reason)
            if not self.thorough and not self.solves(named, drawn):
                self.seen["all sides named"] += 1
                return
            core = self.core(drawn, named)
            blamed = [line for line in core if line in named]
            # Python is part of nearly every conflict: to name it alone says nothing.
            telling = [line for line in blamed if line_name(line) != "python"] or core == tuple(blamed)
            assert telling, ("the reason names no conflict", core, drawn.lines, drawn.spec.channels, reason)
            self.seen["all sides named" if core == tuple(blamed) else "one side named"] += 1
            if not self.thorough:
                return
            self.seen["proven without a solver" if self.proven(core, drawn) else "proven by relaxing"] += 1
            drawn = drawn.without([blamed[-1]])
            try:
                text = self.lock(drawn)
            except Findings as problem:
                reason = problem.message
                continue
            self.verify_lock(drawn, text)
            return
        raise AssertionError(f"nothing is left of {drawn} and it still does not solve")

    def core(self, drawn: Drawn, named: Sequence[str]) -> tuple[str, ...]:
        """The fewest lines that conflict with each other, each of them needed; those named by preference."""
        kept = list(drawn.lines)
        for line in sorted(drawn.lines, key=lambda one: one in named):
            fewer = [one for one in kept if one != line]
            if not self.solves(fewer, drawn):
                kept = fewer
        return tuple(kept)

    def proven(self, core: Sequence[str], drawn: Drawn) -> bool:
        (platform,) = drawn.spec.variant.platforms
        return impossible(
            self.sample,
            drawn.spec.channels,
            platform,
            [match_spec(line) for line in core],
            drawn.spec.virtual_packages[platform],
        )

    def solves(self, lines: Sequence[str], drawn: Drawn) -> bool:
        (platform,) = drawn.spec.variant.platforms
        return self.sample.solvable(
            drawn.spec.channels,
            platform,
            tuple(match_spec(line) for line in lines),
            drawn.spec.virtual_packages[platform],
        )


def run(sample: Sample, matrix: Matrix, seeds: range, *, thorough: bool) -> Counter[str]:
    judge = Judge(sample, thorough=thorough)
    failures = []
    for seed in seeds:
        try:
            judge.judge(draw(sample, matrix, seed))
        except AssertionError as problem:
            failures.append(f"seed {seed}: {problem}")
    assert not failures, "\n\n".join(failures)
    return judge.seen


def test_twenty_requests(sample: Sample, matrix: Matrix) -> None:
    seen = run(sample, matrix, range(20), thorough=False)
    assert seen["lock"] and seen["no lock"]


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_two_hundred_requests(sample: Sample, matrix: Matrix) -> None:
    seen = run(sample, matrix, range(1000, 1200), thorough=True)
    print(dict(seen))
    assert seen["lock"] + seen["no lock"] == 200
    assert seen["lock"] >= 40 and seen["no lock"] >= 40
