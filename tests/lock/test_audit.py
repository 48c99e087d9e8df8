"""What an audit finds, and that it finds nothing in a lock that is sound."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envkit.channels.pypi import pypi_files
from envkit.errors import Error, InputError
from envkit.lock.audit import RULES, Facts, audit, parse_host, read_records
from envkit.lock.audit.addresses import is_private_host
from envkit.lock.read import parse_draft
from envkit.matrix import read_matrix
from envkit.model import Check, Host, Report, Severity, Status

ROOT = Path(__file__).parents[2]
CLOUD = "https://conda.anaconda.org"
SHA, MD5 = "c1" * 32, "50" * 16
FORGE = "conda-forge/linux-64"


def conda(
    name: str,
    version: str = "1.0",
    build: str = "h0_0",
    /,
    *,
    channel: str = "conda-forge",
    subdir: str = "linux-64",
    depends: Mapping[str, str] | None = None,
    **changes: Any,
) -> dict[str, Any]:
    platform = changes.get("platform", subdir if subdir != "noarch" else "linux-64")
    return {
        "name": name,
        "version": version,
        "manager": "conda",
        "platform": platform,
        "dependencies": dict(depends or {}),
        "url": f"{CLOUD}/{channel}/{subdir}/{name}-{version}-{build}.conda",
        "hash": {"md5": MD5, "sha256": SHA},
        "category": "main",
        "optional": False,
    } | changes


def pip(name: str, version: str = "1.0", **changes: Any) -> dict[str, Any]:
    file = changes.pop("file", f"{name.replace('-', '_')}-{version}-py3-none-any.whl")
    return {
        "name": name,
        "version": version,
        "manager": "pip",
        "platform": "linux-64",
        "dependencies": {},
        "url": f"{pypi_files()}/aa/bb/{file}",
        "hash": {"sha256": SHA},
        "category": "main",
        "optional": False,
    } | changes


def lock(*packages: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    platforms = list(dict.fromkeys(package["platform"] for package in packages)) or ["linux-64"]
    return {
        "version": 1,
        "metadata": {
            "content_hash": dict.fromkeys(platforms, SHA),
            "channels": [{"url": "conda-forge", "used_env_vars": []}],
            "platforms": platforms,
            "sources": ["environment.yml"],
        }
        | metadata,
        "package": list(packages),
    }


def looked_over(document: object, facts: Facts | None = None) -> Report:
    text = document if isinstance(document, str) else yaml.safe_dump(document, sort_keys=False)
    return audit(parse_draft(text, Path("conda-lock.yml")), facts or Facts())


def of(report: Report, id: str) -> Check:
    return next(check for check in report.checks if check.id == id)


def bad_ids(report: Report) -> set[str]:
    return {check.id for check in report.checks if check.status not in (Status.OK, Status.SKIP)}


def places(check: Check) -> list[str]:
    return [finding["place"] for finding in check.data["findings"]]


SOUND = (
    conda("python", "3.11.9", "h1_0_cpython", depends={"libfoo": ">=1,<2", "__glibc": ">=2.17,<3.0.a0"}),
    conda("libfoo", "1.5"),
)


def test_every_rule_has_an_id_of_its_own_and_a_remedy() -> None:
    ids = [rule.id for rule in RULES]
    assert len(set(ids)) == len(ids)
    assert all(id.startswith("lock.") for id in ids)
    assert [rule.id for rule in RULES if not rule.hint()] == ["lock.needs"]


def test_nothing_is_found_in_a_sound_lock() -> None:
    report = looked_over(lock(*SOUND))
    assert bad_ids(report) == set()
    assert report.ok
    assert json.loads(json.dumps([dict(check.data) for check in report.checks]))


@pytest.mark.parametrize(
    "path", sorted(ROOT.glob("environments/*/conda-lock.yml")), ids=lambda p: p.parent.name
)
def test_the_committed_locks_are_sound(path: Path) -> None:
    variant = read_matrix(ROOT / "environments" / "matrix.yaml").named(path.parent.name)
    assert variant is not None
    facts = Facts(accelerator=variant.accelerator)
    assert bad_ids(audit(parse_draft(path.read_text(), path), facts)) == set()


def test_all_findings_come_at_once_with_their_places() -> None:
    document = lock(
        conda("numpy", url=f"http://user:hunter2@10.0.0.1/{FORGE}/numpy-1.0-h0_0.conda"),
        conda("../evil", version="1/0"),
        conda("scipy", hash={"md5": MD5}),
        conda("pandas", depends={"nothing-here": ""}),
    )
    document["package"][3]["surprise"] = 1
    report = looked_over(document)
    assert bad_ids(report) >= {
        "lock.http",
        "lock.private-address",
        "lock.credentials",
        "lock.names",
        "lock.hashes",
        "lock.closure",
        "lock.unknown-keys",
    }
    assert places(of(report, "lock.names")) == ["package[1].name", "package[1].version"]
    assert places(of(report, "lock.hashes")) == ["package[2].hash.sha256"]
    assert places(of(report, "lock.closure")) == ["package[3].dependencies.nothing-here"]
    assert places(of(report, "lock.unknown-keys")) == ["package[3].surprise"]
    assert "hunter2" not in json.dumps([check.summary + check.detail for check in report.checks])
    assert "hunter2" not in json.dumps([dict(check.data) for check in report.checks])


@pytest.mark.parametrize(
    ("change", "id"),
    [
        ({"url": f"{CLOUD}/{FORGE}/numpy-2.0-h0_0.conda"}, "lock.files"),
        ({"url": f"{CLOUD}/{FORGE}/numpy-1.0-h0_0.exe"}, "lock.files"),
        ({"url": f"{CLOUD}/conda-forge/win-64/numpy-1.0-h0_0.conda"}, "lock.platforms"),
        ({"url": f"ftp://x.example/{FORGE}/numpy-1.0-h0_0.conda"}, "lock.urls"),
        ({"url": f"{CLOUD}/{FORGE}/../../numpy-1.0-h0_0.conda"}, "lock.urls"),
        ({"url": f"{CLOUD}/{FORGE}%2fnumpy-1.0-h0_0.conda"}, "lock.urls"),
        ({"url": f"{CLOUD}:port/{FORGE}/numpy-1.0-h0_0.conda"}, "lock.urls"),
        ({"url": f"https://[::1/{FORGE}/numpy-1.0-h0_0.conda"}, "lock.urls"),
        ({"hash": {"md5": MD5, "sha256": "c1" * 31}}, "lock.hashes"),
        ({"hash": {"md5": "50", "sha256": SHA}}, "lock.hashes"),
        ({"hash": {"sha256": SHA}}, "lock.md5"),
        ({"hash": "none"}, "lock.format"),
        ({"version": 1.0}, "lock.format"),
        ({"manager": "npm"}, "lock.format"),
        ({"name": "num\u202epy"}, "lock.names"),
        ({"dependencies": {"python": "\u001b[31m>=3"}}, "lock.names"),
        ({"url": f"https://files.example.org/{FORGE}/numpy-1.0-h0_0.conda"}, "lock.hosts"),
        ({"url": f"{CLOUD}/t/tk-12345678-9abc/{FORGE}/numpy-1.0-h0_0.conda"}, "lock.credentials"),
        ({"url": f"https://me:secret@repo.example.org/{FORGE}/numpy-1.0-h0_0.conda"}, "lock.credentials"),
        ({"url": f"{CLOUD}/{FORGE}/numpy-1.0-h0_0.conda?X-Amz-Signature=0a1b"}, "lock.credentials"),
        ({"url": f"file:///home/me/{FORGE}/numpy-1.0-h0_0.conda"}, "lock.local-files"),
        (
            {"url": f"https://mirrors.tuna.tsinghua.edu.cn/anaconda/cloud/{FORGE}/numpy-1.0-h0_0.conda"},
            "lock.mirrors",
        ),
        ({"url": "https://repo.anaconda.com/pkgs/main/linux-64/numpy-1.0-h0_0.conda"}, "lock.licensed"),
        (
            {"url": "https://mirrors.tuna.tsinghua.edu.cn/anaconda/pkgs/main/linux-64/numpy-1.0-h0_0.conda"},
            "lock.licensed",
        ),
        ({"url": f"{CLOUD}/anaconda/linux-64/numpy-1.0-h0_0.conda"}, "lock.licensed"),
        ({"dependencies": {"__win": ""}}, "lock.closure"),
        ({"dependencies": {"python": ">=3.12"}}, "lock.constraints"),
        ({"dependencies": {"python": "3.11.* *_pypy"}}, "lock.constraints"),
        ({"dependencies": {"python": ">=3,<junk|"}}, "lock.constraints"),
    ],
)
def test_one_fault_in_one_package(change: dict[str, Any], id: str) -> None:
    report = looked_over(lock(*SOUND, conda("numpy", **change)))
    assert of(report, id).status in (Status.FAIL, Status.WARN), report
    assert of(report, id).hint


def test_no_signature_is_shown() -> None:
    change = {"url": f"{CLOUD}/t/tk-12345678-9abc/{FORGE}/numpy-1.0-h0_0.conda?X-Amz-Signature=0a1b"}
    report = looked_over(lock(conda("numpy", **change)))
    told = json.dumps([[check.summary, check.detail, dict(check.data)] for check in report.checks])
    assert "tk-1234" not in told and "0a1b" not in told


def test_a_variable_in_the_place_of_a_token_is_no_secret() -> None:
    url = f"https://$USER:${{TOKEN}}@repo.example.org/t/$KEY/{FORGE}/numpy-1.0-h0_0.conda"
    report = looked_over(lock(conda("numpy", url=url)), Facts(allowed_hosts=frozenset({"repo.example.org"})))
    assert of(report, "lock.credentials").status is Status.OK
    assert of(report, "lock.hosts").status is Status.OK


def test_channels_that_are_urls_are_looked_at_too() -> None:
    channels = [
        {"url": "http://192.168.1.1/conda-forge", "used_env_vars": []},
        {"url": "pkgs/main", "used_env_vars": []},
    ]
    report = looked_over(lock(conda("numpy"), channels=channels))
    assert places(of(report, "lock.http")) == ["metadata.channels[0]"]
    assert places(of(report, "lock.private-address")) == ["metadata.channels[0]"]
    assert places(of(report, "lock.licensed")) == ["metadata.channels[1]"]


PRIVATE = """
127.0.0.1 10.1.2.3 172.16.0.1 192.168.0.1 169.254.169.254 100.64.0.1 0.0.0.0
0 127.1 2130706433 0x7f000001 0x7f.1 0177.0.0.1 017700000001 127.0.0.1. %31%32%37.0.0.1 １２７.0.0.1
localhost LOCALHOST. nexus mirror.local conda.internal
::1 [::1] fe80::1%eth0 fd00::1 :: ::ffff:10.0.0.1 ::ffff:7f00:1 ::7f00:1 64:ff9b::7f00:1 2002:7f00:1::
"""


@pytest.mark.parametrize("host", PRIVATE.split())
def test_private_hosts_in_every_notation(host: str) -> None:
    assert is_private_host(host)


@pytest.mark.parametrize(
    "host", ["conda.anaconda.org", "8.8.8.8", "2001:4860:4860::8888", "10.example.org", "134744072"]
)
def test_public_hosts(host: str) -> None:
    assert not is_private_host(host)


def test_a_name_may_stand_there_once() -> None:
    again = conda("PyYAML"), conda("pyyaml")
    assert places(of(looked_over(lock(*again)), "lock.twice")) == ["package[1].name"]
    two = conda("numpy"), conda("numpy", "2.0")
    assert of(looked_over(lock(*two)), "lock.twice").severity is Severity.FATAL
    for_two_categories = conda("numpy"), conda("numpy", category="dev")
    assert looked_over(lock(*for_two_categories)).ok


def test_one_package_by_conda_and_by_pip() -> None:
    report = looked_over(lock(conda("numpy"), pip("NumPy")))
    assert of(report, "lock.conda-and-pip").severity is Severity.HIGH
    report = looked_over(
        lock(conda("pytorch", "2.3.1", "py3.11_cpu_0", channel="pytorch"), pip("torch", "2.3.1"))
    )
    assert of(report, "lock.conda-and-pip").severity is Severity.FATAL
    assert looked_over(lock(conda("pytorch", "2.3.1", "py3.11_cpu_0", channel="pytorch"), pip("numpy"))).ok


def test_pip_dependencies() -> None:
    wanted = {"numpy": ">=1.21,<2.0 || >=2.1", "absent": "*"}
    packages = conda("numpy", "2.0.1"), pip("pandas", dependencies=wanted)
    check = of(looked_over(lock(*packages)), "lock.pip-closure")
    assert check.status is Status.WARN
    assert places(check) == ["package[1].dependencies.numpy", "package[1].dependencies.absent"]
    packages = conda("numpy", "2.1"), pip("pandas", dependencies={"NumPy": wanted["numpy"]})
    assert of(looked_over(lock(*packages)), "lock.pip-closure").status is Status.OK


# --- CUDA and PyTorch ------------------------------------------------------------------------------------

TORCH_118 = conda("pytorch", "2.3.1", "py3.11_cuda11.8_cudnn8.7.0_0", channel="pytorch")
TORCH_CPU = conda("pytorch", "2.3.1", "py3.11_cpu_0", channel="pytorch")


def test_the_build_that_was_asked_for() -> None:
    cuda, cpu = lock(TORCH_118), lock(TORCH_CPU)
    assert of(looked_over(cuda, Facts(accelerator="11.8")), "lock.accelerator").status is Status.OK
    assert of(looked_over(cpu, Facts(accelerator="11.8")), "lock.accelerator").status is Status.FAIL
    assert of(looked_over(cuda, Facts(accelerator="12.1")), "lock.accelerator").status is Status.FAIL
    assert of(looked_over(cuda, Facts(accelerator="cpu")), "lock.accelerator").status is Status.FAIL
    told = of(looked_over(cuda), "lock.accelerator")
    assert told.status is Status.SKIP and told.data["builds"] == {"linux-64": "11.8"}


@pytest.mark.parametrize(
    ("others", "fine"),
    [
        (
            [
                conda("cuda-version", "11.8"),
                conda("libcublas", "11.11.3.6"),
                conda("libcusparse", "11.7.5.86"),
            ],
            True,
        ),
        ([conda("libcusolver", "11.4.1.48"), conda("libcufft", "10.9.0.58"), conda("cudnn", "9.1.0")], True),
        ([conda("cuda-version", "12.6")], False),
        ([conda("libcublas", "12.1.0.26")], False),
        ([pip("nvidia-cublas-cu12", "12.1.3.1")], False),
        ([pip("cupy-cuda12x", "13.0")], False),
        ([pip("nvidia-cuda-runtime", "13.0.48")], False),
        ([conda("magma", "2.8", "cuda126_h0_0")], False),
        ([conda("torchvision", "0.18.1", "py311_cu121", channel="pytorch")], False),
    ],
)
def test_one_cuda_major(others: list[dict[str, Any]], fine: bool) -> None:
    check = of(looked_over(lock(TORCH_118, *others)), "lock.cuda-major")
    assert (check.status is Status.OK) == fine


@pytest.mark.parametrize(
    ("torch", "other", "fine"),
    [
        (TORCH_118, conda("torchvision", "0.18.1", "py311_cu118", channel="pytorch"), True),
        (TORCH_118, conda("torchvision", "0.18.0", "py311_cu118", channel="pytorch"), False),
        (TORCH_118, conda("torchvision", "0.18.1", "py311_cpu", channel="pytorch"), False),
        (TORCH_118, conda("torchvision", "0.18.1", "py311_cu121", channel="pytorch"), False),
        (TORCH_118, conda("torchaudio", "2.3.1", "py311_cu118", channel="pytorch"), True),
        (TORCH_118, conda("torchaudio", "2.2.0", "py311_cu118", channel="pytorch"), False),
        (
            conda("pytorch", "2.7.1", "cuda126_py311_h0_0"),
            conda("torchvision", "0.22.0", "cuda126_py311_h0_0"),
            True,
        ),
        (
            conda("pytorch", "2.7.1", "cuda126_py311_h0_0"),
            conda("torchvision", "0.21.0", "cuda126_py311_h0_0"),
            False,
        ),
        (pip("torch", "2.3.0+cu121"), pip("torchvision", "0.18.0+cu121"), True),
        (pip("torch", "2.3.0+cu121"), pip("torchvision", "0.18.0+cpu"), False),
        (pip("torch", "2.13.0"), pip("torchaudio", "2.11.0"), True),
        (pip("torch", "2.13.0"), pip("torchvision", "0.27.0"), False),
    ],
)
def test_pairs(torch: dict[str, Any], other: dict[str, Any], fine: bool) -> None:
    check = of(looked_over(lock(torch, other)), "lock.torch-pairs")
    assert (check.status is Status.OK) == fine, check


def test_a_torch_that_is_not_on_record_is_not_called_good() -> None:
    document = lock(pip("torch", "9.0.0"), pip("torchvision", "3.0"))
    assert of(looked_over(document), "lock.torch-pairs").status is Status.SKIP


@pytest.mark.parametrize(
    ("packages", "found"),
    [
        ([TORCH_118, conda("mkl", "2024.2.2")], "iJIT"),
        ([TORCH_118, conda("mkl", "2023.2.0")], None),
        ([pip("torch", "2.2.2"), pip("numpy", "2.0.0")], "NumPy"),
        ([conda("pytorch", "2.2.2", "cpu_generic_py311_h0_0"), conda("numpy", "2.0.0")], "NumPy"),
        ([pip("torch", "2.3.0"), pip("numpy", "2.0.0")], None),
        (
            [
                conda("pytorch", "1.13.1", "py3.9_cuda11.7_cudnn8.5.0_0", channel="pytorch"),
                conda("libcusparse", "12.0"),
            ],
            "cusparse",
        ),
        (
            [
                conda("pytorch", "2.5.1", "cpu_generic_py311_h0_0"),
                conda("libopenblas", "0.3", "pthreads_h0_0"),
            ],
            "OpenBLAS",
        ),
    ],
)
def test_known_bad_combinations(packages: list[dict[str, Any]], found: str | None) -> None:
    check = of(looked_over(lock(*packages)), "lock.known-bad")
    assert (check.status is not Status.OK) == (found is not None)
    assert found is None or found in check.detail


# --- machines --------------------------------------------------------------------------------------------


def on(document: dict[str, Any], machine: str) -> Report:
    return looked_over(document, Facts(host=parse_host(machine), named=True))


def test_what_a_lock_needs() -> None:
    document = lock(
        TORCH_118,
        conda("libcurand", "10.3.10.19"),
        conda("new", depends={"__glibc": ">=2.28,<3.0.a0", "__cuda": ">=12"}),
        pip("fast", file="fast-1.0-cp311-cp311-manylinux_2_34_x86_64.manylinux_2_31_x86_64.whl"),
        conda("_x86_64-microarch-level", "3", "2_x86_64_v3", subdir="noarch"),
    )
    needs = of(looked_over(document), "lock.needs").data["needs"]["linux-64"]
    assert needs == {"glibc": "2.31", "CUDA": "12", "driver": "450.80.02", "cpu": "x86_64_v3"}


@pytest.mark.parametrize(
    ("machine", "failed"),
    [
        ("glibc=2.17,driver=535.104,gpu=8.6", set()),
        ("glibc=2.12,driver=535.104,gpu=8.6", {"lock.host-glibc"}),
        ("glibc=2.17,driver=440.33,gpu=8.6", {"lock.host-driver"}),
        ("glibc=2.17,driver=535.104,gpu=8.6,gpu=12.0", {"lock.host-gpu"}),
        ("platform=osx-arm64", {"lock.host-platform"}),
        ("cuda=11.4,gpu=9.0", set()),
        ("cuda=10.2", {"lock.host-driver"}),
    ],
)
def test_whether_a_machine_can_run_it(machine: str, failed: set[str]) -> None:
    document = lock(TORCH_118, conda("libfoo", depends={"__glibc": ">=2.17,<3.0.a0"}))
    assert bad_ids(on(document, machine)) == failed


def test_what_is_not_known_of_a_machine_is_skipped() -> None:
    report = on(lock(TORCH_118, conda("libfoo", depends={"__glibc": ">=2.17"})), "platform=linux-64")
    skipped = {check.id for check in report.checks if check.status is Status.SKIP}
    assert skipped >= {"lock.host-glibc", "lock.host-driver", "lock.host-gpu"}
    document = lock(conda("pytorch", "2.7.1", "cuda126_py311_h0_0"))
    assert of(on(document, "driver=570.1,gpu=8.6"), "lock.host-gpu").status is Status.SKIP
    # No build of it is on record, but its toolkit makes no code for such a GPU.
    assert of(on(document, "driver=570.1,gpu=12.0"), "lock.host-gpu").status is Status.FAIL


def test_the_system_and_the_processor() -> None:
    document = lock(
        conda("old", depends={"__linux": ">=4.18"}), conda("_x86_64-microarch-level", "3", "2_x86_64_v3")
    )
    assert bad_ids(on(document, "system=3.10,cpu=x86_64_v2")) == {"lock.host-system", "lock.host-cpu"}
    assert bad_ids(on(document, "system=5.14,cpu=4")) == set()
    mac = lock(conda("app", subdir="osx-arm64", depends={"__osx": ">=11.0"}))
    assert bad_ids(on(mac, "platform=osx-arm64,system=10.15")) == {"lock.host-system"}


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("foo=1", "platform="),
        ("glibc", "platform="),
        ("", "platform="),
        ("gpu=abc", "gpu=8.6"),
        ("driver=new", "driver=535.104"),
        ("glibc=2.17,glibc=2.28", "only gpu"),
        ("cpu=v9", "x86_64_v3"),
    ],
)
def test_a_machine_that_is_none(text: str, word: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_host(text)
    assert word in caught.value.hint


def test_a_machine_in_words() -> None:
    host = parse_host("glibc=2.17, driver=535.104, gpu=8.6, gpu=9.0, cpu=x86_64_v3")
    assert (host.platform, host.glibc, host.driver, host.driver_cuda) == (
        "linux-64",
        "2.17",
        "535.104",
        "12.2",
    )
    assert [gpu.capability for gpu in host.gpus] == ["8.6", "9.0"]
    assert host.cpu_level == 3
    assert parse_host("platform=osx-arm64") == Host(platform="osx-arm64")


# --- the channels' own records ---------------------------------------------------------------------------


def recorded(folder: Path, document: dict[str, Any], *records: dict[str, Any]) -> Report:
    subdir = folder / "conda-forge" / "linux-64"
    subdir.mkdir(parents=True)
    listed = {
        f"{record['name']}-{record['version']}-{record['build']}.conda": {
            "build_number": 0,
            "subdir": "linux-64",
            "depends": [],
            "sha256": SHA,
            "md5": MD5,
        }
        | record
        for record in records
    }
    (subdir / "repodata.json").write_text(
        json.dumps({"info": {"subdir": "linux-64"}, "packages": {}, "packages.conda": listed})
    )
    draft = parse_draft(yaml.safe_dump(document), Path("conda-lock.yml"))
    facts = Facts(records=read_records(draft, lambda channel, own: folder / channel / own / "repodata.json"))
    return audit(draft, facts)


def record(name: str, version: str = "1.0", build: str = "h0_0", **more: Any) -> dict[str, Any]:
    return {"name": name, "version": version, "build": build} | more


def test_the_channels_records_tell_what_the_format_loses(tmp_path: Path) -> None:
    document = lock(conda("scipy"), conda("numpy", "2.0"), conda("blas", "1.0", "mkl"), conda("gone"))
    report = recorded(
        tmp_path,
        document,
        record(
            "scipy",
            depends=["blas * openblas", "numpy >=1", "__cuda >=12"],
            constrains=["numpy <2", "other >=3"],
        ),
        record("numpy", "2.0", sha256="ab" * 32),
        record("blas", "1.0", "mkl"),
    )
    assert places(of(report, "lock.builds")) == ["package[0]"]
    assert "blas * openblas" in of(report, "lock.builds").detail
    assert "numpy <2" in of(report, "lock.constrains").detail
    assert places(of(report, "lock.records")) == ["package[1].hash.sha256", "package[3].url"]
    assert of(report, "lock.records").severity is Severity.FATAL
    assert of(report, "lock.needs").data["needs"]["linux-64"]["CUDA"] == "12"


def test_records_that_agree(tmp_path: Path) -> None:
    document = lock(conda("scipy"), conda("numpy", "2.0"))
    report = recorded(
        tmp_path,
        document,
        record("scipy", depends=["numpy >=1"], constrains=["other >=3"]),
        record("numpy", "2.0"),
    )
    ids = ("lock.records", "lock.builds", "lock.constrains")
    assert [of(report, id).status for id in ids] == [Status.OK] * 3


# --- whatever a stranger writes --------------------------------------------------------------------------

SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=12))
ODD = st.recursive(
    SCALARS | st.sampled_from(["conda", "pip", "linux-64", "https://[::1", "http://0x7f.1:x/a", "$A:b@c"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_no_document_makes_an_audit_fall_over(data: st.DataObject) -> None:
    document = copy.deepcopy(lock(*SOUND, pip("numpy"), TORCH_118))
    for _each in range(data.draw(st.integers(1, 4))):
        spot: Any = document
        while isinstance(spot, dict | list) and spot:
            keys = list(spot) if isinstance(spot, dict) else list(range(len(spot)))
            key = data.draw(st.sampled_from(keys))
            if data.draw(st.booleans()) or not isinstance(spot[key], dict | list):
                spot[key] = data.draw(ODD)
                break
            spot = spot[key]
    facts = Facts(accelerator="11.8", host=parse_host("glibc=2.17,driver=535.1,gpu=8.6,cpu=2,system=4.18"))
    try:
        report = looked_over(yaml.safe_dump(document, allow_unicode=True), facts)
    except InputError:
        return  # no conda-lock file of the first format, or no YAML
    assert len(report.checks) == len(RULES)
    assert not [check for check in report.checks if check.status is Status.CRASH]
    json.dumps([dict(check.data) for check in report.checks])


def test_what_conda_lock_refuses_is_found() -> None:
    """Its models take no null for a mapping, no text for a flag, and texts only as custom metadata."""
    report = looked_over(
        lock(
            conda("a", dependencies=None),
            conda("b", optional="perhaps"),
            custom_metadata={"made-by": "us", "number": 3},
        )
    )
    check = of(report, "lock.format")
    assert check.status is Status.FAIL
    expected = {"package[0].dependencies", "package[1].optional", "metadata.custom_metadata.number"}
    assert set(places(check)) == expected
    assert (
        of(looked_over(lock(conda("a"), custom_metadata={"made-by": "us"})), "lock.format").status
        is Status.OK
    )


def test_channels_that_cannot_be_read_leave_the_lock_unchecked_and_say_so() -> None:
    def unread(channel: str, subdir: str) -> Path:
        raise Error("no such place")

    draft = parse_draft(yaml.safe_dump(lock(conda("a"))), Path("conda-lock.yml"))
    report = audit(draft, Facts(records=read_records(draft, unread)))
    assert "not checked: " in str(of(report, "lock.records").data)
    for id in ("lock.builds", "lock.constrains"):
        assert of(report, id).status is Status.SKIP
        assert "not checked" in of(report, id).summary
