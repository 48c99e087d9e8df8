"""The hint of a broken environment mends it, whatever it was made from."""

from __future__ import annotations

from small_project import Project

NAME = "wheels-py311-cpu"


def test_the_hint_of_a_broken_environment_mends_it(project: Project) -> None:
    project.ok("install", "--lock", str(project.lock), "--name", NAME)
    python = project.prefix(NAME) / "bin" / "python"
    python.unlink()
    broken = project.call("validate", NAME, "--only", "interpreter.runs")
    assert broken.code == 1
    words = f"drift {NAME} --repair"
    assert f"{words}`" in broken.out
    assert project.call(*words.split()).code == 0
    assert python.exists()
    assert project.call("validate", NAME, "--only", "interpreter.runs").code == 0
