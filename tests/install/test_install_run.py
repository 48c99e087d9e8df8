"""Running inside an environment: its variables, exit codes and signals."""

from __future__ import annotations

import os
import pickle
import pty
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace

import pytest

from envkit.errors import Error, InputError
from envkit.install import environment_variables, run


def test_variables_are_those_of_this_environment_alone(environment):
    base = {
        "PATH": f"/other/env/bin:/my/venv/bin:/usr/bin:{environment.prefix}/bin:/bin",
        "CONDA_PREFIX": "/other/env", "CONDA_PREFIX_1": "/base", "CONDA_SHLVL": "2",
        "VIRTUAL_ENV": "/my/venv", "PYTHONHOME": "/nowhere", "KEPT": "yes", "_": "/bin/x",
    }  # fmt: skip
    found = environment_variables(environment, base)
    assert found["PATH"] == f"{environment.prefix}/bin:/usr/bin:/bin"
    assert found["CONDA_PREFIX"] == str(environment.prefix)
    assert (found["CONDA_DEFAULT_ENV"], found["CONDA_SHLVL"]) == ("tiny", "1")
    assert found["PYTHONNOUSERSITE"] == "1"
    assert found["KEPT"] == "yes"
    assert not {"VIRTUAL_ENV", "PYTHONHOME", "CONDA_PREFIX_1", "ENVKIT_ENV"} & found.keys()


def test_activation_scripts_and_variables_of_packages(environment):
    (environment.prefix / "conda-meta" / "state").write_text(
        '{"version": 1, "env_vars": {"HIDDEN": "***unset***", "STATED": "a \'b\'"}}'
    )
    found = environment_variables(environment, {"PATH": "/usr/bin:/bin", "HIDDEN": "x"})
    assert found["HOOK_PREFIX"] == str(environment.prefix)
    assert found["HOOK_TEXT"] == "two\nlines"
    assert found["HOOK_VARIABLE"] == "set by a package"
    assert found["STATED"] == "a 'b'"
    assert "HIDDEN" not in found


def test_scripts_that_print_fail_or_unset(environment):
    folder = environment.prefix / "etc" / "conda" / "activate.d"
    (folder / "a.sh").write_text("echo noise; false; unset GONE\n")
    (folder / "z.sh").write_text('export SEEN_LAST="$HOOK_VARIABLE"\nread nothing\n')
    found = environment_variables(environment, {"PATH": "/usr/bin:/bin", "GONE": "x"})
    assert "GONE" not in found
    assert found["SEEN_LAST"] == "set by a package"


def test_a_script_that_ends_the_shell(environment):
    script = environment.prefix / "etc" / "conda" / "activate.d" / "bad.sh"
    script.write_text("echo cannot work here >&2; exit 3\n")
    with pytest.raises(Error, match="cannot work here") as caught:
        environment_variables(environment)
    assert str(script) in caught.value.hint


@pytest.mark.parametrize("text", ["{", '{"env_vars": 1}', '{"env_vars": {"A; rm -rf /": "x"}}'])
def test_a_damaged_state(environment, text):
    (environment.prefix / "conda-meta" / "state").write_text(text)
    with pytest.raises(Error, match="conda-meta/state"):
        environment_variables(environment)


def test_exit_codes(environment):
    assert run(environment, ["python", "-c", "import greeting"]) == 0
    assert run(environment, ["python", "-c", "raise SystemExit(7)"]) == 7
    assert run(environment, ["sh", "-c", "kill -TERM $$"]) == 128 + signal.SIGTERM


def test_the_environments_own_programs_come_first(environment, capfd):
    assert run(environment, ["greet"]) == 0
    assert capfd.readouterr().out == "hello from greeting\n"


@pytest.mark.parametrize("command", ["no-such-command", "/", "not-executable"])
def test_what_cannot_be_run(environment, command):
    (environment.prefix / "bin" / "not-executable").write_text("#!/bin/sh\n")
    with pytest.raises(Error, match=f"cannot run {command}"):
        run(environment, [command])


def test_nothing_to_run(environment):
    with pytest.raises(InputError):
        run(environment, [])
    with pytest.raises(InputError, match="cannot run"):
        run(environment, ["a\0b"])


TRAP = "trap 'echo got {name}; exit 5' {name}; echo ready; while :; do sleep 0.05; done"
RUN = (
    "import os, pickle, sys\nfrom envkit.install import run\n"
    "environment, argv = pickle.load(sys.stdin.buffer)\nos._exit(run(environment, argv))\n"
)


@pytest.mark.parametrize("name", ["TERM", "INT", "HUP", "USR1"])
def test_signals_reach_the_program(environment, name):
    order = pickle.dumps((environment, ["bash", "-c", TRAP.format(name=name)]))
    with subprocess.Popen(
        [sys.executable, "-c", RUN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        process.stdin.write(order)
        process.stdin.close()
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(getattr(signal, f"SIG{name}"))
        assert process.stdout.read() == f"got {name}\n".encode()
    assert process.returncode == 5


def test_control_c_on_a_terminal_is_the_programs_affair(environment):
    """The terminal signals both; the program's answer is the answer."""
    argv = ["bash", "-c", TRAP.format(name="INT")]
    code = (
        "import os; from envkit.install import read_environment, run\n"
        f"os._exit(run(read_environment({str(environment.prefix)!r}), {argv!r}))"
    )
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-c", code])
    said = b""
    while b"ready" not in said:
        said += os.read(terminal, 1000)
    os.write(terminal, b"\x03")
    with suppress(OSError):
        while more := os.read(terminal, 1000):
            said += more
    assert said.count(b"got INT") == 1
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 5


def test_a_prefix_with_a_name_of_its_own(environment):
    found = environment_variables(replace(environment, name="a b"), {"PATH": os.defpath})
    assert found["CONDA_DEFAULT_ENV"] == "a b"
