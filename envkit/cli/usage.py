"""What click has against a command line, in the language of the messages; click itself knows English only."""

from __future__ import annotations

import re
from collections.abc import Callable

import click

from envkit.messages import _

__all__ = ["usage_words"]

_WORDINGS: tuple[tuple[re.Pattern[str], Callable[[], str]], ...] = (
    (re.compile(r"Got unexpected extra arguments? \((?P<words>.*)\)"), lambda: _("unexpected: {words}")),
    (re.compile(r"Option '(?P<option>\S+)' requires an argument\."), lambda: _("{option} needs a value")),
    (re.compile(r"Option '(?P<option>\S+)' does not take a value\."), lambda: _("{option} takes no value")),
    (
        re.compile(r"'(?P<value>.*)' is not one of (?P<choices>'.*')\."),
        lambda: _("'{value}' is none of {choices}"),
    ),
    (
        re.compile(r"'(?P<value>.*)' is not a valid (?:integer|float)(?: range)?\."),
        lambda: _("'{value}' is no number"),
    ),
    (
        re.compile(r"(?:File|Directory|Path) '(?P<path>.*)' does not exist\."),
        lambda: _("there is no {path}"),
    ),
    (re.compile(r"File '(?P<path>.*)' is a directory\."), lambda: _("{path} is a directory, not a file")),
    (re.compile(r"Directory '(?P<path>.*)' is a file\."), lambda: _("{path} is a file, not a directory")),
)


def usage_words(problem: click.ClickException) -> str:
    """The message of a usage error; in click's own words where there are no others."""
    if isinstance(problem, click.NoSuchOption):
        words = _("there is no option '{option}'").format(option=problem.option_name)
        near = ", ".join(problem.possibilities or ())
        return words + (_("; there is {options}").format(options=near) if near else "")
    if isinstance(problem, click.MissingParameter):
        name = problem.param.human_readable_name if problem.param is not None else problem.param_hint
        return _("{name} is missing").format(name=name)
    said = _reworded(problem.message)
    if isinstance(problem, click.BadParameter) and problem.param is not None:
        option = next(iter(problem.param.opts), "") or problem.param.human_readable_name
        return _("{option}: {problem}").format(option=option, problem=said)
    return said


def _reworded(text: str) -> str:
    for form, words in _WORDINGS:
        match = form.fullmatch(text)
        if match is not None:
            return words().format(**match.groupdict())
    return text
