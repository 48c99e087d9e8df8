"""What differs between two sets of packages: kinds, folding, the three forms, and that a diff is exact."""

from __future__ import annotations

import json
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from envkit.lock import Diff, apply, diff, diff_json, diff_markdown, diff_text, read_lock
from envkit.lock.diff import KINDS, channel_of
from envkit.lock.order import compare_versions
from envkit.lock.rows import groups, headline
from envkit.model import Package

PROJECT = Path(__file__).parents[2]
FORGE = "https://conda.anaconda.org/conda-forge"
TUNA = "https://mirrors.tuna.tsinghua.edu.cn/anaconda/cloud/conda-forge"
ALL = ("linux-64", "linux-aarch64", "osx-arm64", "win-64")


def conda(
    name: str,
    version: str = "1.0",
    build: str = "0",
    *,
    platform: str = "linux-64",
    channel: str = FORGE,
    subdir: str | None = None,
    ending: str = "conda",
    **more: object,
) -> Package:
    url = f"{channel}/{subdir or platform}/{name}-{version}-{build}.{ending}"
    return Package(
        **{
            "name": name,
            "version": version,
            "manager": "conda",
            "platform": platform,
            "url": url,
            "sha256": "0" * 64,
            **more,
        }
    )


def pip(
    name: str, version: str, *, host: str = "download.pytorch.org/whl/cu126", sha256: str = "0" * 64
) -> Package:
    url = f"https://{host}/{name}-{version}-py3-none-any.whl"
    return Package(name=name, version=version, manager="pip", platform="linux-64", url=url, sha256=sha256)


def kinds(a: list[Package], b: list[Package]) -> list[str]:
    return [change.kind for change in diff(a, b).changes]


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        (conda("numpy", "1.26.4"), conda("numpy", "2.0.1"), "up"),
        (conda("numpy", "1.9.0"), conda("numpy", "1.10.0"), "up"),
        (conda("openssl", "1.1.1w"), conda("openssl", "1.1.1a"), "down"),
        (conda("tzdata", "2024b"), conda("tzdata", "2025a"), "up"),
        (conda("x", "1.0rc1"), conda("x", "1.0"), "up"),
        (conda("x", "2.0"), conda("x", "1!1.0"), "up"),
        (conda("x", "1.0", "h1_0"), conda("x", "1.0", "h1_1"), "rebuilt"),
        (conda("x", "1.0"), conda("x", "1.0.0"), "rebuilt"),
        (conda("x", ending="tar.bz2"), conda("x", ending="conda"), "rebuilt"),
        (conda("x", subdir="noarch"), conda("x"), "rebuilt"),
        (conda("x"), conda("x", sha256="f" * 64), "rebuilt"),
        (
            conda("x", "1.0", "a"),
            conda("x", "1.0", "b", channel="https://conda.anaconda.org/pytorch"),
            "moved",
        ),
        (conda("x"), conda("x", channel="https://repo.anaconda.com/pkgs/main"), "moved"),
        (conda("x"), conda("x", channel="https://conda.corp.example/forge"), "moved"),
        (conda("x", "2"), conda("x", "1", channel="https://conda.anaconda.org/pytorch"), "down"),
        (conda("x"), conda("x", channel=TUNA), "amended"),
        (conda("x"), conda("x", depends={"python": ">=3.11"}), "amended"),
        (conda("x"), conda("x", category="dev"), "amended"),
        (conda("x"), conda("x", md5="5" * 32), "amended"),
        (pip("torch", "2.7.0+cu118"), pip("torch", "2.7.0+cu126"), "up"),
        (pip("torch", "2.7.0.dev20250101"), pip("torch", "2.7.0"), "up"),
        (pip("torch", "2.7.0"), pip("torch", "2.7.0", host="wheels.corp.example"), "moved"),
        (pip("torch", "2.7.0"), pip("torch", "2.7.0", sha256="f" * 64), "rebuilt"),
        (pip("Foo_Bar", "1"), pip("foo-bar", "1"), "amended"),
        (pip("x", "what-is-this-2"), pip("x", "what-is-this-10"), "up"),
        (conda("x", "1..2"), conda("x", "1..10"), "up"),
    ],
)
def test_each_kind_of_change(old: Package, new: Package, kind: str) -> None:
    (change,) = diff([old], [new]).changes
    assert (change.kind, change.old, change.new) == (kind, old, new)
    (back,) = diff([new], [old]).changes
    assert back.kind == {"up": "down", "down": "up"}.get(kind, kind)


def test_added_removed_and_the_same() -> None:
    assert kinds([], [conda("x")]) == ["added"]
    assert kinds([conda("x")], []) == ["removed"]
    assert kinds([conda("x")], [conda("x")]) == []
    assert kinds([conda("torch", "2")], [pip("torch", "2")]) == ["removed", "added"]


def test_a_version_that_moves_says_so_too() -> None:
    (change,) = diff(
        [conda("x", "1")], [conda("x", "2", channel="https://conda.anaconda.org/pytorch")]
    ).changes
    assert (change.kind, change.moved) == ("up", True)
    assert not diff([conda("x", "1")], [conda("x", "2", channel=TUNA)]).changes[0].moved


@pytest.mark.parametrize(
    ("package", "channel"),
    [
        (conda("x"), "conda-forge"),
        (conda("x", channel=TUNA), "conda-forge"),
        (conda("x", channel="https://repo.anaconda.com/pkgs/main"), "pkgs/main"),
        (conda("x", channel="file:///srv/channel"), "file:///srv/channel"),
        (
            conda("x", channel="https://user:secret@conda.corp.example/t/abcdef/forge"),
            "https://conda.corp.example/forge",
        ),
        (pip("x", "1"), "download.pytorch.org"),
        (replace(pip("x", "1"), url=""), ""),
    ],
)
def test_where_a_package_comes_from(package: Package, channel: str) -> None:
    assert channel_of(package) == channel


def test_what_an_environment_does_not_know_is_no_difference() -> None:
    lock = [conda("x", md5="5" * 32, depends={"a": ">=1"}), pip("torch", "2.7.0")]
    records = [conda("x", channel=TUNA, sha256=""), replace(pip("torch", "2.7.0"), url="", sha256="")]
    assert not diff(lock, records, archives_only=True)
    assert not diff(records, lock, archives_only=True)
    assert [c.kind for c in diff(lock, [conda("x", build="1", sha256="")], archives_only=True).changes] == [
        "rebuilt",
        "removed",
    ]


def test_a_lock_with_a_package_twice_is_compared_all_the_same() -> None:
    a = [conda("x", "1"), conda("x", "2")]
    b = [conda("x", "2"), conda("x", "3")]
    made = diff(a, b)
    assert [(c.kind, c.old.version, c.new.version) for c in made.changes if c.old and c.new] == [
        ("up", "1", "3")
    ]
    assert list(apply(made, a)) == b


def everywhere(
    *packages: tuple[str, str], platforms: tuple[str, ...] = ALL, build: str = "h{}_0"
) -> list[Package]:
    return [
        conda(name, version, build.format(platform[:3]), platform=platform)
        for platform in platforms
        for name, version in packages
    ]


def test_what_is_alike_on_every_platform_is_one_row() -> None:
    a = everywhere(("numpy", "1.26.4"), ("python", "3.11.8"))
    b = [*everywhere(("numpy", "2.0.1"), ("python", "3.11.8")), conda("mkl", "2024.0")]
    (first, second) = groups(diff(a, b))
    assert first.title == "all platforms (linux-64, linux-aarch64, osx-arm64, win-64)"
    assert [(row.kind, row.name, row.version) for row in first.rows] == [("up", "numpy", "1.26.4 -> 2.0.1")]
    assert (second.title, [row.name for row in second.rows]) == ("linux-64", ["mkl"])
    assert headline(diff(a, b)) == "1 up, 1 added"


def test_a_whole_platform_is_one_line() -> None:
    a = everywhere(("numpy", "1.26.4"), platforms=ALL[:2])
    b = everywhere(("numpy", "1.26.4"), platforms=ALL[1:3])
    made = diff(a, b)
    assert diff_text(made) == (
        "1 platform more, 1 platform less\n\nosx-arm64: new, 1 package\nlinux-64: gone, 1 package"
    )
    assert groups(made) == ()
    assert list(apply(made, a)) == sorted(b, key=lambda package: package.platform)


def test_text() -> None:
    a = [conda("numpy", "1.26.4"), conda("zlib", "1.3", "h1_0"), conda("old"), pip("torch", "2.6.0")]
    b = [
        conda("numpy", "2.0.1", channel="https://conda.anaconda.org/pytorch"),
        conda("zlib", "1.3", "h1_1"),
        conda("new", "0.1"),
        pip("torch", "2.7.0"),
    ]
    assert diff_text(diff(a, b)) == (
        "2 up, 1 added, 1 removed, 1 rebuilt\n"
        "\n"
        "linux-64\n"
        "  up       numpy        1.26.4 -> 2.0.1  conda-forge -> pytorch\n"
        "  up       torch (pip)  2.6.0 -> 2.7.0\n"
        "  added    new          0.1              conda-forge\n"
        "  removed  old          1.0              conda-forge\n"
        "  rebuilt  zlib         1.3              h1_0 -> h1_1"
    )
    assert diff_text(diff(a, a)) == "no difference"


def test_markdown() -> None:
    a = [conda("numpy", "1.26.4"), conda("_x_y", "1", "a_0")]
    b = [conda("numpy", "2.0.1"), conda("_x_y", "1", "b_0")]
    assert diff_markdown(diff(a, b), "py311 → main") == (
        "### py311 → main\n"
        "\n"
        "**1 up, 1 rebuilt**\n"
        "\n"
        "**linux-64**\n"
        "\n"
        "| change | package | version | note |\n"
        "| --- | --- | --- | --- |\n"
        "| up | numpy | 1.26.4 → 2.0.1 |  |\n"
        "| rebuilt | `_x_y` | 1 | `a_0` → `b_0` |"
    )


TEXT = st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=20)


@given(st.text(alphabet=st.sampled_from("ab`*_~[]()<>&|\\#@!:/.-+=^$\n\t "), max_size=20) | TEXT)
@example("a|b`c`*d*[e](https://evil.example)<img src=x>@team #1 \n| row |")
@example("www.evil.example")
@settings(max_examples=150, deadline=None)
def test_no_value_becomes_markup(value: str) -> None:
    nasty = replace(conda("x"), name=f"x{value}x")
    text = diff_markdown(diff([conda("a")], [conda("a"), nasty]), "t")
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    cells = [token for token in tokens if token.type == "inline"][-4:]
    parts = cells[1].children or []
    assert {part.type for part in parts} <= {"text", "code_inline"}
    assert "".join(part.content for part in parts) == " ".join(f"x{value}x".split())
    assert "https://" not in text
    assert "@team" not in text
    assert "www." not in text


def test_a_long_table_is_folded() -> None:
    text = diff_markdown(diff([conda("a")], [conda("a"), *(conda(f"p{n}") for n in range(16))]), "t")
    assert "<details><summary>linux-64: 16 changes</summary>\n\n| change" in text
    assert text.endswith("\n\n</details>")


def test_json_has_everything() -> None:
    a, b = (
        read_lock(PROJECT / "environments/py311-cpu/conda-lock.yml"),
        read_lock(PROJECT / "environments/py311-cu118/conda-lock.yml"),
    )
    data = json.loads(json.dumps(diff_json(diff(a.packages, b.packages))))
    assert data["different"] is True
    assert data["gone_platforms"] == ["linux-aarch64", "osx-arm64", "win-64"]
    there = data["platforms"]["linux-64"]
    assert (there["before"], there["after"]) == (len(a.on("linux-64")), len(b.on("linux-64")))
    (torch,) = [change for change in there["changes"] if change["name"] == "pytorch"]
    assert (torch["kind"], torch["moved"]) == ("down", True)
    assert (torch["old"]["channel"], torch["new"]["channel"]) == ("conda-forge", "pytorch")
    assert sum(data["counts"].values()) == sum(len(one["changes"]) for one in data["platforms"].values())
    assert set(data["counts"]) == set(KINDS)


def test_between_the_shipped_locks_a_diff_is_exact() -> None:
    locks = [read_lock(path) for path in sorted(PROJECT.glob("environments/*/conda-lock.yml"))]
    for a in locks:
        for b in locks[:3]:
            assert apply(diff(a.packages, b.packages), a.packages) == b.packages


VERSIONS = ("1.0", "1.0.0", "1.10", "1.9", "2.0rc1", "2!0.1", "2.0+cu118", "1.1.1w", "odd..1")
FIELDS = (
    ("conda", "pip"),
    ("numpy", "_x", "Foo_Bar", "foo-bar"),
    ALL[:3],
    VERSIONS,
    (FORGE, TUNA, "https://conda.anaconda.org/pytorch", "file:///srv/c"),
    ("noarch/x-1-a.conda", "linux-64/x-1-a.conda", "linux-64/x-1-b.conda"),
    ("0" * 64, "f" * 64, ""),
    (None, "5" * 32),
    ({}, {"python": ">=3.11"}),
    ("main", "dev"),
)
versions = st.sampled_from(VERSIONS)


def numbered(number: int) -> Package:
    """One of the packages that the fields make: one draw is much quicker than ten."""
    chosen: list[Any] = []
    for values in FIELDS:
        number, index = divmod(number, len(values))
        chosen.append(values[index])
    manager, name, platform, version, base, file, sha256, md5, depends, category = chosen
    return Package(
        name=name,
        version=version,
        manager=manager,
        platform=platform,
        url=f"{base}/{file}",
        sha256=sha256,
        md5=md5,
        depends=depends,
        category=category,
    )


def lock_order(package: Package) -> tuple[str, ...]:
    return package.manager, package.name, package.platform, package.version, package.url, package.category


@st.composite
def packages(draw: st.DrawFn) -> list[Package]:
    """Packages in the order of a lock; in one case of two, with several of one name as in a broken one."""
    found = [numbered(n) for n in draw(st.lists(st.integers(0, prod(map(len, FIELDS)) - 1), max_size=12))]
    broken = draw(st.booleans())
    unique = {lock_order(package)[: 6 if broken else 3]: package for package in found}
    return sorted(unique.values(), key=lock_order)


@given(packages(), packages())
@settings(max_examples=150, deadline=None)
def test_a_diff_applied_gives_the_other_side(a: list[Package], b: list[Package]) -> None:
    made = diff(a, b)
    assert list(apply(made, a)) == b
    assert bool(made) == (a != b)
    json.dumps(diff_json(made))
    for text in (diff_text(made), diff_markdown(made, "a → b")):
        assert text.strip()


@given(packages(), packages())
@settings(max_examples=100, deadline=None)
def test_the_way_back_is_the_mirror_image(a: list[Package], b: list[Package]) -> None:
    opposite = {"up": "down", "down": "up", "added": "removed", "removed": "added"}
    there = [(opposite.get(c.kind, c.kind), c.new, c.old) for c in diff(a, b).changes]
    back = [(c.kind, c.old, c.new) for c in diff(b, a).changes]
    assert there == back


@given(packages(), packages())
@settings(max_examples=100, deadline=None)
def test_no_row_is_lost_in_folding(a: list[Package], b: list[Package]) -> None:
    made = diff(a, b)
    shared = made.before.keys() & made.after.keys()
    told = {
        (row.kind, row.name, platform)
        for group in groups(made)
        for row in group.rows
        for platform in group.platforms
    }
    expected = {
        (
            change.kind,
            change.package.name + (" (pip)" if change.package.manager == "pip" else ""),
            change.package.platform,
        )
        for change in made.changes
        if change.package.platform in shared
    }
    assert told == expected


def test_applying_to_another_set_is_refused() -> None:
    made: Diff = diff([conda("x", "1")], [conda("x", "2")])
    with pytest.raises(ValueError, match="x 1"):
        apply(made, [conda("x", "3")])
    with pytest.raises(ValueError, match="x 1"):
        apply(made, [])


@given(versions, versions, st.sampled_from(["conda", "pip"]))
def test_versions_are_ordered_either_way_round(a: str, b: str, manager: str) -> None:
    assert compare_versions(manager, a, b) == -compare_versions(manager, b, a)  # type: ignore[arg-type]
    assert compare_versions(manager, a, a) == 0  # type: ignore[arg-type]


def test_a_query_is_no_part_of_a_build() -> None:
    url = "https://conda.anaconda.org/conda-forge/linux-64/zlib-1.3.1-hb9d3cd8_2.conda?token=a/b#c/d"
    signed = Package(
        name="zlib", version="1.3.1", manager="conda", platform="linux-64", url=url, sha256="0" * 64
    )
    assert (signed.build, signed.subdir) == ("hb9d3cd8_2", "linux-64")
    assert signed.file_name == "zlib-1.3.1-hb9d3cd8_2.conda"


def test_an_environments_record_may_have_any_url() -> None:
    made, other = (
        Package(name="x", version="1", manager="conda", platform="linux-64", url=url, sha256="")
        for url in ("x-1-0.conda", "")
    )
    assert (made.subdir, made.build) == ("", "0")
    assert apply(diff([made], [other]), [made]) == (other,)
