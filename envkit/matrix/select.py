"""From what a user asks to one variant: listed, or made from the axes by rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

from envkit.errors import InputError
from envkit.matrix.axes import AUTO, Axes, cuda_version, python_version
from envkit.matrix.constraint import Constraint, parse_constraint
from envkit.matrix.existence import require
from envkit.matrix.layout import Matrix
from envkit.matrix.naming import MadeName, base_and_extras, make_name, read_name, with_extras
from envkit.matrix.nearest import listing, nearest_versions, nearest_words
from envkit.matrix.releases import python_versions
from envkit.matrix.variants import on_platforms
from envkit.messages import _
from envkit.model import CPU, Source, Variant

__all__ = ["Wanted", "listed", "made", "parse_axes", "select"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """Axes, checked one by one against what the matrix knows. None leaves an axis open.

    `platform` is the one that a variant made by rule is for; listed variants have their own.
    """

    python: str | None = None
    accelerator: str | None = None
    torch: Constraint | None = None
    source: Source | None = None
    extras: tuple[str, ...] = ()
    platform: str | None = None

    def fits(self, variant: Variant) -> bool:
        """Whether a variant has every axis that was asked for; extras are looked at apart."""
        return (
            self.python in (None, variant.python)
            and self.accelerator in (None, variant.accelerator)
            and self.source in (None, variant.source)
            and (self.torch is None or self.torch.text == variant.torch)
        )


def select(matrix: Matrix, axes: Axes, platform: str | None = None) -> Variant:
    """The variant for these axes: the one named, else the first listed one that fits, else one made by rule.

    Extras are added to those a listed variant has by itself. CUDA "auto" counts as not given (`choose`
    looks at the machine). With a platform, a variant that is not the matrix's own is for that one alone: it
    is installed here and nowhere else, so it need not exist elsewhere. Raises InputError for values and
    combinations that do not exist.
    """
    if axes.name is not None:
        return _by_name(matrix, axes, platform)
    wanted = parse_axes(matrix, axes, platform)
    fitting = listed(matrix, wanted)
    if not fitting:
        return made(matrix, wanted)
    _require(matrix, fitting[0])
    return fitting[0]


def listed(matrix: Matrix, wanted: Wanted) -> list[Variant]:
    """The matrix's own variants that fit, in its order, each with the extras that were asked for.

    One whose lock the team does not keep is taken only where its accelerator or its source is asked for.
    """
    special = wanted.accelerator is not None or wanted.source is not None
    fitting = [
        variant
        for variant in matrix.variants
        if wanted.fits(variant) and (special or matrix.commits(variant))
    ]
    return [_add_extras(base, wanted, fitting) for base in fitting]


def parse_axes(matrix: Matrix, axes: Axes, platform: str | None = None) -> Wanted:
    """Each axis in its one spelling; InputError lists the nearest valid values of one that is unknown."""
    return Wanted(
        python=_python(axes.python),
        accelerator=_accelerator(matrix, axes.cuda),
        torch=_torch(axes.torch),
        source=_source(matrix, axes.source),
        extras=_extras(matrix, axes.extras),
        platform=platform,
    )


def _python(text: str | None) -> str | None:
    if text is None:
        return None
    version = python_version(text)
    if version is None or version not in python_versions():
        raise _unknown("--python", text, nearest_versions(version or text, python_versions()))
    return version


def _accelerator(matrix: Matrix, text: str | None) -> str | None:
    if text is None or text.strip().lower() == AUTO:
        return None
    version = cuda_version(text)
    known = dict.fromkeys(build for rules in matrix.sources.values() for build in rules.builds)
    if version is None or version not in known:
        versions = [build for build in known if build != CPU]
        number = version or text.lower().removeprefix("cuda").removeprefix("cu").lstrip("=-")
        near = nearest_versions(number, versions) if number[:1].isdigit() else (CPU, AUTO, *versions[-1:])
        raise _unknown("--cuda", text, near)
    return version


def _torch(text: str | None) -> Constraint | None:
    if text is None:
        return None
    constraint = parse_constraint(text)
    if constraint is None:
        raise InputError(
            _("torch {value} is not a version").format(value=text),
            _("write it like 2.3, 2.3.1, '<=2.5.1' or '>=2.0,<2.4'"),
        )
    return constraint


def _source(matrix: Matrix, text: str | None) -> Source | None:
    if text is None:
        return None
    if text not in matrix.sources:
        raise _unknown("--source", text, nearest_words(text, matrix.sources))
    return cast("Source", text)


def _extras(matrix: Matrix, names: tuple[str, ...] | None) -> tuple[str, ...]:
    for name in names or ():
        if name not in matrix.extras:
            raise _unknown("--with", name, nearest_words(name, matrix.extras))
    return tuple(dict.fromkeys(names or ()))


def _unknown(axis: str, value: str, near: tuple[str, ...]) -> InputError:
    if not near:
        return InputError(_("`{axis} {value}` is not known here").format(axis=axis, value=value))
    return InputError(
        _("`{axis} {value}` is not known here; the nearest are {valid}").format(
            axis=axis, value=value, valid=listing(near)
        ),
        _("give `{axis} {first}`, or see `envkit variants`").format(axis=axis, first=near[0]),
    )


def _by_name(matrix: Matrix, axes: Axes, platform: str | None) -> Variant:
    name = axes.name or ""
    base_name, extras = base_and_extras(name)
    every_extra = (*extras, *(axes.extras or ()))
    wanted = parse_axes(matrix, replace(axes, name=None, extras=every_extra), platform)
    base = matrix.named(base_name) or _from_made_name(matrix, base_name, platform)
    if base is None:
        near = nearest_words(base_name, [variant.name for variant in matrix.variants])
        raise InputError(
            _("there is no variant '{name}'; the nearest are {valid}").format(name=name, valid=listing(near)),
            _("see `envkit variants`"),
        )
    if not wanted.fits(base):
        raise InputError(
            _(
                "'{name}' is Python {python}, {build}, PyTorch {torch} from {source}: not what was asked"
            ).format(
                name=base.name,
                python=base.python,
                build=base.accelerator,
                torch=base.torch,
                source=base.source,
            ),
            _("give either the name or the other axes"),
        )
    _require(matrix, base)
    return _add_extras(base, wanted, [base])


def _from_made_name(matrix: Matrix, name: str, platform: str | None) -> Variant | None:
    axes = read_name(name)
    if axes is None or (axes.source is not None and axes.source not in matrix.sources):
        return None
    try:
        accelerator = _accelerator(matrix, axes.accelerator)
    except InputError:
        # A slip of the pen in a listed name (cu181): the nearest names help, the nearest CUDA would not.
        return None
    return made(
        matrix,
        Wanted(
            python=axes.python,
            accelerator=accelerator,
            torch=axes.torch,
            source=cast("Source | None", axes.source),
            platform=platform,
        ),
    )


def _add_extras(base: Variant, wanted: Wanted, twins: list[Variant]) -> Variant:
    """`base` with more extras: itself where it has them, else a listed twin that does, else one by rule."""
    added = [extra for extra in wanted.extras if extra not in base.extras]
    if not added:
        return base
    complete = {*base.extras, *added}
    for variant in twins:
        if set(variant.extras) == complete:
            return variant
    return replace(
        base,
        name=with_extras(base.name, added),
        extras=(*base.extras, *sorted(added)),
        platforms=_narrowed(base.platforms, wanted.platform),
    )


def _narrowed(platforms: tuple[str, ...], platform: str | None) -> tuple[str, ...]:
    """The one platform where it is among them; else all, for others to refuse with a reason."""
    return (platform,) if platform is not None and platform in platforms else platforms


def made(matrix: Matrix, wanted: Wanted) -> Variant:
    """A variant by rule, from the first source in the matrix's order that has such a build."""
    python = wanted.python or matrix.defaults.python
    accelerator = wanted.accelerator or CPU
    by_order = matrix.defaults.sources[CPU if accelerator == CPU else "cuda"]
    source = wanted.source or _first_source(matrix, by_order, accelerator, wanted.torch, python)
    rules = matrix.sources[source]
    require(rules, accelerator, wanted.torch, python)
    platforms = on_platforms(matrix.defaults.platforms[CPU if accelerator == CPU else "cuda"], rules)
    if not platforms:
        raise InputError(
            _("{source} serves none of the platforms that {matrix} names").format(
                source=source, matrix=matrix.path
            ),
            _("add one to defaults.platforms"),
        )
    try:
        shown = (
            None if source == _first_source(matrix, by_order, accelerator, wanted.torch, python) else source
        )
    except InputError:
        shown = source
    name = make_name(MadeName(python=python, accelerator=accelerator, torch=wanted.torch, source=shown))
    variant = Variant(
        name=name,
        python=python,
        accelerator=accelerator,
        torch=str(wanted.torch or rules.default_torch(accelerator)),
        source=source,
        platforms=_narrowed(platforms, wanted.platform),
    )
    return _add_extras(variant, wanted, [variant])


def _first_source(
    matrix: Matrix, order: Sequence[Source], accelerator: str, torch: Constraint | None, python: str
) -> Source:
    """The first source that has such a build; InputError with every source's reason where none has."""
    refusals = []
    for source in order:
        try:
            require(matrix.sources[source], accelerator, torch, python)
        except InputError as refusal:
            refusals.append(refusal)
        else:
            return source
    raise InputError(
        "; ".join(dict.fromkeys(refusal.message for refusal in refusals))
        or _("defaults.sources names no source for {build}").format(build=accelerator),
        "; ".join(dict.fromkeys(refusal.hint for refusal in refusals if refusal.hint)),
    )


def _require(matrix: Matrix, variant: Variant) -> None:
    """InputError where a listed variant cannot exist."""
    torch = parse_constraint(variant.torch)
    require(matrix.sources[variant.source], variant.accelerator, torch, variant.python)
