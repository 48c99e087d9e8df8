"""Whether a combination of axes exists at all, as far as is known, before anything is solved."""

from __future__ import annotations

from packaging.version import Version

from envkit.errors import InputError
from envkit.matrix.constraint import Constraint, parse_constraint
from envkit.matrix.layout import Matrix, SourceRules
from envkit.matrix.nearest import listing, nearest_versions
from envkit.matrix.releases import Release, known_releases, newest_known
from envkit.messages import _
from envkit.model import CPU, Variant

__all__ = ["admitted", "require"]


def admitted(matrix: Matrix, variant: Variant) -> tuple[Release, ...]:
    """The torch releases a variant may come out with, oldest first; none where it does not exist."""
    constraint = parse_constraint(variant.torch)
    builds = matrix.sources[variant.source].builds.get(variant.accelerator)
    if constraint is None or builds is None:
        return ()
    return tuple(
        release
        for release in known_releases()
        if constraint.admits(release.torch)
        and builds.admits(release.torch)
        and release.supports(variant.python)
    )


def require(rules: SourceRules, accelerator: str, torch: Constraint | None, python: str) -> None:
    """Raise InputError with the reason, unless some torch release fits all four.

    Without a torch, the one that the source takes by itself is meant.
    What is not known (a torch newer than the table, an open end of a range) is let through: the solver
    will say.
    """
    if accelerator not in rules.builds:
        raise InputError(
            _("{source} has no {build} builds of PyTorch").format(
                source=rules.name, build=_label(accelerator)
            ),
            _("it has {valid}").format(valid=listing(_nearest_builds(accelerator, rules))),
        )
    torch = torch or rules.default_torch(accelerator)
    named = [release for release in known_releases() if torch.admits(release.torch)]
    if not named:
        raise InputError(
            _("no known release of PyTorch is {torch}").format(torch=torch),
            _("the nearest are {valid}").format(valid=listing(_series_near(torch, known_releases()))),
        )
    anywhere = [
        release for release in named if any(builds.admits(release.torch) for builds in rules.builds.values())
    ]
    if not anywhere:
        raise InputError(
            _("{source} has no PyTorch {torch}: it has {range}").format(
                source=rules.name, torch=torch, range=rules.builds[accelerator]
            ),
            _("choose `--torch` within {range} or another `--source`").format(
                range=rules.builds[accelerator]
            ),
        )
    built = [release for release in anywhere if rules.builds[accelerator].admits(release.torch)]
    if not built:
        others = [
            other
            for other, builds in rules.builds.items()
            if any(builds.admits(release.torch) for release in anywhere)
        ]
        raise InputError(
            _("{source} has {build} builds of PyTorch {range} only, not of {torch}").format(
                source=rules.name,
                build=_label(accelerator),
                range=rules.builds[accelerator],
                torch=torch,
            ),
            _("for PyTorch {torch} it has {valid}").format(torch=torch, valid=listing(map(_label, others))),
        )
    if rules.python is not None and not rules.python.admits(python):
        raise InputError(
            _("{source} has no PyTorch builds for Python {python}").format(source=rules.name, python=python),
            _("choose `--python` within {range} or another `--source`").format(range=rules.python),
        )
    if not any(release.supports(python) for release in built):
        raise InputError(
            _("no PyTorch {torch} from {source} for {build} supports Python {python}").format(
                torch=torch, source=rules.name, build=_label(accelerator), python=python
            ),
            _("choose a `--python` from {first} to {last}").format(
                first=built[0].first_python, last=built[-1].last_python or _("the newest")
            ),
        )


def _label(accelerator: str) -> str:
    return _("CPU") if accelerator == CPU else _("CUDA {version}").format(version=accelerator)


def _nearest_builds(accelerator: str, rules: SourceRules) -> list[str]:
    if accelerator == CPU:
        return [_label(build) for build in rules.builds]
    versions = [build for build in rules.builds if build != CPU]
    return [_label(build) for build in nearest_versions(accelerator, versions)] or [_label(CPU)]


def _series_near(torch: Constraint, releases: tuple[Release, ...]) -> tuple[str, ...]:
    newest = Version(newest_known())
    series = dict.fromkeys(
        ".".join(release.torch.split(".")[:2]) for release in releases if Version(release.torch) <= newest
    )
    wrong = torch.text.lstrip("=!<>~").removesuffix(".*")
    return nearest_versions(wrong, series)
