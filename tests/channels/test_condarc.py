"""A user's .condarc: found where conda finds it, read as it was meant, its mistakes named by line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from envkit.channels import Condarc, read_condarc

CASE = Path(__file__).parents[2].parent / "shared/cases/01"
TUNA = "https://mirrors.tuna.tsinghua.edu.cn/anaconda"
SUSTECH = "https://mirrors.sustech.edu.cn"


def read(tmp_path: Path, text: str, environ: Mapping[str, str] | None = None) -> Condarc:
    path = tmp_path / ".condarc"
    path.write_text(text)
    return read_condarc(environ or {}, [path])


def found(condarc: Condarc) -> list[tuple[int | None, str]]:
    return [(mistake.line, mistake.id) for mistake in condarc.mistakes]


def test_case_01_a_doubled_name() -> None:
    if not CASE.exists():
        pytest.skip("the cases are not beside this checkout")
    condarc = read_condarc({}, [CASE / "condarc.yml"])
    (mistake,) = condarc.mistakes
    assert (mistake.line, mistake.id) == (3, "doubled-name")
    assert f"{TUNA}/cloud/conda-forge/conda-forge/linux-64" in mistake.text
    assert mistake.hint == f"write {TUNA}/cloud"
    assert condarc.places("conda-forge") == (f"{TUNA}/cloud/conda-forge",)


@pytest.mark.parametrize(
    ("line", "id", "places"),
    [
        (f"pytorch: {TUNA}/cloud", None, [f"{TUNA}/cloud/pytorch"]),
        (f"pytorch: {TUNA}/cloud/", None, [f"{TUNA}/cloud/pytorch"]),
        (f"pytorch: '{TUNA}/cloud '", "trailing-space", [f"{TUNA}/cloud/pytorch"]),
        (f"pytorch: {TUNA}/cloud/pytorch/", "doubled-name", [f"{TUNA}/cloud/pytorch"]),
        (f"pytorch: {TUNA}", "alias-without-cloud", [f"{TUNA}/cloud/pytorch"]),
        ("pytorch: https://mirrors.tuna.tsinghua.edu.cn", "alias-without-cloud", [f"{TUNA}/cloud/pytorch"]),
        (f"pytorch: http{TUNA.removeprefix('https')}/cloud", "http", [f"{TUNA}/cloud/pytorch"]),
        ("pytorch: http://conda.corp.example", "http", ["http://conda.corp.example/pytorch"]),
        ("pytorch: nowhere", "wrong-type", []),
        ("pytorch: [a]", "wrong-type", []),
        (f"nvidia: {TUNA}/cloud", "not-carried", []),
        (f"nvidia: {SUSTECH}/anaconda-extra/cloud", None, [f"{SUSTECH}/anaconda-extra/cloud/nvidia"]),
        (f"nvidia: {SUSTECH}/anaconda/cloud", None, [f"{SUSTECH}/anaconda-extra/cloud/nvidia"]),
        ("pytorch: https://mirrors6.tuna.tsinghua.edu.cn/anaconda/cloud", None,
         ["https://mirrors6.tuna.tsinghua.edu.cn/anaconda/cloud/pytorch"]),
        ("fastai: https://mirrors.pku.edu.cn/anaconda/cloud", None,
         ["https://mirrors.pku.edu.cn/anaconda/cloud/fastai"]),
        # There the name may well stand twice: the repository's and the channel's.
        ("conda-forge: https://repo.corp.example/artifactory/api/conda/conda-forge", None,
         ["https://repo.corp.example/artifactory/api/conda/conda-forge/conda-forge"]),
        ("conda-forge: https://conda.corp.example/conda-forge", "doubled-name",
         ["https://conda.corp.example/conda-forge"]),
    ],
)  # fmt: skip
def test_a_place_of_one_channel(line: str, id: str | None, places: list[str], tmp_path: Path) -> None:
    condarc = read(tmp_path, f"show_channel_urls: true\ncustom_channels:\n  {line}\n")
    assert found(condarc) == ([(3, id)] if id else [])
    assert list(condarc.places(line.partition(":")[0])) == places
    assert all(
        mistake.text and str(mistake).startswith(f"{tmp_path}/.condarc:3: ") for mistake in condarc.mistakes
    )


@pytest.mark.parametrize(
    ("alias", "ids", "place"),
    [
        (f"{TUNA}/cloud", [], f"{TUNA}/cloud/bioconda"),
        (TUNA, ["alias-without-cloud"], f"{TUNA}/cloud/bioconda"),
        (f"{TUNA}/cloud/conda-forge", ["doubled-name"], f"{TUNA}/cloud/conda-forge/bioconda"),
        ("http://conda.corp.example/x/", ["http"], "http://conda.corp.example/x/bioconda"),
        ("https://conda.anaconda.org", [], "https://conda.anaconda.org/bioconda"),
    ],
)
def test_an_alias_is_for_channels_without_a_place_of_their_own(
    alias: str, ids: list[str], place: str, tmp_path: Path
) -> None:
    condarc = read(tmp_path, f"channel_alias: {alias}\ncustom_channels:\n  pytorch: https://other.example\n")
    assert found(condarc) == [(1, name) for name in ids]
    assert condarc.places("pytorch") == ("https://other.example/pytorch",)
    assert condarc.places("pkgs/main") == ()
    if ids != ["doubled-name"]:
        assert condarc.places("bioconda") == (place,)


def test_labels_and_subdirs_that_a_known_mirror_lacks(tmp_path: Path) -> None:
    condarc = read(
        tmp_path,
        f"channel_alias: {TUNA}/cloud\ncustom_channels: {{conda-forge: 'https://mirror.sjtu.edu.cn/anaconda/cloud'}}\n",
    )
    assert condarc.places("conda-forge", "linux-64") != ()
    assert condarc.places("conda-forge", "linux-aarch64") == ()
    assert condarc.places("conda-forge/label/rc") == ()
    assert condarc.places("nvidia") == ()
    assert condarc.places("never-heard-of") == (f"{TUNA}/cloud/never-heard-of",)


def test_defaults_that_leak_in_and_addresses_in_the_place_of_channels(tmp_path: Path) -> None:
    """What the mirrors' own help pages told people to write for years."""
    condarc = read(
        tmp_path,
        f"""\
channels:
  - {TUNA}/cloud/pytorch/
  - {TUNA}/pkgs/free/
  - defaults
default_channels:
  - {TUNA}/pkgs/main
  - http://mirror.corp.example/pkgs/r
""",
    )
    assert found(condarc) == [
        (2, "mirror-as-channel"),
        (3, "mirror-as-channel"),
        (3, "defaults-leak"),
        (4, "defaults-leak"),
        (7, "http"),
    ]
    assert "pkgs/main" in condarc.mistakes[3].text
    assert condarc.places("pkgs/main") == (f"{TUNA}/pkgs/main",)
    assert condarc.places("pkgs/r") == ("http://mirror.corp.example/pkgs/r",)
    assert condarc.places("pytorch") == (f"{TUNA}/cloud/pytorch",)


def test_defaults_that_stand_for_nothing_are_no_mistake(tmp_path: Path) -> None:
    assert found(read(tmp_path, "channels: [conda-forge, defaults]\ndefault_channels: []\n")) == []
    assert found(read(tmp_path, "channels:\n  - conda-forge\n  - defaults\n")) == [(3, "defaults-leak")]


@pytest.mark.parametrize(
    ("text", "line", "id"),
    [
        ("channels: [a\nb: c", 2, "unreadable"),
        ("a: 1\na: 2\n", 2, "unreadable"),
        ("- a\n- b\n", 1, "unreadable"),
        ("a: !!python/object:os.system {}\n", 1, "unreadable"),
        ("a: b\nchannels: conda-forge\n", 2, "wrong-type"),
        ("custom_channels: [a]\n", 1, "wrong-type"),
        ("channel_alias: 7\n", 1, "wrong-type"),
        ("proxy_servers: http://proxy\n", 1, "wrong-type"),
        ("ssl_verify: false\n", 1, "ssl-off"),
        ("a: 1\nverify_ssl: 'no'\n", 2, "ssl-off"),
        ("ssl_verify: /no/such/ca.pem\n", 1, "ssl-missing"),
    ],
)
def test_other_mistakes(text: str, line: int, id: str, tmp_path: Path) -> None:
    condarc = read(tmp_path, text)
    assert found(condarc) == [(line, id)]
    assert condarc.places("conda-forge") == ()
    assert condarc.certificates is None
    assert dict(condarc.proxies) == {}


@pytest.mark.parametrize(
    "text",
    [
        "channels: {1: true, a: {b: null}}\n",
        "custom_channels: {3: 4, '': x, conda-forge: 'https://['}\n",
        "3: [null]\nchannel_alias: [a]\nssl_verify: {}\nproxy_servers: {https: [1]}\n",
        "default_channels: [1, null, 'https://[']\nchannels: [true]\n",
    ],
)
def test_nonsense_is_survived(text: str, tmp_path: Path) -> None:
    condarc = read(tmp_path, text)
    assert condarc.places("conda-forge", "linux-64") == ()
    assert condarc.hosts == frozenset()
    assert dict(condarc.proxies) == {}
    assert condarc.certificates is None


@pytest.mark.parametrize(
    "text", ["", "# nothing\n---\n", "{}\n", "ssl_verify: true\nfuture_setting: {a: [b]}\n"]
)
def test_what_is_no_mistake(text: str, tmp_path: Path) -> None:
    assert found(read(tmp_path, text)) == []


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / ".condarc"
    path.write_bytes(b"channels: [\xff]\n")
    assert found(read_condarc({}, [path])) == [(1, "unreadable")]


def test_variables_and_proxies(tmp_path: Path) -> None:
    condarc = read(
        tmp_path,
        "channel_alias: https://$HOST/${PATH_THERE}\nproxy_servers:\n  https: http://me:$WORD@p:1\n"
        "  http: p:2\n  https://x.example/: http://p:3\n  all: ''\n",
        {"HOST": "h.example", "PATH_THERE": "conda", "WORD": "w"},
    )
    assert condarc.places("a") == ("https://h.example/conda/a",)
    assert condarc.proxies == {
        "https": "http://me:w@p:1",
        "http": "http://p:2",
        "https://x.example": "http://p:3",
    }


def test_where_conda_looks_and_who_has_the_last_word(tmp_path: Path) -> None:
    def put(place: str, text: str) -> Path:
        path = tmp_path / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    chosen = put("chosen.yml", "channel_alias: https://chosen.example\n")
    prefix = put(
        "env/.condarc", "channel_alias: https://env.example\ncustom_channels: {b: 'https://env.example'}\n"
    )
    user = put("home/.condarc", "custom_channels: {a: 'https://user.example', b: 'https://user.example'}\n")
    later = put("home/.config/conda/condarc.d/20.yml", "channels: [later]\n")
    first = put("home/.config/conda/condarc.d/10.yaml", "channels: [first]\nssl_verify: false\n")
    put("home/.config/conda/condarc.d/30.txt", "not: read\n")
    root = put("conda/.condarc", "channels: [root]\n")
    environ = {
        "HOME": str(tmp_path / "home"),
        "CONDARC": str(chosen),
        "CONDA_PREFIX": str(tmp_path / "env"),
        "CONDA_EXE": str(tmp_path / "conda/bin/conda"),
    }
    condarc = read_condarc(environ)
    assert condarc.paths[:6] == (chosen, prefix, user, later, first, root)
    assert condarc.places("x") == ("https://chosen.example/x",)
    assert condarc.places("a") == ("https://user.example/a",)
    assert condarc.places("b") == ("https://env.example/b",)
    assert condarc.settings["channels"][:3] == ["later", "first", "root"]
    assert [(mistake.path, mistake.line) for mistake in condarc.mistakes][:1] == [(first, 2)]


def test_hosts_are_those_that_nobody_else_knows(tmp_path: Path) -> None:
    condarc = read(
        tmp_path,
        f"channel_alias: http://conda.corp.example/x\ncustom_channels: {{a: {TUNA}/cloud, b: 'file:///srv'}}\n",
    )
    assert condarc.hosts == {"http://conda.corp.example/x"}


def test_a_local_place_counts_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "srv/team").mkdir(parents=True)
    condarc = read(tmp_path, f"custom_channels: {{team: 'file://{tmp_path}/srv', gone: 'file:///no/such'}}\n")
    assert condarc.places("team") == (f"file://{tmp_path}/srv/team",)
    assert condarc.places("gone") == ()
