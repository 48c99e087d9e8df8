"""environments/matrix.yaml, read strictly: every mistake at once, each with its line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast, get_args

from envkit.errors import InputError
from envkit.files import line_of, read_yaml
from envkit.matrix.axes import cuda_version, python_version
from envkit.matrix.constraint import Constraint, parse_constraint
from envkit.matrix.fields import Problems, Section
from envkit.matrix.layout import Defaults, Extra, Matrix, Packages, SourceRules
from envkit.messages import _
from envkit.model import CPU, Source, Variant

__all__ = ["PLATFORMS", "SCHEMA", "read_matrix"]

SCHEMA = 1
PLATFORMS = (
    "linux-64",
    "linux-aarch64",
    "linux-ppc64le",
    "osx-64",
    "osx-arm64",
    "win-64",
    "win-arm64",
)
SOURCES: tuple[Source, ...] = get_args(Source)
KINDS = (CPU, "cuda")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_GLIBC = re.compile(r"\d+\.\d+")
_NEVER_A_SPEC = re.compile(r"[\n\r\t#\"'\\{}]|^-|://|::")


def read_matrix(path: Path) -> Matrix:
    """The matrix in a file. InputError names all mistakes, the first of them with file and line."""
    document = read_yaml(path)
    if not isinstance(document, dict):
        raise InputError(
            _("this must be a mapping with the keys {keys}").format(keys=", ".join(_TOP)), path=path, line=1
        )
    problems = Problems(path=path)
    top = Section(name="", problems=problems, content=document, line=1)
    _check_schema(top, path)
    top.only(_TOP)
    sources = _sources(top.child("sources", required=True))
    defaults = _defaults(top.child("defaults", required=True), sources)
    extras = _extras(top.child("extras"), sources)
    variants = _variants(top.child("variants", required=True), defaults, sources, extras)
    if not variants:
        problems.add(line_of(document, "variants") or 1, _("no variant is listed"))
    problems.refuse()
    return Matrix(path=path, defaults=defaults, sources=sources, extras=extras, variants=variants)


_TOP = ("schema", "defaults", "sources", "extras", "variants")


def _check_schema(top: Section, path: Path) -> None:
    """Stops at once: the rest of a file of another schema means something else."""
    schema = top.content.get("schema")
    line = line_of(top.content, "schema") or 1
    if isinstance(schema, bool) or not isinstance(schema, int):
        raise InputError(
            _("schema must be the number {known}").format(known=SCHEMA),
            _("write `schema: {known}` at the top").format(known=SCHEMA),
            path=path,
            line=line,
        )
    if schema != SCHEMA:
        raise InputError(
            _("schema {schema} is not known here (this envkit reads {known})").format(
                schema=schema, known=SCHEMA
            ),
            _("update envkit: run `git pull`") if schema > SCHEMA else "",
            path=path,
            line=line,
        )


def _defaults(section: Section, sources: Mapping[Source, SourceRules]) -> Defaults:
    section.only(("python", "sources", "glibc", "platforms", "packages"))
    order, platforms = section.child("sources", required=True), section.child("platforms", required=True)
    order.only(KINDS)
    platforms.only(KINDS)
    return Defaults(
        python=_python(section, "python", required=True),
        glibc=_glibc(section, "glibc", section.text("glibc", "2.17")),
        sources={
            kind: cast(
                "tuple[Source, ...]",
                order.each(kind, sources, order.texts(kind, required=True), lambda: _("source")),
            )
            for kind in KINDS
        },
        platforms={
            kind: platforms.each(kind, PLATFORMS, platforms.texts(kind, required=True), lambda: _("platform"))
            for kind in KINDS
        },
        packages=_packages(section.child("packages"), ("conda", "pip")),
    )


def _sources(section: Section) -> dict[Source, SourceRules]:
    section.only(SOURCES)
    found: dict[Source, SourceRules] = {}
    for name, rules in section.children():
        if name not in SOURCES:
            continue
        rules.only(("channels", "torch", "python", "builds", "guard", "needs", "glibc", "platforms"))
        guard, needs, glibc = rules.child("guard"), rules.child("needs"), rules.child("glibc")
        guard.only(KINDS)
        needs.only(KINDS)
        builds = _builds(rules.child("builds", required=True))
        found[name] = SourceRules(
            name=name,
            channels=_channels(rules),
            builds=builds,
            torch=_constraint(rules, "torch") if "torch" in rules.content else None,
            python=_constraint(rules, "python") if "python" in rules.content else None,
            guard={kind: guard.text(kind) for kind in KINDS if kind in guard.content},
            needs={kind: _specs(needs, kind, fillable=True) for kind in KINDS if kind in needs.content},
            glibc={
                accelerator: _glibc(glibc, accelerator, glibc.text(accelerator, required=True))
                for accelerator in glibc.each(
                    "", builds, [key for key in glibc.content if isinstance(key, str)], lambda: _("build")
                )
            },
            platforms=rules.each("platforms", PLATFORMS, rules.texts("platforms"), lambda: _("platform")),
        )
    return found


def _builds(section: Section) -> dict[str, Constraint]:
    found = {}
    for key in section.content:
        accelerator = CPU if key == CPU else cuda_version(key) if isinstance(key, str) else None
        if accelerator is None:
            section.wrong(
                key,
                _("'{key}' in {section} is not a CUDA version").format(key=key, section=section.name),
                _('write "cpu" or a version in quotes, such as "12.4"'),
            )
            continue
        if (constraint := _constraint(section, key)) is not None:
            found[accelerator] = constraint
    return found


def _channels(section: Section) -> tuple[str, ...]:
    right = []
    for channel in section.texts("channels"):
        if channel == "nodefaults":
            continue  # rendered always
        if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*", channel) is None:
            section.wrong(
                "channels",
                _("'{channel}' is not the name of a channel").format(channel=channel),
                _("name channels, not addresses: mirrors are chosen with MIRROR="),
            )
            continue
        right.append(channel)
    return tuple(right)


def _extras(section: Section, sources: Mapping[Source, SourceRules]) -> dict[str, Extra]:
    found = {}
    for name, extra in section.children():
        _check_name(section, name)
        extra.only(("conda", "pip", "beside"))
        beside = extra.child("beside")
        beside.only(sources)
        found[name] = Extra(
            name=name,
            packages=_packages(extra, ("conda", "pip", "beside")),
            beside={
                cast("Source", source): _packages(part, ("conda", "pip"))
                for source, part in beside.children()
                if source in sources
            },
        )
    return found


def _packages(section: Section, keys: tuple[str, ...]) -> Packages:
    section.only(keys)
    return Packages(conda=_specs(section, "conda"), pip=_specs(section, "pip"))


def _specs(section: Section, key: str, *, fillable: bool = False) -> tuple[str, ...]:
    right = []
    for spec in section.texts(key):
        bare = spec.replace("{cuda}", "").replace("{tag}", "") if fillable else spec
        if _NEVER_A_SPEC.search(bare):
            section.wrong(
                key,
                _("'{spec}' is not a package name with a version").format(spec=spec),
                _('write the name and, where needed, a version: "numpy<2"'),
            )
            continue
        right.append(spec)
    return tuple(right)


def _variants(
    section: Section,
    defaults: Defaults,
    sources: Mapping[Source, SourceRules],
    extras: Mapping[str, Extra],
) -> tuple[Variant, ...]:
    found: dict[str, Variant] = {}
    for name, axes in section.children():
        _check_name(section, name)
        variant = _variant(name, axes, defaults, sources, extras)
        if variant is None:
            continue
        twin = next((other for other in found.values() if _same_axes(other, variant)), None)
        if twin is not None:
            section.wrong(
                name,
                _("'{name}' has the same axes as '{twin}', so it can never be chosen by them").format(
                    name=name, twin=twin.name
                ),
                _("change an axis of one of them or delete it"),
            )
        found[name] = variant
    return tuple(found.values())


def _variant(
    name: str,
    axes: Section,
    defaults: Defaults,
    sources: Mapping[Source, SourceRules],
    extras: Mapping[str, Extra],
) -> Variant | None:
    axes.only(("python", "cuda", "torch", "source", "platforms", "extras"))
    python = _python(axes, "python", default=defaults.python)
    written = axes.text("cuda", required=True)
    source_names = axes.each("source", sources, [axes.text("source", required=True)], lambda: _("source"))
    chosen = axes.each("extras", extras, axes.texts("extras"), lambda: _("extra"))
    platforms = axes.each("platforms", PLATFORMS, axes.texts("platforms"), lambda: _("platform"))
    torch = _constraint(axes, "torch") if "torch" in axes.content else None
    accelerator = cuda_version(written)
    if written and accelerator is None:
        axes.wrong(
            "cuda",
            _("'{value}' is not a CUDA version").format(value=written),
            _('write "cpu" or a version in quotes, such as "12.4"'),
        )
    if accelerator is None or not source_names:
        return None
    rules = sources[cast("Source", source_names[0])]
    if accelerator not in rules.builds:
        axes.wrong(
            "cuda",
            _("sources.{source}.builds has no '{accelerator}'").format(
                source=rules.name, accelerator=accelerator
            ),
            _("add it there or choose one of {builds}").format(builds=", ".join(rules.builds)),
        )
        return None
    kind = CPU if accelerator == CPU else "cuda"
    return Variant(
        name=name,
        python=python,
        accelerator=accelerator,
        torch=str(torch or rules.default_torch(accelerator)),
        source=rules.name,
        platforms=platforms or on_platforms(defaults.platforms[kind], rules),
        extras=chosen,
    )


def on_platforms(wanted: tuple[str, ...], rules: SourceRules) -> tuple[str, ...]:
    """Those of the wanted platforms that the source serves; all of them where it names none."""
    return tuple(platform for platform in wanted if not rules.platforms or platform in rules.platforms)


def _same_axes(one: Variant, other: Variant) -> bool:
    return (one.python, one.accelerator, one.torch, one.source, frozenset(one.extras), one.platforms) == (
        other.python,
        other.accelerator,
        other.torch,
        other.source,
        frozenset(other.extras),
        other.platforms,
    )


def _check_name(section: Section, name: str) -> None:
    if name.startswith("wheels-"):
        section.wrong(
            name,
            _("'{name}': names that begin with wheels- are kept for the wheel channel").format(name=name),
            _("choose another name"),
        )
    if _NAME.fullmatch(name) is None or ".." in name or len(name) > 80:
        section.wrong(
            name,
            _("'{name}' cannot be a name in {section}").format(name=name, section=section.name),
            _("use letters, digits, '.', '_' and '-'; '+' is kept for names made from EXTRAS="),
        )


def _python(section: Section, key: str, default: str = "3.11", *, required: bool = False) -> str:
    written = section.text(key, default, required=required)
    version = python_version(written)
    if version is None:
        section.wrong(
            key,
            _("'{value}' is not a Python minor version").format(value=written),
            _('write it like "3.11"'),
        )
    return version or default


def _glibc(section: Section, key: str, value: str) -> str:
    if value and _GLIBC.fullmatch(value) is None:
        section.wrong(
            key, _("'{value}' is not a glibc version").format(value=value), _('write it like "2.17"')
        )
    return value


def _constraint(section: Section, key: Any) -> Constraint | None:
    written = section.text(key, required=True)
    constraint = parse_constraint(written) if written else None
    if written and constraint is None:
        section.wrong(
            key,
            _("'{value}' is not a version constraint").format(value=written),
            _('write it like "2.3.*", "<=2.5.1" or ">=2.0,<2.4"'),
        )
    return constraint
