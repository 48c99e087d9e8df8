"""Before anything is done: what the machine cannot run, what would be lost, who uses it, what is hidden."""

from __future__ import annotations

import os
import pickle
import subprocess
from pathlib import Path

import pytest
from test_drift import real_lock
from tinychannel import PLATFORM, SITE_PACKAGES, TinyPackage, channel_files, this_python

from envkit import fetch
from envkit.errors import Error, InputError
from envkit.host import read_host
from envkit.install import busy, names, plan, read_environment
from envkit.install.busy import User, users
from envkit.install.drift.packages import said
from envkit.install.sync import sync
from envkit.matrix import find_root
from envkit.model import Host, Lock


def demanding(tmp_path, *depends):
    """A lock whose package needs something of the machine, on a server that must not be asked."""
    package = TinyPackage("demanding", platform=PLATFORM, depends=depends)
    path = tmp_path / "demanding.yml"
    path.write_text(package.sha256)
    return Lock(
        path=path, digest="d" * 64, channels=("conda-forge",), platforms=(PLATFORM,),
        packages=(package.locked(),),
    ), channel_files(package)  # fmt: skip


@pytest.mark.parametrize(
    ("need", "host", "said"),
    [
        ("__glibc >=2.34", Host(platform=PLATFORM, glibc="2.17"), r"glibc >=2\.34.*2\.17"),
        ("__linux >=6.1", Host(platform=PLATFORM, system="4.18", glibc="2.28"), r"linux >=6\.1.*4\.18"),
    ],
)
def test_a_machine_that_cannot_run_it_fetches_nothing(installer, tmp_path, server, need, host, said):
    lock, server.files = demanding(tmp_path, need)
    routes = fetch.routes(server.url, only=True)
    with pytest.raises(Error, match=said) as caught:
        installer(lock, routes=routes, host=host)
    assert caught.value.hint
    assert server.log == [], "before the first byte"
    assert installer.beside() == []
    assert not installer.prefix.exists()
    installer(lock, routes=routes, host=Host(platform=PLATFORM, glibc="2.40", system="6.8"))
    assert server.log


def cuda_lock(tmp_path):
    torch = TinyPackage("pytorch", "2.1.0", "py3.11_cuda12.1_cudnn8.9.2_0", platform=PLATFORM)
    path = tmp_path / "cuda.yml"
    path.write_text(torch.sha256)
    return Lock(
        path=path, digest="d" * 64, channels=("pytorch",), platforms=(PLATFORM,),
        packages=(torch.locked("https://conda.anaconda.org/pytorch"),),
    ), channel_files(torch, channel="pytorch")  # fmt: skip


def test_the_driver_is_too_old_unless_a_user_knows_better(installer, tmp_path, server):
    lock, server.files = cuda_lock(tmp_path)
    routes = fetch.routes(server.url, only=True)
    old = {
        "platform": PLATFORM,
        "glibc": "2.40",
        "system": "6.8",
        "driver": "450.80.02",
        "driver_cuda": "11.0",
    }
    with pytest.raises(Error, match=r"driver 450\.80\.02 is older than"):
        installer(lock, routes=routes, host=Host(**old))
    assert server.log == []
    installer(lock, routes=routes, host=Host(**old, override_cuda="12.4"))
    without = Host(platform=PLATFORM, glibc="2.40", system="6.8")
    installer(lock, routes=routes, host=without)  # on a login node there is none


def test_what_was_added_by_pip_is_named_before_it_goes(channel, installer):
    old = channel.lock(*channel.packages[:2], path=channel.root / "old.yml")
    made = installer(old)
    info = made.prefix / SITE_PACKAGES / "mine-3.1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 3.1\n")
    (info / "INSTALLER").write_text("pip\n")
    installer.notes.clear()
    installer(channel.lock())
    (told,) = (note for note in installer.notes if "mine" in note)
    assert "mine 3.1" in told
    assert "matrix.yaml" in told
    assert not info.exists()
    installer.notes.clear()
    installer(old)
    assert not any("pip" in note for note in installer.notes)


def test_a_change_leads_from_what_is_there_to_what_is_wanted(channel, installer):
    installer(channel.lock())
    (old,) = [package for package in channel.packages if package.name == "data"]
    newer = channel.add(TinyPackage("data", version="2.0", noarch="generic"))
    others = [package for package in channel.packages if package.name != "data"]
    found = sync(installer.prefix, plan(channel.lock(*others, newer)))
    (change,) = found.change
    assert change.old is not None
    assert change.new is not None
    assert (change.old.version, change.new.version) == (old.version, "2.0") == ("1.0", "2.0")
    assert said(found.change) == ("data 1.0 -> 2.0",)


def test_what_the_old_lock_had_by_pip_is_nobody_s_addition(pip_channel, wheel, installer, tmp_path):
    installer(real_lock(tmp_path / "old.yml", *pip_channel.packages, wheel))
    installer.notes.clear()
    found = sync(installer.prefix, plan(pip_channel.lock()))
    assert [package.name for package in found.remove] == ["Tiny_Wheel"]
    assert found.added == ()
    installer(pip_channel.lock())
    assert not any("tiny" in note for note in installer.notes)


def as_nobody(function):
    """What a function returns, or the exception it raises, in a child that is another user."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.setresgid(65534, 65534, 65534)
            os.setresuid(65534, 65534, 65534)
            try:
                result = function()
            except Exception as problem:
                result = (type(problem).__name__, str(problem), getattr(problem, "hint", ""))
            os.write(writing, pickle.dumps(result))
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        raw = pipe.read()
    os.waitpid(child, 0)
    return pickle.loads(raw)


root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")


@root
def test_processes_of_other_users_are_named(environment):
    script = environment.prefix / "bin" / "greet"
    child = subprocess.Popen(["/bin/sh", "-c", "sleep 60; exit", str(script)], cwd="/")
    try:
        assert users(environment.prefix) == ()  # root sees that it only has the name
        found = as_nobody(lambda: users(environment.prefix))
        assert [user.pid for user in found] == [child.pid]
        assert found[0].owner == "root"
        assert str(found[0]).endswith("of user root)")
    finally:
        child.kill()
        child.wait()


def test_a_process_of_somebody_without_a_name():
    assert str(User(pid=7, command="python x.py", owner="1234")) == "7 (python x.py, of user 1234)"
    assert str(User(pid=7, command="python x.py")) == "7 (python x.py)"
    assert busy.users(Path("/nowhere/at/all")) == ()


def test_a_pipe_in_place_of_the_record_hangs_nobody(environment, channel, installer):
    record = environment.prefix / "conda-meta" / "envkit"
    record.unlink()
    os.mkfifo(record)
    with pytest.raises(Error, match="no plain file"):
        read_environment("tiny")
    with pytest.raises(InputError, match="exists and is not an environment"):
        installer(channel.lock())


@root
def test_a_folder_of_environments_that_cannot_be_read_is_no_empty_one(environment, tmp_path):
    folder = environment.prefix.parent
    for place in (folder, *folder.parents):
        if place.stat().st_uid == 0 and place.is_relative_to("/tmp") and place != Path("/tmp"):
            place.chmod(0o711)
    assert names() == ("tiny",)
    kind, message, hint = as_nobody(names)
    assert kind == "Error"
    assert str(folder) in message
    assert "Permission denied" in message
    assert "permissions" in hint


@root
def test_a_project_whose_environments_cannot_be_read_is_no_missing_one(tmp_path):
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments" / "matrix.yaml").write_text("schema: 1\n")
    for place in (tmp_path, *tmp_path.parents):
        if place.stat().st_uid == 0 and place.is_relative_to("/tmp") and place != Path("/tmp"):
            place.chmod(0o711)
    assert find_root(tmp_path) == tmp_path
    (tmp_path / "environments").chmod(0o700)
    kind, message, hint = as_nobody(lambda: find_root(tmp_path))
    assert kind == "InputError"
    assert "environments cannot be read: Permission denied" in message
    assert "chmod" in hint


def test_this_machine_is_looked_at_where_nobody_said(installer, channel):
    assert read_host().glibc
    channel.add(TinyPackage("far", depends=["__glibc >=99"], platform=PLATFORM))
    with pytest.raises(Error, match="glibc >=99"):
        installer(channel.lock())
    assert not installer.prefix.exists()


def test_python_itself_is_not_asked_twice(installer, channel):
    channel.add(this_python("3.99.0", build="twice"))
    with pytest.raises(InputError, match="twice"):
        installer(channel.lock())
