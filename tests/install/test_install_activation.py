"""Activation in real shells: what it sets, and that deactivation puts everything back."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from envkit.errors import InputError
from envkit.install import SHELLS, activation

# How each shell is started without its user's files, and how it evaluates a file of text.
START = {
    "bash": ["bash", "--noprofile", "--norc"], "zsh": ["zsh", "-f"], "posix": ["dash"],
    "fish": ["fish", "--no-config"],
}  # fmt: skip
EVALUATE = {"fish": "source {file}"}
STRICT = {"fish": ""}
ALL = [
    pytest.param(
        shell, marks=pytest.mark.skipif(shutil.which(START[shell][0]) is None, reason=f"no {START[shell][0]}")
    )
    for shell in START
]


class Runner:
    """Runs lines in one shell; `activate` is the line that evaluates the activation of an environment."""

    def __init__(self, shell: str, folder: Path) -> None:
        self.shell = shell
        self._folder = folder
        self._base = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "TERM": "dumb", "LC_ALL": "C.UTF-8"}

    def activate(self, environment) -> str:
        file = self._folder / f"{environment.name}.activation"
        file.write_text(activation(environment, self.shell))
        return EVALUATE.get(self.shell, 'eval "$(cat {file})"').format(file=file)

    def __call__(self, *lines: str, options: tuple[str, ...] = (), **variables: str) -> str:
        script = "\n".join([STRICT.get(self.shell, "set -eu"), *lines])
        done = subprocess.run(
            [*START[self.shell], *options, "-c", script],
            env=self._base | variables, capture_output=True, text=True, timeout=30, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        return done.stdout


@pytest.fixture
def shell(request, tmp_path):
    return Runner(request.param, tmp_path)


def listing(text: str) -> dict[str, str]:
    """What `env -0` printed, without what shells change by themselves."""
    pairs = dict(item.split("=", 1) for item in text.split("\0") if "=" in item)
    return {name: value for name, value in pairs.items() if name not in ("_", "SHLVL", "PWD", "OLDPWD")}


@pytest.mark.parametrize("shell", ALL, indirect=True)
def test_sets_and_restores(shell, environment):
    before = {"CONDA_PREFIX": "/old $prefix", "VIRTUAL_ENV": "/my 'venv'", "HIDDEN": "x"}
    (environment.prefix / "conda-meta" / "state").write_text(
        '{"env_vars": {"HIDDEN": "***unset***", "STATED": "it\'s \\\\ $HOME `x`\\nnext"}}'
    )
    untouched = listing(shell("env -0", **before))
    active = listing(shell(shell.activate(environment), "env -0", **before))
    assert active["PATH"] == f"{environment.prefix}/bin:/usr/bin:/bin"
    assert active["CONDA_PREFIX"] == str(environment.prefix)
    assert active["CONDA_DEFAULT_ENV"] == "tiny"
    assert active["STATED"] == "it's \\ $HOME `x`\nnext"
    assert active["HOOK_VARIABLE"] == "set by a package"
    assert not {"VIRTUAL_ENV", "HIDDEN"} & active.keys()
    assert ("HOOK_PREFIX" in active) == (shell.shell != "fish"), "fish has no .fish script here"
    after = shell(shell.activate(environment), "envkit_deactivate", "env -0", **before)
    assert listing(after) == untouched


@pytest.mark.parametrize("shell", ALL, indirect=True)
def test_again_deactivates_first(shell, environment, channel, installer, tmp_path):
    other = installer(channel.lock(channel.packages[0]), tmp_path / "envs" / "other", name="other")
    first, second = shell.activate(environment), shell.activate(other)
    active = listing(shell(first, first, second, "env -0"))
    assert active["PATH"] == f"{other.prefix}/bin:/usr/bin:/bin"
    assert active["CONDA_DEFAULT_ENV"] == "other"
    assert not [name for name in active if name.startswith("HOOK")]
    untouched = listing(shell("env -0"))
    assert listing(shell(first, second, "envkit_deactivate", "env -0")) == untouched


@pytest.mark.parametrize("shell", ALL, indirect=True)
def test_awkward_names(shell, channel, installer, tmp_path):
    prefix = tmp_path / "it's a; touch owned & (环境)" / "tiny"
    made = installer(channel.lock(), prefix)
    active = listing(shell(shell.activate(made), "env -0"))
    assert active["CONDA_PREFIX"] == str(prefix)
    assert shell(shell.activate(made), "greet") == "hello from greeting\n"
    assert not list(tmp_path.rglob("owned"))


@pytest.mark.parametrize("shell", ALL, indirect=True)
def test_no_name_is_left_behind(shell, environment):
    show = {
        "bash": "compgen -v; compgen -A function || :",
        "zsh": "print -l ${(k)parameters} ${(k)functions}",
        "fish": "set --names; functions --all --names",
        "posix": "set | sed 's/=.*//'",  # values may name anything, PWD above all
    }[shell.shell]
    assert "envkit" not in shell(shell.activate(environment), "envkit_deactivate", show).lower()


@pytest.mark.parametrize("shell", [p for p in ALL if p.values[0] in ("bash", "zsh")], indirect=True)
def test_the_prompt_of_interactive_shells(shell, environment, tmp_path):
    show = "PS1='$ '", shell.activate(environment), 'echo "$PS1"', "envkit_deactivate", 'echo "$PS1"'
    assert shell(*show) == "$ \n$ \n"
    script = "\n".join(show)
    done = subprocess.run(
        [*START[shell.shell], "-i", "-c", script], capture_output=True, text=True, timeout=30, check=True,
        env={"PATH": os.defpath, "HOME": str(tmp_path), "TERM": "dumb"}, start_new_session=True,
    )  # fmt: skip
    assert done.stdout == "(tiny) $ \n$ \n"


@pytest.mark.skipif(shutil.which("fish") is None, reason="no fish")
def test_the_prompt_of_fish(environment, tmp_path):
    shell = Runner("fish", tmp_path)
    lines = (
        "function fish_prompt; echo \"status $status> \"; end", shell.activate(environment),
        "false", "fish_prompt", "envkit_deactivate", "false", "fish_prompt",
    )  # fmt: skip
    assert shell(*lines) == "status 1> \nstatus 1> \n"
    done = subprocess.run(
        ["fish", "--no-config", "-i", "-c", "\n".join(lines)], capture_output=True, text=True, timeout=30,
        env={"PATH": os.defpath, "HOME": str(tmp_path), "TERM": "dumb"}, check=True, start_new_session=True,
    )  # fmt: skip
    assert done.stdout == "(tiny) status 1> \nstatus 1> \n"


def test_bash_finds_the_text_well_formed(environment, tmp_path):
    for shell in ("bash", "posix"):
        file = tmp_path / shell
        file.write_text(activation(environment, shell))
        subprocess.run(["bash", "-n", str(file)], check=True, timeout=10)


def test_scripts_written_without_care_for_strict_shells(environment, tmp_path):
    script = environment.prefix / "etc" / "conda" / "activate.d" / "careless.sh"
    script.write_text('export CARELESS="$NOT_SET_ANYWHERE."\nfalse\n')
    shell = Runner("bash", tmp_path)
    assert shell(shell.activate(environment), 'echo "$CARELESS $-"').startswith(". ")


def test_an_unknown_shell(environment):
    with pytest.raises(InputError, match="tcsh") as caught:
        activation(environment, "tcsh")
    assert "bash, zsh, fish, posix" in caught.value.hint
    assert set(SHELLS) == set(START)
