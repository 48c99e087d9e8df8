"""The variants that matrix.yaml lists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from envkit.matrix import values
from envkit.matrix.axes import cuda_version
from envkit.matrix.fields import Section
from envkit.matrix.layout import Defaults, Extra, SourceRules
from envkit.messages import _
from envkit.model import CPU, Source, Variant

__all__ = ["on_platforms", "read_uncommitted", "read_variants"]


def read_variants(
    section: Section,
    defaults: Defaults,
    sources: Mapping[Source, SourceRules],
    extras: Mapping[str, Extra],
) -> tuple[Variant, ...]:
    """The variants in the order of the file, those apart in which something is wrong."""
    found: dict[str, Variant] = {}
    for name, axes in section.children():
        values.check_name(section, name)
        variant = _variant(name, axes, defaults, sources, extras)
        if variant is None:
            continue
        twin = next((other for other in found.values() if _axes(other) == _axes(variant)), None)
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


def read_uncommitted(section: Section) -> frozenset[str]:
    """The names of the variants that say `committed: false`."""
    return frozenset(name for name, axes in section.children() if not axes.flag("committed", default=True))


def on_platforms(wanted: tuple[str, ...], rules: SourceRules) -> tuple[str, ...]:
    """Those of the wanted platforms that the source serves; all of them where it names none."""
    return tuple(platform for platform in wanted if not rules.platforms or platform in rules.platforms)


def _variant(
    name: str,
    axes: Section,
    defaults: Defaults,
    sources: Mapping[Source, SourceRules],
    extras: Mapping[str, Extra],
) -> Variant | None:
    axes.only(("python", "cuda", "torch", "source", "platforms", "extras", "committed"))
    python = values.python(axes, "python", default=defaults.python)
    chosen = axes.each("extras", extras, axes.texts("extras"), lambda: _("extra"))
    torch = values.constraint(axes, "torch") if "torch" in axes.content else None
    platforms = axes.each("platforms", values.PLATFORMS, axes.texts("platforms"), lambda: _("platform"))
    accelerator = _accelerator(axes)
    rules = _rules(axes, sources, accelerator)
    if accelerator is None or rules is None:
        return None
    kind = CPU if accelerator == CPU else "cuda"
    served = on_platforms(platforms or defaults.platforms[kind], rules)
    if not served or (platforms and served != platforms):
        axes.wrong(
            "platforms",
            _("{source} serves {platforms} only").format(
                source=rules.name, platforms=", ".join(rules.platforms) or _("what defaults.platforms names")
            ),
            _("change the platforms of {name}, or those of sources.{source}").format(
                name=name, source=rules.name
            ),
        )
        return None
    return Variant(
        name=name,
        python=python,
        accelerator=accelerator,
        torch=str(torch or rules.default_torch(accelerator)),
        source=rules.name,
        platforms=served,
        extras=chosen,
    )


def _accelerator(axes: Section) -> str | None:
    written = axes.text("cuda", required=True)
    accelerator = cuda_version(written)
    if written and accelerator is None:
        axes.wrong(
            "cuda",
            _("'{value}' is not a CUDA version").format(value=written),
            _('write "cpu" or a version in quotes, such as "12.4"'),
        )
    return accelerator


def _rules(
    axes: Section, sources: Mapping[Source, SourceRules], accelerator: str | None
) -> SourceRules | None:
    """The rules of the variant's source, where that has a build for the accelerator."""
    written = axes.text("source", required=True)
    if not written or not axes.each("source", sources, [written], lambda: _("source")):
        return None
    rules = sources[cast("Source", written)]
    if not rules.channels:
        axes.wrong(
            "source",
            _("{source} has no channels, so there is nothing to render or lock").format(source=rules.name),
            _("choose a source with channels"),
        )
        return None
    if accelerator is not None and accelerator not in rules.builds:
        axes.wrong(
            "cuda",
            _("sources.{source}.builds has no '{accelerator}'").format(
                source=rules.name, accelerator=accelerator
            ),
            _("add it there or choose one of {builds}").format(builds=", ".join(rules.builds)),
        )
        return None
    return rules


def _axes(variant: Variant) -> Variant:
    """The variant as axes see it: without its name, the order of its extras aside."""
    return replace(variant, name="", extras=tuple(sorted(variant.extras)))
