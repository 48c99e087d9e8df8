"""Does the interpreter run, is it the one that was asked for, and does it see its own packages only?"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from envkit.checks.definition import Context, Data, Job, Verdict, Where, check, fail, ok, warn
from envkit.checks.outcome import Outcome
from envkit.messages import _
from envkit.model import Severity

__all__ = ["inside", "isolated", "runs", "version"]

_JOB = Job(id="interpreter", call="interpreter:describe", where=Where.BARE, limit=30)


def inside(folder: str, prefixes: Iterable[str]) -> bool:
    """Whether a folder lies in one of the prefixes; all are real paths."""
    return any(folder == prefix or folder.startswith(prefix.rstrip("/") + "/") for prefix in prefixes)


def _no_interpreter(outcome: Outcome, context: Context) -> Verdict | None:
    if outcome.not_started:
        return fail(outcome.not_started, hint=context.target.renewal)
    if outcome.at == "start":
        return fail(
            _("{python} started but did not run the probe").format(python=context.target.python),
            detail=outcome.output,
            hint=context.target.renewal,
        )
    return None


@check(
    "interpreter.runs",
    job=_JOB,
    severity=Severity.FATAL,
    source="https://docs.python.org/3/using/cmdline.html#envvar-PYTHONHOME",
    words=lambda: (_("interpreter"), _("the environment's Python runs, and is the one in its prefix")),
    needs=(),
    quick=True,
    ended=_no_interpreter,
)
def runs(data: Data, context: Context) -> Verdict:
    environment = context.target.environment
    if environment is not None and data["prefix"] != os.path.realpath(environment.prefix):
        return fail(
            _("Python takes {prefix} for its prefix, not {expected}").format(
                prefix=data["prefix"], expected=environment.prefix
            ),
            hint=_("unset PYTHONHOME")
            if data["pythonhome"]
            else _("an environment cannot be moved: ") + context.target.renewal,
        )
    return ok(
        _("{implementation} {version} in {prefix}").format(
            implementation=data["implementation"], version=data["version"], prefix=data["prefix"]
        )
    )


@check(
    "interpreter.version",
    job=_JOB,
    severity=Severity.FATAL,
    source="https://packaging.python.org/en/latest/specifications/platform-compatibility-tags/",
    words=lambda: (_("Python version"), _("the Python version is the one that was asked for")),
    quick=True,
)
def version(data: Data, context: Context) -> Verdict:
    asked = context.target.python_version
    found = str(data["version"])
    if asked is None:
        return ok(_("Python {version}; none was asked for").format(version=found))
    if found.split(".")[:2] != asked.split(".")[:2]:
        return fail(
            _("Python {version}, but {asked} was asked for").format(version=found, asked=asked),
            hint=context.target.renewal,
        )
    return ok(_("Python {version}, as asked").format(version=found))


@check(
    "interpreter.isolated",
    job=_JOB,
    severity=Severity.HIGH,
    source="https://docs.python.org/3/using/cmdline.html#envvar-PYTHONNOUSERSITE",
    words=lambda: (_("isolation"), _("neither PYTHONPATH nor the user site puts another torch first")),
    quick=True,
)
def isolated(data: Data, context: Context) -> Verdict:
    torch = data["torch"]
    if torch is None or inside(torch, data["prefixes"]):
        outside = [part for part in data["pythonpath"] if not inside(part, data["prefixes"])]
        if outside:
            return ok(
                _("torch is the environment's own; PYTHONPATH adds {folders}").format(
                    folders=", ".join(outside)
                )
            )
        return ok(_("only the environment's own packages are seen"))
    if inside(torch, data["pythonpath"]):
        summary, hint = _("PYTHONPATH puts another torch first: {folder}"), _("unset PYTHONPATH")
    elif data["user_site"] and inside(torch, [data["user_site"]]):
        summary = _("the user site puts another torch first: {folder}")
        hint = _("export PYTHONNOUSERSITE=1, or remove it there: {python} -m pip uninstall torch").format(
            python=Path(context.target.python)
        )
    else:
        summary = _("torch would come from outside the environment: {folder}")
        hint = _("look for a .pth file in site-packages that adds this folder")
    judged = warn if context.target.environment is None else fail
    return judged(summary.format(folder=torch), hint=hint)
