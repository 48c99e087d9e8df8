"""Every failure says what to do, also one of which nothing is known."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from envkit.checks import CATALOGUE, Target
from envkit.checks.ledger import Ledger
from envkit.checks.outcome import Link, Outcome
from envkit.model import Environment, Status

ENDINGS = {
    "segfault": {"code": -signal.SIGSEGV},
    "abort": {"code": -signal.SIGABRT},
    "early exit": {"code": 1},
    "exit": {"code": 0, "chain": (Link(type="SystemExit", text="0"),)},
    "exception": {"code": 0, "chain": (Link(type="AttributeError", text="no attribute '__version__'"),)},
}


@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
@pytest.mark.parametrize("info", [i for i in CATALOGUE if i.id != "interpreter.runs"], ids=lambda i: i.id)
def test_a_failure_has_a_hint(info, ending):
    ledger = Ledger(Target(python=Path(sys.executable), environment=None, cuda=None), [info], lambda: None)
    ledger.judge([info], Outcome(job="x", limit=1.0, **ending))
    found = ledger.check(info.id)
    assert found.status in (Status.FAIL, Status.CRASH, Status.SKIP, Status.WARN)
    assert found.hint or found.status in (Status.SKIP, Status.WARN)


def test_a_broken_environment_is_mended_by_its_own_lock(tmp_path, monkeypatch):
    """`install` knows no variant of the wheel channel's name: its hint would be refused."""
    monkeypatch.setenv("ENVKIT_HOME", str(tmp_path))
    prefix = tmp_path / "envs" / "wheels-py311-cpu"
    (prefix / "conda-meta").mkdir(parents=True)
    environment = Environment(name=prefix.name, prefix=prefix)
    assert Target.of(environment).renewal == "make it again with what made it"
    (prefix / "conda-meta" / "envkit").write_text("{}")
    assert "`envkit drift wheels-py311-cpu --repair`" in Target.of(environment).renewal
    [info] = [info for info in CATALOGUE if info.id == "interpreter.runs"]
    ledger = Ledger(Target.of(environment), [info], lambda: None)
    ledger.judge([info], Outcome(job="x", limit=1.0, not_started="no such file"))
    assert "`envkit drift wheels-py311-cpu --repair`" in ledger.check(info.id).hint
