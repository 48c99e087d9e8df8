"""Which host is asked for which channel: the table of mirrors, and what a user chose."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from envkit.channels import table
from envkit.errors import InputError
from envkit.fetch import canonical_url, channel_name, locate, routes

TUNA = "https://mirrors.tuna.tsinghua.edu.cn/anaconda/cloud"
SUSTECH = "https://mirrors.sustech.edu.cn/anaconda-extra/cloud"
UPSTREAM = "https://conda.anaconda.org"


def package(channel: str, subdir: str = "linux-64") -> str:
    return f"{canonical_url(channel)}/{subdir}/x-1-0.conda"


def hosts(choice: str, channel: str, subdir: str = "linux-64") -> list[str]:
    return [url.split("/")[2] for url in routes(choice).urls(package(channel, subdir))]


@pytest.mark.parametrize(
    ("channel", "url"),
    [
        ("pytorch", f"{UPSTREAM}/pytorch"),
        ("nvidia/label/cuda-12.1.1", f"{UPSTREAM}/nvidia/label/cuda-12.1.1"),
        ("pkgs/main", "https://repo.anaconda.com/pkgs/main"),
        (f"{UPSTREAM}/pytorch/", f"{UPSTREAM}/pytorch"),
        (f"{TUNA}/pytorch", f"{UPSTREAM}/pytorch"),
        (f"{SUSTECH}/nvidia", f"{UPSTREAM}/nvidia"),
        ("https://mirror.nju.edu.cn/anaconda/pkgs/main", "https://repo.anaconda.com/pkgs/main"),
        ("file:///srv/channel", "file:///srv/channel"),
        ("https://conda.example.org/team", "https://conda.example.org/team"),
    ],
)
def test_a_channel_has_one_spelling(channel: str, url: str) -> None:
    assert canonical_url(channel) == url
    assert canonical_url(url) == url


@pytest.mark.parametrize(
    "channel", ["defaults", "nodefaults", "", "a/../b", "/etc", "a b", "ftp://x/y", "oci://ghcr.io/x"]
)
def test_what_is_no_channel_is_refused(channel: str) -> None:
    with pytest.raises(InputError):
        canonical_url(channel)


@pytest.mark.parametrize("channel", ["pytorch", "pkgs/main", "nvidia/label/cuda-12.1.1"])
def test_name_and_url_are_each_others_opposite(channel: str) -> None:
    assert channel_name(canonical_url(channel)) == channel


def test_a_package_url_in_parts() -> None:
    place = locate(f"{UPSTREAM}/nvidia/label/cuda-12.1.1/linux-64/cuda-12.1.1-0.tar.bz2#0123")
    assert (place.channel, place.subdir, place.file) == (
        "nvidia/label/cuda-12.1.1",
        "linux-64",
        "cuda-12.1.1-0.tar.bz2",
    )


@pytest.mark.parametrize(
    "url",
    [
        "https://x",
        f"{UPSTREAM}/a/../x.conda",
        f"{UPSTREAM}/a/noarch/..%2Fx.conda",
        f"{UPSTREAM}/%2e%2e/noarch/x.conda",
        "ftp://h/c/noarch/x",
    ],
)
def test_a_package_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InputError):
        locate(url)


def test_nvidia_never_goes_to_a_mirror_without_it() -> None:
    """Case 03: at TUNA and most others `cloud/nvidia` is a 404 in the middle of an install."""
    for mirror in table().mirrors:
        for url in routes(mirror).urls(package("nvidia")):
            assert url.startswith(
                (f"{SUSTECH}/nvidia/", f"{UPSTREAM}/nvidia/", "https://repo.prefix.dev/nvidia/")
            )
    assert hosts("tuna", "nvidia") == ["conda.anaconda.org"]
    assert hosts("aliyun", "nvidia") == ["conda.anaconda.org"]
    assert hosts("tuna,sustech", "nvidia") == ["mirrors.sustech.edu.cn", "conda.anaconda.org"]


def test_each_channel_goes_where_it_is_carried() -> None:
    chosen = routes("tuna,sustech")
    assert chosen.urls(package("pytorch"))[0] == f"{TUNA}/pytorch/linux-64/x-1-0.conda"
    assert chosen.urls(package("pkgs/main"))[0] == (
        "https://mirrors.tuna.tsinghua.edu.cn/anaconda/pkgs/main/linux-64/x-1-0.conda"
    )
    assert chosen.urls(package("nvidia"))[0] == f"{SUSTECH}/nvidia/linux-64/x-1-0.conda"


def test_labels_go_upstream_unless_the_mirror_is_known_to_have_them() -> None:
    """Case 04."""
    assert hosts("tuna", "conda-forge/label/pytorch_rc") == ["conda.anaconda.org"]
    assert hosts("prefix", "nvidia/label/cuda-12.1.1") == ["conda.anaconda.org"]
    assert routes("sustech").urls(package("nvidia/label/cuda-12.1.1"))[0] == (
        f"{SUSTECH}/nvidia/label/cuda-12.1.1/linux-64/x-1-0.conda"
    )


def test_a_subdir_that_the_mirror_lacks_goes_upstream() -> None:
    assert hosts("sjtug", "conda-forge", "linux-64") == ["mirror.sjtu.edu.cn", "conda.anaconda.org"]
    assert hosts("sjtug", "conda-forge", "linux-aarch64") == ["conda.anaconda.org"]


def test_a_named_mirror_is_asked_even_where_nobody_knows() -> None:
    assert hosts("aliyun", "conda-forge")[0] == "mirrors.aliyun.com"
    assert "mirrors.aliyun.com" not in hosts("auto", "conda-forge")


def test_auto_asks_upstream_first_and_independent_mirrors_after_it() -> None:
    assert hosts("auto", "pytorch")[0] == "conda.anaconda.org"
    assert hosts("auto", "pytorch")[1:3] == ["mirrors.tuna.tsinghua.edu.cn", "mirror.nju.edu.cn"]
    assert hosts("auto", "nvidia") == ["conda.anaconda.org", "mirrors.sustech.edu.cn"]
    assert "mirrors.ustc.edu.cn" not in hosts("auto", "conda-forge")
    assert hosts("official", "pytorch") == ["conda.anaconda.org"]


def test_only_the_chosen_mirrors_is_an_error_for_a_channel_they_lack() -> None:
    chosen = routes("tuna,nju", only=True)
    assert len(chosen.urls(package("pytorch"))) == 2
    with pytest.raises(InputError) as refused:
        chosen.check(["pytorch", "nvidia"], ["linux-64"])
    assert "'nvidia'" in refused.value.message
    assert "Tsinghua TUNA, Nanjing University" in refused.value.message
    assert "sustech" in refused.value.hint


def test_a_server_of_ones_own() -> None:
    chosen = routes("https://user:secret@conda.example.org/mirror/", only=True)
    assert chosen.urls(package("pkgs/main")) == (
        "https://user:secret@conda.example.org/mirror/pkgs/main/linux-64/x-1-0.conda",
    )
    assert chosen.describe(["pytorch"]) == ("pytorch: conda.example.org",)


def test_a_directory_of_channels(tmp_path: Path) -> None:
    (tmp_path / "a dir" / "pkgs-main").mkdir(parents=True)
    (tmp_path / "a dir" / "pytorch").mkdir()
    chosen = routes(f"file://{tmp_path}/a dir")
    root = f"file://{tmp_path}/a%20dir"
    assert chosen.urls(package("pkgs/main"))[0] == f"{root}/pkgs-main/linux-64/x-1-0.conda"
    assert chosen.urls(package("pytorch"))[0] == f"{root}/pytorch/linux-64/x-1-0.conda"
    assert chosen.urls(package("nvidia")) == (package("nvidia"),)


def test_a_channel_that_is_a_url_is_used_directly() -> None:
    for channel in ("file:///srv/wheels", "https://conda.example.org/team"):
        assert routes("tuna").urls(f"{channel}/noarch/x-1-0.conda") == (f"{channel}/noarch/x-1-0.conda",)


def test_a_url_of_a_mirror_in_a_strangers_lock_is_routed_like_any_other() -> None:
    assert routes("nju").urls(f"{TUNA}/pytorch/linux-64/x-1-0.conda") == (
        "https://mirror.nju.edu.cn/anaconda/cloud/pytorch/linux-64/x-1-0.conda",
        package("pytorch"),
    )


def test_an_unknown_mirror_names_the_nearest() -> None:
    with pytest.raises(InputError) as refused:
        routes("tsuna")
    assert "'tsuna'" in refused.value.message
    assert "tuna" in refused.value.hint


@pytest.mark.parametrize(
    "choice", ["file:///no/such/directory", "file://host/share", "ghcr", "file:relative"]
)
def test_a_mirror_that_cannot_be_is_refused(choice: str) -> None:
    with pytest.raises(InputError):
        routes(choice)


def test_a_line_for_each_channel_says_who_serves_it() -> None:
    lines = routes("tuna").describe(["pytorch", "nvidia"], "linux-64")
    assert lines == (
        "pytorch: mirrors.tuna.tsinghua.edu.cn, then conda.anaconda.org",
        "nvidia: conda.anaconda.org (not carried by Tsinghua TUNA)",
    )


def test_the_table_carries_its_sources_and_leaves_the_package_index_to_pip() -> None:
    document = yaml.safe_load((Path(__file__).parents[2] / "envkit/data/mirrors.yaml").read_text())
    assert document["canonical"]["pypi_simple"] is None
    assert document["canonical"]["pypi_files"] is None
    for row in document["mirrors"]:
        if row.get("kind") != "upstream" and "conda" in row:
            assert row["conda"].get("evidence") or row.get("status"), row["id"]


def test_the_tables_facts_are_those_beside_the_project() -> None:
    facts = Path(__file__).parents[2].parent / "shared/facts/mirrors.yaml"
    if not facts.exists():
        pytest.skip("the facts are not beside this checkout")
    ours = yaml.safe_load((Path(__file__).parents[2] / "envkit/data/mirrors.yaml").read_text())
    theirs = yaml.safe_load(facts.read_text())
    assert {key: value for key, value in ours.items() if key not in ("routing", "spellings")} == theirs
