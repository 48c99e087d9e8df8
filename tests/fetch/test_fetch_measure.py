"""Mirrors are measured by small real requests, within seconds; it is remembered, and gives their order."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard
from faultyserver import Fault, Server
from watching import IMPATIENT, Notes

from envkit.channels import Carriage, Mirror, Table, read_condarc, table
from envkit.fetch import Routes, Session, Trust, repodata
from envkit.fetch.access import Access
from envkit.fetch.measure import Measurement, Target, measure, targets
from envkit.fetch.measured import LASTS, Memory, Ranking, network
from envkit.fetch.routes import routes

INDEX = json.dumps({"info": {"subdir": "noarch"}, "packages": {}, "packages.conda": {}}).encode()
PACKED = zstandard.compress(INDEX)
PATH = "conda-forge/noarch/repodata.json.zst"


def mirror(name: str, url: str) -> Mirror:
    return Mirror(
        id=name,
        name=name.title(),
        host=url.partition("://")[2],
        channels={"conda-forge": Carriage(carried="yes", base=url)},
    )


def facts(**urls: str) -> Table:
    """A table whose `auto` knows these servers and no others."""
    rows = {name: mirror(name, url) for name, url in urls.items()}
    return replace(table(), mirrors={**rows, "anaconda": table().upstream}, auto=tuple(rows))


def chosen(memory: Path, **urls: str) -> Routes:
    """`auto` over these servers alone."""
    made = routes("auto", only=True, facts=facts(**urls), memory=memory)
    session = Session(IMPATIENT, trust=Trust(hosts=frozenset(urls.values())), ranking=made.session.ranking)
    return replace(made, session=session)


def session(*urls: str) -> Session:
    return Session(IMPATIENT, trust=Trust(hosts=frozenset(urls)))


def order(made: Routes) -> list[str]:
    return [source.place for source in made.sources("conda-forge", "noarch")]


def test_what_is_measured(serve: Callable[..., Server], dead_url: str) -> None:
    fast, slow = serve({PATH: PACKED}), serve({PATH: PACKED})
    slow.delay = 0.4
    fast.faults[PATH] = Fault(headers={"Last-Modified": "Mon, 30 Nov 2026 12:00:00 GMT"})
    page = serve()
    page.everywhere = Fault(body=b"<html>moved</html>")
    missing = serve()
    urls = {"fast": fast.url, "slow": slow.url, "page": page.url, "missing": missing.url, "dead": dead_url}
    wanted = targets(facts(**urls).mirrors[name] for name in urls)
    used = session(*urls.values())
    found = {one.id: one for one in measure(wanted, used)}
    assert found["fast"].answered and found["slow"].answered
    assert found["fast"].cost < found["slow"].cost < found["dead"].cost == float("inf")
    assert found["slow"].latency is not None and found["slow"].latency >= 0.4
    assert found["fast"].changed == 1796040000.0
    assert found["page"].problem and found["missing"].problem.startswith("HTTP 404")
    assert "refused" in found["dead"].problem
    assert fast.asked("zst")[0]["Range"] == "bytes=0-262143"
    assert used.has_answered(fast.url) and not used.has_answered(dead_url)


def test_a_silent_mirror_costs_no_more_than_the_time_allowed(serve: Callable[..., Server]) -> None:
    quick, silent = serve({PATH: PACKED}), serve({PATH: PACKED})
    silent.faults[PATH] = Fault(hang=0)
    began = time.monotonic()
    wanted = (Target(id="silent", url=f"{silent.url}/{PATH}"), Target(id="quick", url=f"{quick.url}/{PATH}"))
    (first, second) = measure(wanted, session(silent.url, quick.url), seconds=0.8)
    assert time.monotonic() - began < 3
    assert not first.answered and first.problem
    assert second.answered


def test_no_host_is_measured_that_nobody_trusts(serve: Callable[..., Server]) -> None:
    server = serve({PATH: PACKED})
    (found,) = measure((Target(id="x", url=f"{server.url}/{PATH}"),), session())
    assert not found.answered and found.problem
    assert server.connections == 0


def test_auto_asks_the_fastest_first_and_remembers_it(
    serve: Callable[..., Server], tmp_path: Path, notes: Notes
) -> None:
    slow, fast = serve({PATH: PACKED}), serve({PATH: PACKED})
    slow.delay = 0.3
    urls = {"slow": slow.url, "fast": fast.url}
    made = chosen(tmp_path / "mirrors.json", **urls)
    assert order(made) == [slow.host, fast.host], "nothing is asked before something is to be fetched"
    assert slow.connections == fast.connections == 0
    repodata("conda-forge", "noarch", routes=made, cache=tmp_path / "c", observer=notes)
    assert order(made) == [fast.host, slow.host]
    assert len(slow.asked("zst")) == 1 and len(fast.asked("zst")) == 2
    assert [line for line in notes.lines if fast.host in line and slow.host in line]
    again = chosen(tmp_path / "mirrors.json", **urls)
    assert order(again) == [fast.host, slow.host]
    repodata("conda-forge", "noarch", routes=again, cache=tmp_path / "c2", observer=notes)
    assert len(slow.asked("zst")) == 1


def test_nothing_is_measured_where_one_place_will_do(serve: Callable[..., Server], tmp_path: Path) -> None:
    server = serve({PATH: PACKED})
    assert chosen(tmp_path / "m.json", one=server.url).session.ranking is None
    assert routes("tuna").session.ranking is None
    assert routes("official").session.ranking is None


def test_the_users_own_place_stays_first_and_is_not_measured() -> None:
    ranking = Ranking(wanted=(), ids={"a": "a", "b": "b"}, _costs={"a": 2.0, "b": 1.0})
    assert ranking.arrange(["own", "a", "a", "b", "other"]) == (0, 3, 1, 2, 4)
    assert ranking.arrange(["a"]) == (0,)


def test_a_mirror_that_a_condarc_names_is_not_moved_by_its_speed(tmp_path: Path) -> None:
    (tmp_path / ".condarc").write_text(
        "custom_channels: {pytorch: 'https://mirrors.tuna.tsinghua.edu.cn/anaconda/cloud'}\n"
    )
    condarc = read_condarc({}, [tmp_path / ".condarc"])
    made = routes("auto", condarc=condarc, memory=tmp_path / "m.json")
    ranking = made.session.ranking
    assert ranking is not None and ranking.memory is not None
    assert [target.id for target in ranking.wanted] == ["anaconda", "nju", "sustech"]
    fast = replace(row("nju"), speed=9e9)
    ranking.memory.write([row("anaconda"), fast, row("sustech"), replace(row("tuna"), latency=9.0)])
    again = routes("auto", condarc=condarc, memory=tmp_path / "m.json")
    assert [source.place for source in again.sources("pytorch")][:2] == [
        "mirrors.tuna.tsinghua.edu.cn",
        "mirror.nju.edu.cn",
    ]


def test_where_nobody_answers_the_order_is_the_tables(
    serve: Callable[..., Server], tmp_path: Path, dead_url: str, notes: Notes
) -> None:
    ranking = Ranking(
        wanted=(Target(id="a", url=f"{dead_url}/{PATH}"), Target(id="b", url=f"{dead_url}/b/{PATH}")),
        ids={"a": "a", "b": "b"},
        memory=Memory(path=tmp_path / "m.json", network="here"),
        seconds=0.5,
    )
    assert ranking.arrange(["a", "b"], session(dead_url), notes) == (0, 1)
    assert not (tmp_path / "m.json").exists()
    assert notes.lines == []


def test_offline_measures_nothing(serve: Callable[..., Server], tmp_path: Path) -> None:
    one, two = serve({PATH: PACKED}), serve({PATH: PACKED})
    made = routes("auto", only=True, offline=True, facts=facts(a=one.url, b=two.url), memory=tmp_path / "m")
    with pytest.raises(Exception, match="offline"):
        repodata("conda-forge", "noarch", routes=made, cache=tmp_path / "c")
    assert one.connections == two.connections == 0


def row(name: str, age: float = 0.0) -> Measurement:
    return Measurement(id=name, host=name, latency=0.1, speed=1e6, at=time.time() - age)


def test_memory_is_for_one_network_and_one_day(tmp_path: Path) -> None:
    path = tmp_path / "state" / "mirrors.json"
    here, there = Memory(path=path, network="here"), Memory(path=path, network="there")
    here.write([row("a"), row("old", LASTS + 1)])
    there.write([row("b")])
    assert [one.id for one in here.read()] == ["a"]
    assert [one.id for one in there.read()] == ["b"]
    here.write([row("c")])
    assert [one.id for one in here.read()] == ["a", "c"]
    for damage in ("", "[]", "{", '{"schema": 1, "networks": {"here": [{"x": 1}]}}', '{"schema": 2}'):
        path.write_text(damage)
        assert here.read() == ()
        here.write([row("a")])
        assert [one.id for one in here.read()] == ["a"]


def proc(root: Path, gateway: str = "0102A8C0", hardware: str = "aa:bb:cc:dd:ee:ff") -> Path:
    net = root / "proc/net"
    net.mkdir(parents=True, exist_ok=True)
    net.joinpath("route").write_text(
        "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
        f"wlan0\t00000000\t{gateway}\t0003\t0\t0\t600\t00000000\t0\t0\t0\n"
        "wlan0\t0002A8C0\t00000000\t0001\t0\t0\t600\t00FFFFFF\t0\t0\t0\n"
    )
    net.joinpath("arp").write_text(
        "IP address       HW type     Flags       HW address            Mask     Device\n"
        f"192.168.2.1      0x1         0x2         {hardware}     *        wlan0\n"
    )
    return root


def test_a_network_is_told_by_its_gateway_and_its_proxies(tmp_path: Path) -> None:
    home = network(root=proc(tmp_path / "a"), environ={})
    assert home == network(root=proc(tmp_path / "b"), environ={})
    others = {
        home,
        network(root=proc(tmp_path / "c", gateway="0103A8C0"), environ={}),
        network(root=proc(tmp_path / "d", hardware="00:11:22:33:44:55"), environ={}),
        network(root=tmp_path / "a", environ={"HTTPS_PROXY": "http://proxy:1"}),
        network(Access(proxies={"https": "http://proxy:1"}), root=tmp_path / "a", environ={}),
        network(root=tmp_path / "nothing", environ={}),
    }
    assert len(others) == 6
    secret = network(root=tmp_path / "a", environ={"HTTPS_PROXY": "http://me:secret@proxy:1"})
    assert secret == network(root=tmp_path / "a", environ={"HTTPS_PROXY": "http://proxy:1"})
