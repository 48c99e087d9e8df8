"""Which host is asked for which channel: the table of mirrors, and what a user chose."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
import yaml
from watching import Notes

from envkit.channels import Condarc, pypi_files, read_condarc, table
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
    assert hosts("tuna", "nvidia") == ["mirrors.sustech.edu.cn", "conda.anaconda.org"]
    assert hosts("aliyun", "nvidia") == ["mirrors.sustech.edu.cn", "conda.anaconda.org"]
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
    assert hosts("prefix", "nvidia/label/cuda-12.1.1") == ["mirrors.sustech.edu.cn", "conda.anaconda.org"]
    assert routes("sustech").urls(package("nvidia/label/cuda-12.1.1"))[0] == (
        f"{SUSTECH}/nvidia/label/cuda-12.1.1/linux-64/x-1-0.conda"
    )


def test_a_subdir_that_the_mirror_lacks_goes_upstream() -> None:
    assert hosts("sjtug", "conda-forge", "linux-64")[0] == "mirror.sjtu.edu.cn"
    assert "mirror.sjtu.edu.cn" not in hosts("sjtug", "conda-forge", "linux-aarch64")


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
    assert routes("nju", only=True).urls(f"{TUNA}/pytorch/linux-64/x-1-0.conda") == (
        "https://mirror.nju.edu.cn/anaconda/cloud/pytorch/linux-64/x-1-0.conda",
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
        "pytorch: mirrors.tuna.tsinghua.edu.cn, then mirror.nju.edu.cn, then mirrors.sustech.edu.cn, "
        "then conda.anaconda.org",
        "nvidia: mirrors.sustech.edu.cn, then conda.anaconda.org (not carried by Tsinghua TUNA)",
    )


def test_behind_a_named_mirror_stand_those_that_are_independent_of_it() -> None:
    assert hosts("tuna", "pytorch")[1:3] == ["mirror.nju.edu.cn", "mirrors.sustech.edu.cn"]
    assert "mirrors.tuna.tsinghua.edu.cn" not in hosts("ustc", "pytorch")[1:]
    assert hosts("official", "pytorch") == ["conda.anaconda.org"]
    assert hosts("https://conda.example.org", "pytorch") == ["conda.example.org", "conda.anaconda.org"]


def test_ustc_says_that_it_is_tuna_in_the_end() -> None:
    (pytorch, forge) = routes("ustc").describe(["pytorch", "conda-forge"])
    assert pytorch.startswith("pytorch: mirrors.ustc.edu.cn (redirects to Tsinghua TUNA), then mirror.nju")
    assert "mirrors.ustc.edu.cn (redirects to Tsinghua TUNA what it lacks)" in forge


def test_auto_without_upstream_is_the_mirrors_alone() -> None:
    chosen = routes("auto", only=True)
    assert [url.split("/")[2] for url in chosen.urls(package("nvidia"))] == ["mirrors.sustech.edu.cn"]
    assert all("anaconda.org" not in url for url in chosen.urls(package("conda-forge")))


@pytest.mark.parametrize(
    "url",
    [
        TUNA,
        "http://mirrors.tuna.tsinghua.edu.cn/anaconda",
        "https://mirrors.tuna.tsinghua.edu.cn/anaconda/pkgs/",
    ],
)
def test_the_url_of_a_known_mirror_is_that_mirror(url: str) -> None:
    chosen = routes(url, only=True)
    assert chosen.urls(package("pytorch")) == (f"{TUNA}/pytorch/linux-64/x-1-0.conda",)
    with pytest.raises(InputError):
        chosen.check(["nvidia"])


def wheel(*parts: str) -> str:
    return "/".join((str(pypi_files()), *parts))


def test_a_file_of_the_python_index_is_asked_for_at_the_mirrors_own_copies() -> None:
    file = wheel("ab", "cd", "0123", "numpy-2.0.0-cp311-cp311-manylinux_2_17_x86_64.whl")
    assert routes("tuna,nju", only=True).urls(file) == (
        file.replace(str(pypi_files()), "https://mirrors.tuna.tsinghua.edu.cn/pypi/web/packages"),
        file.replace(str(pypi_files()), "https://mirror.nju.edu.cn/pypi/web/packages"),
    )
    assert routes("tuna").urls(file)[-1] == file
    assert routes("tuna").urls(routes("tuna").urls(file)[0])[-1] == file


def test_a_wheel_of_pytorchs_index_is_asked_for_where_somebody_has_a_copy() -> None:
    below = "cu126/torch-2.7.0%2Bcu126-cp311-cp311-manylinux_2_28_x86_64.whl"
    file = f"https://download.pytorch.org/whl/{below}"
    assert routes("tuna,nju,sjtug,aliyun").urls(file) == (
        f"https://mirror.nju.edu.cn/pytorch/whl/{below}",
        f"https://mirror.sjtu.edu.cn/pytorch-wheels/{below}",
        f"https://mirrors.aliyun.com/pytorch-wheels/{below}",
        file,
    )
    assert routes("official").urls(f"https://download-r2.pytorch.org/whl/{below}") == (file,)
    with pytest.raises(InputError, match=r"torch-2\.7\.0.*Tsinghua"):
        routes("tuna", only=True).urls(file)


def test_a_tree_has_files_for_pip_in_a_folder_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "pip").mkdir()
    (tmp_path / "pip" / "torch-2.7.0+cu126-cp311.whl").write_bytes(b"PK")
    file = "https://download.pytorch.org/whl/cu126/torch-2.7.0%2Bcu126-cp311.whl"
    assert routes(f"file://{tmp_path}").urls(file) == (
        f"file://{tmp_path}/pip/torch-2.7.0%2Bcu126-cp311.whl",
        file,
    )
    assert routes("https://files.example/tree").urls(file)[0] == (
        "https://files.example/tree/pip/torch-2.7.0%2Bcu126-cp311.whl"
    )
    assert routes(f"file://{tmp_path}").urls(wheel("a", "b", "c", "other.whl")) == (
        wheel("a", "b", "c", "other.whl"),
    )


def test_a_wheel_on_anybodys_server_stays_there() -> None:
    assert routes("tuna").urls("https://wheels.example/a/b/c/x-1-py3-none-any.whl") == (
        "https://wheels.example/a/b/c/x-1-py3-none-any.whl",
    )


def own(tmp_path: Path, text: str) -> Condarc:
    path = tmp_path / ".condarc"
    path.write_text(text)
    return read_condarc({}, [path])


def test_auto_asks_the_users_own_places_first_each_for_its_channels(tmp_path: Path) -> None:
    condarc = own(
        tmp_path,
        """
channel_alias: https://conda.corp.example/mirror
custom_channels:
  pytorch: https://mirror.nju.edu.cn/anaconda/cloud
  team: http://10.1.2.3/conda
default_channels:
  - https://conda.corp.example/licensed/pkgs/main
""",
    )
    chosen = routes("auto", condarc=condarc)
    first = {name: chosen.urls(package(name))[0] for name in ("pytorch", "team", "bioconda", "pkgs/main")}
    assert first == {
        "pytorch": "https://mirror.nju.edu.cn/anaconda/cloud/pytorch/linux-64/x-1-0.conda",
        "team": "http://10.1.2.3/conda/team/linux-64/x-1-0.conda",
        "bioconda": "https://conda.corp.example/mirror/bioconda/linux-64/x-1-0.conda",
        "pkgs/main": "https://conda.corp.example/licensed/pkgs/main/linux-64/x-1-0.conda",
    }
    assert chosen.urls(package("pytorch"))[-1] != first["pytorch"]
    trust = chosen.session.trust
    assert trust.refusal(first["team"]) is None
    assert trust.refusal("http://10.1.2.4/conda/team/linux-64/x-1-0.conda") is not None
    assert trust.refusal(first["bioconda"]) is None


def test_an_explicit_choice_comes_before_the_users_own_places(tmp_path: Path) -> None:
    condarc = own(tmp_path, "channel_alias: https://conda.corp.example\n")
    found = [url.split("/")[2] for url in routes("tuna", condarc=condarc).urls(package("pytorch"))]
    assert found[:2] == ["mirrors.tuna.tsinghua.edu.cn", "conda.corp.example"]
    assert found[-1] == "conda.anaconda.org"
    only = routes("tuna", only=True, condarc=condarc)
    assert [url.split("/")[2] for url in only.urls(package("pytorch"))] == ["mirrors.tuna.tsinghua.edu.cn"]


def test_the_mistakes_of_a_condarc_are_told_once_and_stop_nothing(tmp_path: Path, notes: Notes) -> None:
    """Case 01 among them: the doubled name is read as it was meant."""
    condarc = own(tmp_path, f"custom_channels:\n  conda-forge: {TUNA}/conda-forge\nssl_verify: false\n")
    chosen = routes("auto", condarc=condarc)
    for _time in range(2):
        chosen.session.announce(notes)
    assert [line.split(": ")[0] for line in notes.lines] == [f"{tmp_path}/.condarc:{n}" for n in (2, 3)]
    assert chosen.urls(package("conda-forge"))[0] == f"{TUNA}/conda-forge/linux-64/x-1-0.conda"
    assert chosen.session.access.verifier().verify_mode is ssl.CERT_REQUIRED


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
