"""From a clone to an environment and back, verb by verb."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest
from small_project import OTHER, VARIANT, Project


def tree(folder: Path) -> dict[str, str]:
    """Every file below a folder with its digest or, for a link, where it leads; no bytecode."""
    return {
        str(path.relative_to(folder)): str(path.readlink())
        if path.is_symlink()
        else hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if (path.is_symlink() or path.is_file()) and "__pycache__" not in path.parts
    }


def test_rendered_then_locked_and_twice_the_same_bytes(bare: Project) -> None:
    names = [VARIANT, OTHER]
    assert bare.call("render", "--all", "--check").code == 1
    assert [row["changed"] for row in bare.ok("render", "--all")["variants"]] == [True, True]
    assert f"{VARIANT}: not locked" in bare.call("lock", "--all", "--check").out
    made = bare.ok("lock", "--all")["variants"]
    assert [(row["variant"], row["torch"]) for row in made] == [(name, "2.4.1") for name in names]
    first = tree(bare.root)
    shutil.rmtree(bare.home)
    bare.ok("lock", "--all")
    assert tree(bare.root) == first
    assert [row["fresh"] for row in bare.ok("lock", "--all", "--check")["variants"]] == [True, True]
    assert [row["changed"] for row in bare.ok("render", "--all", "--check")["variants"]] == [False, False]
    shown = bare.ok("variants")["variants"]
    assert [row["variant"] for row in shown] == names
    for row in shown:
        assert row["rendered"] and row["fresh"] and row["locked_torch"] == "2.4.1"
        assert not row["installed"]


def test_up_proves_what_it_made_and_a_second_time_installs_nothing(project: Project) -> None:
    first = project.call("up", "--json")
    assert first.code == 1, "a torch that is only a version is found not to work"
    made = first.result
    assert made["installed"] and not made["fallback"]
    assert [stage["name"] for stage in made["stages"]] == ["pick", "lock", "install", "validate"]
    checks = {check["id"]: check["status"] for check in made["report"]["checks"]}
    assert checks["imports.torch"] == "ok"
    assert checks["torch.build"] != "ok"
    before = tree(project.prefix())
    second = project.call("up")
    assert second.code == 1
    assert "is as its lock says" in second.err
    assert "torch.build" in second.out
    assert second.out.splitlines()[-1].startswith('eval "$(')
    assert tree(project.prefix()) == before
    assert project.names == [VARIANT]


def test_installed_entered_run_in_and_removed(project: Project) -> None:
    made = project.ok("install")
    assert (made["installed"], made["environment"], made["report"]) == (True, VARIANT, None)
    assert not project.ok("install")["installed"]
    where = "import sys; print(sys.prefix)"
    ran = project.call("run", VARIANT, "--", "python", "-c", where)
    assert (ran.code, ran.out) == (0, f"{project.prefix()}\n")
    assert project.call("run", VARIANT, "python", "-c", "raise SystemExit(7)").code == 7
    entered = subprocess.run(
        ["bash", "-euc", f'{made["activate"]}\necho "$CONDA_DEFAULT_ENV"; python -c "{where}"'],
        cwd=project.root, env=project.environ, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert entered.stdout == f"{VARIANT}\n{project.prefix()}\n"
    assert project.ok("variants")["variants"][0]["installed"]
    assert project.ok("remove", VARIANT)["prefix"] == str(project.prefix())
    assert project.names == []
    assert VARIANT in project.fails("remove", VARIANT, code=2)["message"]


def test_a_bare_lock_needs_no_project(project: Project, tmp_path: Path) -> None:
    lock = tmp_path / "Their experiment" / "conda-lock.yml"
    lock.parent.mkdir()
    shutil.copy(project.lock, lock)
    made = project.ok("install", "--lock", str(lock), cwd=tmp_path)
    assert (made["environment"], made["variant"], made["installed"]) == ("Their-experiment", None, True)
    again = project.ok("install", "--lock", lock.name, cwd=lock.parent)
    assert (again["environment"], again["installed"]) == ("Their-experiment", False)


def test_extras_that_no_variant_lists_are_locked_for_this_user_alone(project: Project) -> None:
    before = tree(project.root)
    made = project.ok("install", "--with", "notebook")
    name = f"{VARIANT}+notebook"
    assert (made["environment"], made["installed"]) == (name, True)
    lock = project.home / "state" / "locks" / name / "conda-lock.yml"
    assert "name: jupyterlab" in lock.read_text()
    assert tree(project.root) == before
    assert project.call("run", name, "jupyter-lab").out == "a laboratory\n"
    stamp = lock.stat().st_mtime_ns
    assert not project.ok("install", "--with", "notebook")["installed"]
    assert lock.stat().st_mtime_ns == stamp, "a fresh lock is not solved again"
    assert project.ok("install", "--with", "vision")["variant"] == OTHER


@pytest.mark.parametrize("folder", [".torch env", "deep/er"])
def test_a_prefix_of_any_name(project: Project, folder: str) -> None:
    made = project.ok("install", VARIANT, "--prefix", folder)
    assert made["installed"] and made["prefix"].endswith(folder)
    again = project.ok("install", VARIANT, "--prefix", str(project.root / folder))
    assert not again["installed"]
    where = "import sys; print(sys.prefix)"
    assert project.call("run", f"./{folder}", "python", "-c", where).out == f"{project.root / folder}\n"
    assert project.names == []


def test_the_project_is_found_from_below_and_from_afar(project: Project, tmp_path: Path) -> None:
    below = project.root / "src" / "deep"
    below.mkdir(parents=True)
    assert len(project.ok("variants", cwd=below)["variants"]) == 2
    assert len(project.ok("variants", cwd=tmp_path, ENVKIT_PROJECT=str(project.root))["variants"]) == 2
    assert "environments/matrix.yaml" in project.fails("variants", code=2, cwd=tmp_path)["message"]


def test_with_json_stdout_is_one_document_whatever_the_verb(installed: Project) -> None:
    for arguments in (
        ["render", VARIANT, "--stdout"],
        ["activate", VARIANT],
        ["validate", VARIANT, "--quick"],
        ["validate", "--list"],
    ):
        done = installed.call(*arguments, "--json")
        assert done.document["command"] == arguments[0]
        assert done.document["error"] is None
    ran = installed.call("run", "--json", VARIANT, "--", "python", "-c", "print('from the child')")
    assert ran.document["ok"]
    assert ran.result["command"] == ["python", "-c", "print('from the child')"]
    assert ran.err == "from the child\n"
    failed = installed.call("run", "--json", VARIANT, "no-such-command")
    assert (failed.code, failed.document["result"]) == (125, None)


@pytest.mark.parametrize("dashes", [[], ["--"]])
def test_the_json_of_someone_elses_command_is_its_own(installed: Project, dashes: list[str]) -> None:
    ran = installed.call("run", VARIANT, *dashes, "echo", "{}", "--json", "--lang", "zh")
    assert (ran.code, ran.out) == (0, "{} --json --lang zh\n")
    failed = installed.call("run", VARIANT, *dashes, "no-such-command", "--json")
    assert (failed.code, failed.out) == (125, "")
    assert failed.err.startswith("error: ")
