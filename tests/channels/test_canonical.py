"""Mirror URLs are read as what they are copies of; everything else stays as it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envkit.channels import (
    canonical_url,
    canonicalise_url,
    channel_name,
    condarc_bases,
    is_licensed,
    locate,
    published_file,
    pypi_files,
    pypi_simple,
    table,
)

CASES = Path(__file__).parents[2].parent / "shared" / "cases"
CLOUD = "https://conda.anaconda.org"
PKGS = "https://repo.anaconda.com/pkgs"
WHEELS = "https://download.pytorch.org/whl"
ARCHIVE = "linux-64/pytorch-2.5.1-py3.11_cuda12.1_cudnn9.1.0_0.tar.bz2"

CLOUD_BASES = [
    "https://mirrors.tuna.tsinghua.edu.cn/anaconda/cloud",
    "https://mirrors6.tuna.tsinghua.edu.cn/anaconda/cloud",
    "http://mirrors.tuna.tsinghua.edu.cn/anaconda/cloud",
    "https://mirrors.ustc.edu.cn/anaconda/cloud",
    "https://mirrors.bfsu.edu.cn/anaconda/cloud",
    "https://mirror.nju.edu.cn/anaconda/cloud",
    "https://mirrors.nju.edu.cn/anaconda/cloud",
    "https://mirror.sjtu.edu.cn/anaconda/cloud",
    "https://mirrors.sjtug.sjtu.edu.cn/anaconda/cloud",
    "https://mirrors.sustech.edu.cn/anaconda/cloud",
    "https://mirrors.sustech.edu.cn/anaconda-extra/cloud",
    "https://mirrors.aliyun.com/anaconda/cloud",
    "https://mirrors.aliyun.com:443/anaconda/cloud",
    "https://MIRRORS.aliyun.com/anaconda/cloud",
    "https://mirrors.cloud.tencent.com/anaconda/cloud",
    "https://reader:secret@mirrors.cloud.tencent.com/anaconda/cloud",
    "https://mirrors.pku.edu.cn/anaconda/cloud",
    "https://mirrors.cernet.edu.cn/anaconda/cloud",
    "https://repo.prefix.dev",
    "https://prefix.dev",
    CLOUD,
    "http://conda.anaconda.org",
]


@pytest.mark.parametrize("base", CLOUD_BASES)
def test_a_channel_is_the_same_on_every_mirror(base: str) -> None:
    assert canonicalise_url(f"{base}/pytorch/{ARCHIVE}#0123").url == f"{CLOUD}/pytorch/{ARCHIVE}#0123"
    found = canonicalise_url(f"{base}/nvidia")
    assert found.known
    assert (found.url, found.channel, found.tree) == (f"{CLOUD}/nvidia", "nvidia", "cloud")
    assert canonical_url(f"{base}/nvidia/") == f"{CLOUD}/nvidia"
    assert locate(f"{base}/pytorch/{ARCHIVE}").channel == "pytorch"


@pytest.mark.parametrize(
    "base",
    [
        "https://mirrors.tuna.tsinghua.edu.cn/anaconda/pkgs",
        "https://mirror.nju.edu.cn/anaconda/pkgs",
        "https://mirrors.aliyun.com/anaconda/pkgs",
        "https://repo.continuum.io/pkgs",
        PKGS,
    ],
)
def test_a_mirror_of_defaults_is_defaults(base: str) -> None:
    found = canonicalise_url(f"{base}/main/linux-64/numpy-1.26.4-py311h24aa872_0.conda")
    assert found.url == f"{PKGS}/main/linux-64/numpy-1.26.4-py311h24aa872_0.conda"
    assert found.channel == "pkgs/main"
    assert is_licensed(found.channel)
    assert channel_name(canonical_url(f"{base}/r")) == "pkgs/r"


def test_copies_of_defaults_need_a_licence_as_well() -> None:
    for channel in ("defaults", "pkgs/main", "anaconda", "main", "r", "msys2", "anaconda/label/dev"):
        assert is_licensed(channel)
        assert channel == "defaults" or is_licensed(canonicalise_url(canonical_url(channel)).channel)
    for channel in ("conda-forge", "pytorch", "main-street", "conda-forge/label/main", "", None):
        assert not is_licensed(channel)


@pytest.mark.parametrize(
    ("written", "channel"),
    [
        (
            "https://mirrors.sustech.edu.cn/anaconda-extra/cloud/nvidia/label/cuda-12.1.1",
            "nvidia/label/cuda-12.1.1",
        ),
        (f"{CLOUD}/conda-forge/label/pytorch_rc/linux-64", "conda-forge/label/pytorch_rc"),
        (f"{CLOUD}/conda-forge/label/pytorch_rc/noarch/repodata.json", "conda-forge/label/pytorch_rc"),
    ],
)
def test_labels_belong_to_the_channel(written: str, channel: str) -> None:
    """Case 04."""
    found = canonicalise_url(written)
    assert found.channel == channel
    assert found.url.startswith(f"{CLOUD}/{channel}")


@pytest.mark.parametrize(
    "written",
    [
        "https://prefix.dev/rust-forge",  # a channel of its own, no copy
        "https://conda.example.org/team/linux-64/x-1-0.conda",
        "https://mirrors.tuna.tsinghua.edu.cn/anaconda/miniconda/x.sh",
        "https://mirrors.tuna.tsinghua.edu.cn/anaconda/cloud",
        "https://mirrors.tuna.tsinghua.edu.cn/anaconda/cloud/../x/linux-64/y-1-0.conda",
        "https://mirrors.tuna.tsinghua.edu.cn/anaconda/cloud/%2e%2e/x",
        "https://mirrors.tuna.tsinghua.edu.cn.example.org/anaconda/cloud/pytorch",
        "https://mirrors.tuna.tsinghua.edu.cn:8443/anaconda/cloud/pytorch",
        f"{CLOUD}/t/tk-123/private",
        "https://repo.anaconda.com/miniconda/x.sh",
        "file:///srv/channels/conda-forge",
        "https://[::1]/anaconda/cloud/pytorch",
        "${CHANNEL}/pytorch",
        "not a URL",
        "",
    ],
)
def test_what_is_no_copy_stays_and_is_not_known(written: str) -> None:
    found = canonicalise_url(written)
    assert (found.url, found.known) == (written, False)


def test_upstreams_own_credentials_stay() -> None:
    url = "https://reader:secret@conda.anaconda.org/private/linux-64/x-1-0.conda"
    assert canonicalise_url(url).url == url


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("https://mirror.nju.edu.cn/pytorch/whl/cu121", f"{WHEELS}/cu121"),
        ("https://mirror.sjtu.edu.cn/pytorch-wheels/cu121/", f"{WHEELS}/cu121/"),
        ("https://mirrors.aliyun.com/pytorch-wheels/cu121/", f"{WHEELS}/cu121/"),
        ("https://download-r2.pytorch.org/whl/nightly/cu128", f"{WHEELS}/nightly/cu128"),
        (f"{WHEELS}/cpu", f"{WHEELS}/cpu"),
    ],
)
def test_pytorchs_wheel_index_has_one_address(written: str, canonical: str) -> None:
    assert canonicalise_url(written).url == canonical


@pytest.mark.parametrize(
    "written",
    [
        "https://pypi.tuna.tsinghua.edu.cn/simple",
        "http://mirrors.aliyun.com/pypi/simple",
        "https://mirrors.cloud.aliyuncs.com/pypi/simple",
        "https://pypi.mirrors.ustc.edu.cn/simple",
        "https://mirrors.tencentyun.com/pypi/simple",
        "https://repo.huaweicloud.com/repository/pypi/simple",
    ],
)
def test_a_copy_of_the_python_index_is_the_index(written: str) -> None:
    assert canonicalise_url(written).url == pypi_simple()
    assert canonicalise_url(f"{written}/numpy/").url == f"{pypi_simple()}/numpy/"


@pytest.mark.parametrize(
    "written",
    [
        "https://pypi.tuna.tsinghua.edu.cn/packages",
        "https://mirror.sjtu.edu.cn/pypi-packages",
        "https://mirrors.zju.edu.cn/pypi/web/packages",
    ],
)
def test_files_beside_an_index_are_the_indexes_files(written: str) -> None:
    file = "aa/bb/x-1%2By.whl#sha256=00"
    assert canonicalise_url(f"{written}/{file}").url == f"{pypi_files()}/{file}"


@pytest.mark.skipif(not CASES.is_dir(), reason="the cases are not beside this checkout")
def test_wheels_of_mirrors_and_redirects() -> None:
    """Case 08, its answer read literally."""
    answer = (CASES / "08/expected.txt").read_text().splitlines()
    files = answer[0].partition("-> ")[2].replace("<PyPI's own file host>/packages", pypi_files() or "")
    wheels = answer[1].partition("-> ")[2].partition(" ")[0]
    written = (CASES / "08/urls.txt").read_text().split()
    assert answer[0].startswith("Lines 1-7") and answer[1].startswith("Lines 8-9")
    assert [canonicalise_url(url).url for url in written] == [files] * 7 + [wheels] * 2
    assert "%2B" in wheels


@pytest.mark.skipif(not CASES.is_dir(), reason="the cases are not beside this checkout")
def test_what_a_condarc_makes_of_names() -> None:
    """Cases 04 and 05: custom channels and a `defaults` of mirrors are the channels they copy."""
    import yaml

    for number in ("04", "05"):
        settings = yaml.safe_load((CASES / number / "condarc.yml").read_text())
        for name, base in settings.get("custom_channels", {}).items():
            assert canonicalise_url(f"{base}/{name}/label/x").channel == f"{name}/label/x"
        for url in settings.get("default_channels", ()):
            assert is_licensed(canonicalise_url(url).channel)


def test_a_companys_own_server_is_known_from_the_condarc() -> None:
    bases = condarc_bases(
        {
            "custom_channels": {
                "nvidia": "https://conda.corp.example/gpu/",
                "team": "file:///srv",
                "": "https://x",
            },
            "channel_alias": "https://conda.corp.example/proxy/",
        }
    )
    assert bases == {
        "https://conda.corp.example/gpu/nvidia": f"{CLOUD}/nvidia",
        "https://conda.corp.example/proxy": CLOUD,
    }
    written = "https://conda.corp.example/gpu/nvidia/label/cuda-12.1.1/linux-64/x-1-0.conda"
    assert canonicalise_url(written, also=bases).channel == "nvidia/label/cuda-12.1.1"
    assert canonicalise_url("https://conda.corp.example/proxy/pytorch", also=bases).url == f"{CLOUD}/pytorch"
    assert not canonicalise_url("https://conda.corp.example/other/pytorch", also=bases).known


def test_every_base_of_the_table_leads_to_upstream() -> None:
    own = {"cloud": CLOUD, "pkgs": PKGS, "pytorch": WHEELS, "files": pypi_files(), "simple": pypi_simple()}
    for base in table().bases:
        name = "conda-forge" if base.only is not None else "x"
        assert canonicalise_url(f"https://{base.place}/{name}").url == f"{own[base.tree]}/{name}"


def test_a_file_of_the_public_index_is_known_by_its_path_at_the_users_own_index() -> None:
    stored = f"/ab/cd/{'e' * 60}/x-1-py3-none-any.whl#sha256=12"
    own = ["https://pip.corp.example/repo/simple", "https://u:p@second.example:8080/simple"]
    for front in (
        "https://pip.corp.example/repo/packages",
        "http://pip.corp.example/api/packages/packages",
        "https://second.example:8080/packages",
    ):
        assert published_file(front + stored, own) == f"{pypi_files()}{stored}"
    for url in (
        f"https://other.example/packages{stored}",
        "https://pip.corp.example/repo/packages/own/x-1-py3-none-any.whl",
        f"https://pip.corp.example/packages/ab/cd/{'e' * 59}/x.whl",
        f"https://pip.corp.example/packages{stored.partition('#')[0]}?token=1",
    ):
        assert published_file(url, own) == url


segments = st.lists(st.text("abz09._-%+:@~ ü", min_size=1, max_size=8), max_size=4).map("/".join)
fronts = st.sampled_from(
    ["https://", "http://", "oci://", "file://", "ftp://", "", "https://u:p@", "HTTPS://"]
)


@given(
    front=fronts,
    place=st.one_of(
        st.sampled_from([base.place for base in table().bases]), st.sampled_from(["example.org", "[::1]", ""])
    ),
    port=st.sampled_from(["", ":443", ":80", ":8080"]),
    rest=segments,
    slashes=st.sampled_from(["/", "//", ""]),
    tail=st.sampled_from(["", "/", "#abc", "?a=b"]),
)
def test_twice_is_once(front: str, place: str, port: str, rest: str, slashes: str, tail: str) -> None:
    host, slash, folder = place.partition("/")
    once = canonicalise_url(f"{front}{host}{port}{slash}{folder}{slashes}{rest}{tail}")
    again = canonicalise_url(once.url)
    assert again.url == once.url
    assert (again.channel, again.tree, again.known) == (once.channel, once.tree, once.known)
