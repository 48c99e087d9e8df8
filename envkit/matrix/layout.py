"""What matrix.yaml says, parsed and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from envkit.matrix.constraint import Constraint
from envkit.model import CPU, Source, Variant

__all__ = ["Defaults", "Extra", "Matrix", "Packages", "SourceRules"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Packages:
    """Specs to ask for: `conda` from channels, `pip` from an index."""

    conda: tuple[str, ...] = ()
    pip: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Extra:
    """A named group of packages, and what stands in its place beside some sources."""

    name: str
    packages: Packages
    beside: Mapping[Source, Packages] = field(default_factory=dict)

    def at(self, source: Source) -> Packages:
        """What the extra asks for in an environment from `source`.

        Where everything comes by pip, the conda specs are left out; elsewhere the pip names are, unless
        they are named for this very source.
        """
        if source in self.beside:
            return self.beside[source]
        if source in ("pip", "wheels"):
            return Packages(pip=self.packages.pip)
        return Packages(conda=self.packages.conda)


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceRules:
    """Where PyTorch comes from, and what exists there.

    `builds` maps an accelerator ("cpu", "11.8") to the torch releases built for it; `python` bounds what they
    are made for. `guard` and `needs` are keyed by "cpu" and "cuda": the build string to demand and the specs
    to ask for beside pytorch, in which `{cuda}` is "11.8" and `{tag}` is "118". `glibc` holds the floors
    that are higher than the matrix's own. `indexes` maps an accelerator to the Python index that has its
    builds, where that is not the public one; the address is canonical, mirrors of it are transports.
    """

    name: Source
    channels: tuple[str, ...]
    builds: Mapping[str, Constraint]
    torch: Constraint | None = None
    python: Constraint | None = None
    guard: Mapping[str, str] = field(default_factory=dict)
    needs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    glibc: Mapping[str, str] = field(default_factory=dict)
    platforms: tuple[str, ...] = ()
    indexes: Mapping[str, str] = field(default_factory=dict)

    def default_torch(self, accelerator: str) -> Constraint:
        """The constraint for a variant that names no torch."""
        return self.torch or self.builds[accelerator]

    def build_string(self, accelerator: str) -> str | None:
        """The build string a pytorch record must have, as a glob."""
        pattern = self.guard.get(_kind(accelerator))
        return None if pattern is None else _fill(pattern, accelerator)

    def companions(self, accelerator: str) -> tuple[str, ...]:
        """The specs that choose the accelerator beside pytorch itself."""
        return tuple(_fill(spec, accelerator) for spec in self.needs.get(_kind(accelerator), ()))


@dataclass(frozen=True, kw_only=True, slots=True)
class Defaults:
    """What holds where nothing else is said. `platforms` and `sources` are keyed by "cpu" and "cuda"."""

    python: str
    glibc: str
    sources: Mapping[str, tuple[Source, ...]]
    platforms: Mapping[str, tuple[str, ...]]
    packages: Packages = field(default_factory=Packages)


@dataclass(frozen=True, kw_only=True, slots=True)
class Matrix:
    """A team's environments, in the order of the file: the first that fits is preferred.

    `uncommitted` names the variants whose locks the team does not keep.
    """

    path: Path
    defaults: Defaults
    sources: Mapping[Source, SourceRules]
    extras: Mapping[str, Extra]
    variants: tuple[Variant, ...]
    uncommitted: frozenset[str] = frozenset()

    @property
    def root(self) -> Path:
        """The project folder, which holds environments/ and may hold templates/."""
        return self.path.absolute().parent.parent

    def named(self, name: str) -> Variant | None:
        """The listed variant of that name."""
        return next((variant for variant in self.variants if variant.name == name), None)

    def lists(self, variant: Variant) -> bool:
        """Whether the variant is the matrix's own, and so rendered and locked under environments/."""
        return variant in self.variants

    def commits(self, variant: Variant) -> bool:
        """Whether a lock of the variant belongs in the project: `envkit lock --all` makes it."""
        return self.lists(variant) and variant.name not in self.uncommitted

    def glibc(self, variant: Variant) -> str:
        """The oldest glibc on which an environment of this variant must run."""
        return self.sources[variant.source].glibc.get(variant.accelerator, self.defaults.glibc)

    def packages(self, variant: Variant) -> Packages:
        """What is asked for beside Python and PyTorch: the common packages, then those of the extras."""
        common = Extra(name="", packages=self.defaults.packages).at(variant.source)
        groups = [common, *(self.extras[name].at(variant.source) for name in variant.extras)]
        return Packages(
            conda=tuple(dict.fromkeys(spec for group in groups for spec in group.conda)),
            pip=tuple(dict.fromkeys(spec for group in groups for spec in group.pip)),
        )


def _kind(accelerator: str) -> str:
    return CPU if accelerator == CPU else "cuda"


def _fill(pattern: str, accelerator: str) -> str:
    return pattern.replace("{cuda}", accelerator).replace("{tag}", accelerator.replace(".", ""))
