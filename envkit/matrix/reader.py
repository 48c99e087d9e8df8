"""environments/matrix.yaml, read strictly: every mistake at once, each with its line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import cast, get_args

from envkit.errors import InputError
from envkit.files import line_of, read_yaml
from envkit.matrix import values
from envkit.matrix.axes import cuda_version
from envkit.matrix.constraint import Constraint
from envkit.matrix.fields import Problems, Section
from envkit.matrix.layout import Defaults, Extra, Matrix, SourceRules
from envkit.matrix.variants import read_uncommitted, read_variants
from envkit.messages import _
from envkit.model import CPU, Source

__all__ = ["SCHEMA", "read_matrix"]

SCHEMA = 1

_TOP = ("schema", "defaults", "sources", "extras", "variants")
_SOURCES: tuple[Source, ...] = get_args(Source)


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
    listed = top.child("variants", required=True)
    variants = read_variants(listed, defaults, sources, extras)
    uncommitted = read_uncommitted(listed)
    if not variants:
        problems.add(line_of(document, "variants") or 1, _("no variant is listed"))
    problems.refuse()
    return Matrix(
        path=path,
        defaults=defaults,
        sources=sources,
        extras=extras,
        variants=variants,
        uncommitted=uncommitted,
    )


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
    order.only(values.KINDS)
    platforms.only(values.KINDS)
    return Defaults(
        python=values.python(section, "python", required=True),
        glibc=values.glibc(section, "glibc", section.text("glibc", "2.17")),
        sources={
            kind: cast(
                "tuple[Source, ...]",
                order.each(kind, sources, order.texts(kind, required=True), lambda: _("source")),
            )
            for kind in values.KINDS
        },
        platforms={
            kind: platforms.each(
                kind, values.PLATFORMS, platforms.texts(kind, required=True), lambda: _("platform")
            )
            for kind in values.KINDS
        },
        packages=values.packages(section.child("packages"), ("conda", "pip")),
    )


def _sources(section: Section) -> dict[Source, SourceRules]:
    section.only(_SOURCES)
    found: dict[Source, SourceRules] = {}
    for name, rules in section.children():
        if name not in _SOURCES:
            continue
        rules.only(
            ("channels", "torch", "python", "builds", "guard", "needs", "indexes", "glibc", "platforms")
        )
        guard, needs, glibc = rules.child("guard"), rules.child("needs"), rules.child("glibc")
        indexes = rules.child("indexes")
        guard.only(values.KINDS)
        needs.only(values.KINDS)
        builds = _builds(rules.child("builds", required=True))
        found[name] = SourceRules(
            name=name,
            channels=values.channels(rules),
            builds=builds,
            torch=values.constraint(rules, "torch") if "torch" in rules.content else None,
            python=values.constraint(rules, "python") if "python" in rules.content else None,
            guard={kind: guard.text(kind) for kind in values.KINDS if kind in guard.content},
            needs={
                kind: values.specs(needs, kind, fillable=True)
                for kind in values.KINDS
                if kind in needs.content
            },
            indexes={
                accelerator: values.index(indexes, accelerator) for accelerator in _among(indexes, builds)
            },
            glibc={
                accelerator: values.glibc(glibc, accelerator, glibc.text(accelerator, required=True))
                for accelerator in _among(glibc, builds)
            },
            platforms=rules.each(
                "platforms", values.PLATFORMS, rules.texts("platforms"), lambda: _("platform")
            ),
        )
    return found


def _among(section: Section, builds: Mapping[str, Constraint]) -> tuple[str, ...]:
    """The keys of a section that has something to say of single builds."""
    return section.each(
        "", builds, [key for key in section.content if isinstance(key, str)], lambda: _("build")
    )


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
        if (constraint := values.constraint(section, key)) is not None:
            found[accelerator] = constraint
    return found


def _extras(section: Section, sources: Mapping[Source, SourceRules]) -> dict[str, Extra]:
    found = {}
    for name, extra in section.children():
        values.check_name(section, name)
        extra.only(("conda", "pip", "beside"))
        beside = extra.child("beside")
        beside.only(sources)
        found[name] = Extra(
            name=name,
            packages=values.packages(extra, ("conda", "pip", "beside")),
            beside={
                cast("Source", source): values.packages(part, ("conda", "pip"))
                for source, part in beside.children()
                if source in sources
            },
        )
    return found
