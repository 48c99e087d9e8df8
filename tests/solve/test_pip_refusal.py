"""What the resolver of pip sections raises, as people read it."""

from __future__ import annotations

import pytest
import requests

from envkit.errors import Error, Findings
from envkit.solve.pip_refusal import explained

KNOWN = ("numpy", "numba")


def told(problem: Exception, *indexes: str) -> Error:
    return explained(
        problem,
        name="mine",
        platform="linux-64",
        indexes=indexes,
        alike=lambda name: [one for one in KNOWN if one.startswith(name[:4])],
    )


def unsolvable(text: str) -> Exception:
    from conda_lock._vendor.poetry.puzzle.exceptions import SolverProblemError

    class Failure(Exception):
        def __str__(self) -> str:
            return text

    return SolverProblemError(Failure())


def test_a_name_that_no_index_has_is_told_with_the_one_that_may_be_meant() -> None:
    text = "Because -dummy-package- depends on nump (==1.0) which doesn't match any versions, solving failed."
    found = told(unsolvable(text))
    assert isinstance(found, Findings)
    assert found.message.endswith("for linux-64: no index has nump ==1.0")
    assert found.hint == "did you mean numpy?"
    right = told(unsolvable(text.replace("nump ", "numpy ")))
    assert "did you mean" not in right.hint and "numpy" in right.hint
    other = told(unsolvable("Because -dummy-package- depends on a (1) and b (2), version solving failed."))
    assert "dummy" not in other.message and "depends on a (1)" in other.message


@pytest.mark.parametrize(
    ("url", "hint"),
    [
        (
            "https://download.pytorch.org/whl/cu118/torch/",
            "come from download.pytorch.org: try `--mirror sjtug`",
        ),
        ("https://index.corp.example/simple/torch/", "check the index at index.corp.example"),
        ("https://elsewhere.example/simple/torch/", "PIP_INDEX_URL"),
    ],
)
def test_the_server_that_did_not_answer_is_named(url: str, hint: str) -> None:
    host = url.split("/")[2]
    pool = f"HTTPSConnectionPool(host='{host}', port=443): Max retries exceeded (Failed to resolve '{host}')"
    problem = requests.ConnectionError(pool, request=requests.Request("GET", url).prepare())
    found = told(problem, "https://user:hunter2@index.corp.example/simple")
    assert found.code == 3
    assert f"{host} did not answer (its name is not known here)" in found.message
    assert hint in found.hint
    assert "Pool" not in found.message and "hunter2" not in f"{found.message}{found.hint}"


def test_any_other_problem_keeps_its_words() -> None:
    assert "something else" in told(RuntimeError("something else")).message
    assert "wheel" in told(RuntimeError("Unable to find installation candidates for torch")).hint
