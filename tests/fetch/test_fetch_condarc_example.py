""".condarc.example says the same as the table of mirrors."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from envkit.channels import table
from envkit.fetch import canonical_url, routes
from envkit.files import read_yaml

EXAMPLE = Path(__file__).parents[2] / ".condarc.example"
FACTS = Path(__file__).parents[2].parent / "shared/facts/condarc-facts.yaml"


def bases() -> dict[str, str]:
    return read_yaml(EXAMPLE)["custom_channels"]


def test_each_channel_is_carried_where_it_is_sent() -> None:
    mirrors = table().mirrors.values()
    for channel, base in bases().items():
        assert f"{base}/{channel}" in {mirror.url(channel, "linux-64") for mirror in mirrors}
        assert canonical_url(f"{base}/{channel}") == canonical_url(channel)


def test_it_routes_as_the_same_choice_in_envkit_does() -> None:
    chosen = routes("tuna,sustech")
    for channel, base in bases().items():
        assert chosen.sources(channel, "linux-64")[0].url == f"{base}/{channel}"
    assert bases()["nvidia"] == "https://mirrors.sustech.edu.cn/anaconda-extra/cloud"


def test_no_base_doubles_the_channels_name() -> None:
    """Case 01: conda appends the name, and a trailing space is kept as part of the address."""
    for channel, base in bases().items():
        assert base.startswith("https://")
        assert base == base.strip().rstrip("/")
        assert not base.endswith(f"/{channel}")


def test_it_keeps_defaults_out_and_tls_on() -> None:
    """Case 05."""
    example = read_yaml(EXAMPLE)
    assert example["default_channels"] == []
    assert "defaults" not in example["channels"]
    assert all("://" not in channel for channel in example["channels"])
    assert example["ssl_verify"] is True


def test_its_values_are_those_of_the_facts() -> None:
    if not FACTS.exists():
        pytest.skip("the facts are not beside this checkout")
    assert read_yaml(EXAMPLE) == yaml.safe_load(FACTS.read_text(encoding="utf-8"))
