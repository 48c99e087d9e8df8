"""The hint of a failure names what was not just tried."""

from __future__ import annotations

import pytest

from envkit.channels import MAINLAND, table
from envkit.errors import InputError
from envkit.fetch import routes
from envkit.fetch.failures import Attempt, failure


def tried(*mirrors: str, kind: str) -> list[Attempt]:
    hosts = [table().mirrors[mirror].host for mirror in mirrors]
    return [Attempt(host=host, url=f"https://{host}/x", kind=kind, detail="no") for host in hosts]


@pytest.mark.parametrize("kind", ["refused", "missing"])
def test_a_mirror_that_was_just_asked_is_not_named(kind: str) -> None:
    first, second = MAINLAND
    for asked, named in {(): first, (first,): second, (second,): first}.items():
        hint = failure("x.conda", [*tried("anaconda", *asked, kind=kind)]).hint
        assert f"{named}`" in hint
        assert not any(f"{mirror}`" in hint for mirror in asked)
    hint = failure("x.conda", tried(first, second, kind=kind)).hint
    assert "`envkit mirrors`" in hint
    assert first not in hint


def test_a_slip_of_the_pen_in_a_mirrors_name() -> None:
    with pytest.raises(InputError) as failed:
        routes("tnua")
    assert failed.value.hint.startswith("did you mean tuna?")
    with pytest.raises(InputError) as failed:
        routes("qwxyz")
    assert failed.value.hint.startswith("choose one of auto, official, tuna")
