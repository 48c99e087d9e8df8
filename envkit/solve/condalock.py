"""The adapter to conda-lock: parses environment.yml and writes the v1 format, with its own parser and models.

conda_lock is imported inside functions only, here and in `pip_section`: it takes a second.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import yaml

from envkit import paths
from envkit.errors import Findings, InputError
from envkit.lock import DIGEST_KEY, SCHEMA, SCHEMA_KEY, size_notes
from envkit.lock.formats import PipIndexes
from envkit.lock.pypi_names import conda_lock_map
from envkit.messages import _
from envkit.model import Lock, Spec, VirtualPackage
from envkit.solve.chatter import without_chatter
from envkit.solve.engine import Solved
from envkit.solve.pip_lines import configured_indexes, lift_pip_options
from envkit.solve.pip_section import PipSection, lock_pip_section

if TYPE_CHECKING:
    from conda_lock.lockfile.v2prelim.models import LockedDependency
    from conda_lock.models.lock_spec import LockSpecification
    from conda_lock.virtual_package import FakeRepoData

__all__ = ["Request", "open_request"]

_SOURCE = "environment.yml"
_MATRIX = "matrix.yaml"
"""The file that a variant's environment.yml is rendered from: then that is the lock's source."""

_HEADER = """\
# Made by envkit for the environment `{name}`. Do not edit: `envkit lock {again}` makes it again.
# The format is conda-lock's (v1): `conda-lock install --name {name} conda-lock.yml` installs it as well.
"""


class Request:
    """A Spec as conda-lock understands it, and the packages found for it so far."""

    def __init__(
        self, spec: Spec, parsed: LockSpecification, virtual: FakeRepoData, names: str, pip: PipIndexes
    ) -> None:
        self.spec = spec
        self._parsed = parsed
        self._virtual = virtual
        self._names = names
        self._pip = pip
        self._configured: PipIndexes | None = None

    @property
    def platforms(self) -> tuple[str, ...]:
        return tuple(self._parsed.platforms)

    @property
    def has_pip(self) -> bool:
        """Whether anything is to come from the Python index."""
        return any(self._wanted(platform, "pip") for platform in self.platforms)

    def match_specs(self, platform: str) -> tuple[str, ...]:
        """The conda packages asked for on `platform`, as match specs in conda-build's form."""
        from conda_lock.conda_solver import _to_match_spec
        from conda_lock.models.lock_spec import VersionedDependency

        return tuple(
            _to_match_spec(wanted.name, wanted.version, wanted.build, wanted.conda_channel)
            for wanted in self._wanted(platform, "conda").values()
            if isinstance(wanted, VersionedDependency)
        )

    def lock_conda(self, platform: str, solved: Sequence[Solved]) -> dict[str, LockedDependency]:
        """The solved packages of `platform` as entries of the lock, each with its category."""
        from conda_lock.lockfile import apply_categories

        planned = {package.name: _entry(package, platform, self._parsed.channels) for package in solved}
        apply_categories(requested=self._wanted(platform, "conda"), planned=planned, mapping_url=self._names)
        return planned

    def lock_pip(
        self,
        platform: str,
        conda: Mapping[str, LockedDependency],
        *,
        locked: Lock | None = None,
        update: Collection[str] = (),
        mirrors: Sequence[str] = (),
        alike: Callable[[str], Sequence[str]] = lambda name: (),
    ) -> dict[str, LockedDependency]:
        """The pip section of `platform`, solved beside the conda packages. Opens connections.

        conda-lock's own resolver is used; it asks the indexes of environment.yml and of pip's configuration.
        What `locked` has stays where it can, but for the names in `update`. `mirrors` are hosts to ask for
        PyTorch's wheels; `alike` finds names that are spelled much like one that no index has.
        Raises Findings where it finds no solution, Error where an index does not answer.
        """
        wanted = self._wanted(platform, "pip")
        if not wanted:
            return {}
        if "python" not in conda:
            raise InputError(
                _("{name}: a pip section needs python among the conda packages").format(
                    name=self.spec.variant.name
                ),
                _("add `python` to the dependencies of environment.yml"),
            )
        if self._configured is None:
            self._configured = configured_indexes()
        indexes = self._pip.before(self._configured)
        return lock_pip_section(
            PipSection(
                name=self.spec.variant.name,
                platform=platform,
                wanted=wanted,
                conda=conda,
                repositories=tuple(repository.url for repository in self._parsed.pip_repositories),
                indexes=indexes.indexes,
                default_index=self._parsed.allow_pypi_requests and indexes.default_index,
                virtual_packages=self._virtual.all_repodata[platform]["packages"],
                names=self._names,
                locked=() if locked is None else locked.on(platform),
                update=tuple(update),
                copies=self._configured.indexes,
                mirrors=tuple(mirrors),
                alike=alike,
            )
        )

    def to_text(self, packages: Sequence[LockedDependency], sizes: Mapping[str, Sequence[int | None]]) -> str:
        """The lock as a conda-lock v1 file: sorted as conda-lock does, no time stamp, no machine's path.

        `sizes` are those of each platform's conda archives, in bytes.
        """
        from conda_lock.content_hash import compute_content_hashes
        from conda_lock.lockfile.v2prelim.models import Lockfile, LockMeta

        own = Path(self.spec.origin).name == _MATRIX
        content = Lockfile(
            package=list(packages),
            metadata=LockMeta(
                content_hash=compute_content_hashes(self._parsed, self._virtual),
                channels=self._parsed.channels,
                platforms=sorted(self.platforms),
                sources=[_SOURCE if own else Path(self.spec.origin).name],
                custom_metadata={
                    SCHEMA_KEY: SCHEMA,
                    DIGEST_KEY: self.spec.digest,
                    **size_notes(sizes),
                },
            ),
        )
        content.alphasort_inplace()
        content.filter_virtual_packages_inplace()
        dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
        # A width beyond any value: the C and the Python emitter fold long lines at different places.
        body = yaml.dump(content.to_v1().dict_for_output(), Dumper=dumper, sort_keys=False, width=1 << 16)
        name = self.spec.variant.name
        again = name if own else f"--file {Path(self.spec.origin).name}"
        return _HEADER.format(name=name, again=again) + body

    def _wanted(self, platform: str, manager: str) -> dict[str, Any]:
        return {
            wanted.name: wanted for wanted in self._parsed.dependencies[platform] if wanted.manager == manager
        }


@contextlib.contextmanager
def open_request(spec: Spec) -> Iterator[Request]:
    """Parse a rendered environment.yml with conda-lock's own parser.

    Raises InputError for what cannot be parsed: no channels, a constraint that is none, pip option lines
    that cannot be honoured.
    """
    if not spec.channels:
        raise InputError(
            _("{name}: no channels to solve from").format(name=spec.variant.name),
            _("list at least one channel under `channels:` in environment.yml"),
        )
    text, pip = lift_pip_options(spec.text)
    with TemporaryDirectory(prefix=paths.scratch("lock")) as folder:
        source = Path(folder) / _SOURCE
        source.write_text(text, encoding="utf-8")
        names = conda_lock_map()
        yield Request(spec, _parse(spec, source, names), _virtual_repodata(spec, Path(folder)), names, pip)


def _parse(spec: Spec, source: Path, names: str) -> LockSpecification:
    from conda_lock.src_parser import make_lock_spec

    try:
        with without_chatter():
            return make_lock_spec(
                src_files=[source],
                channel_overrides=list(spec.channels),
                platform_overrides=list(spec.variant.platforms),
                mapping_url=names,
            )
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        raise InputError(
            str(problem.problem or problem), path=Path(_SOURCE), line=mark.line + 1 if mark else None
        ) from None
    except Exception as problem:
        # conda-lock has no error class for input: KeyError, AttributeError, RuntimeError all occur.
        raise InputError(
            _("{name}: conda-lock cannot read the rendered environment.yml: {reason}").format(
                name=spec.variant.name, reason=problem
            ),
            _("look at it with `envkit render {name}`").format(name=spec.variant.name),
        ) from None


def _virtual_repodata(spec: Spec, folder: Path) -> FakeRepoData:
    """The virtual packages as conda-lock keeps them: they go into its content hash and its manylinux tags."""
    from conda_lock.virtual_package import FakeRepoData
    from conda_lock.virtual_package import VirtualPackage as Theirs

    repodata = FakeRepoData(base_path=folder)
    for platform, packages in sorted(spec.virtual_packages.items()):
        for package in packages:
            repodata.add_package(
                Theirs(name=package.name, version=package.version, build_string=_build_string(package)),
                subdirs=[platform],
            )
    repodata.write()
    return repodata


def _build_string(package: VirtualPackage) -> str:
    """conda-lock writes no build string where it is just the build number."""
    return "" if package.build == "0" else package.build


def _entry(package: Solved, platform: str, channels: list[Any]) -> LockedDependency:
    from conda_lock.lockfile.v2prelim.models import HashModel, LockedDependency
    from conda_lock.models.channel import normalize_url_with_placeholders

    if package.sha256 is None:
        raise Findings(
            _("{url}: the channel states no sha256 for it, so it cannot be locked").format(url=package.url),
            _("ask for another version of {name}").format(name=package.name),
        )
    return LockedDependency(
        name=package.name,
        version=package.version,
        manager="conda",
        platform=platform,
        dependencies=_merged_depends(package.depends),
        # A token in a channel's URL goes into the lock as the name of its environment variable.
        url=normalize_url_with_placeholders(package.url, channels=channels),
        hash=HashModel(md5=package.md5 or "", sha256=package.sha256),
    )


@cache
def _parsed(depend: str) -> Any:
    """The same few thousand texts stand in every variant's records; parsing one is slow."""
    from conda_lock.interfaces.vendored_conda import MatchSpec

    return MatchSpec(depend)


def _merged_depends(depends: Sequence[str]) -> dict[str, str]:
    """Dependencies as v1 can hold them: a name and a version constraint. The build part is lost."""
    from conda_lock.interfaces.vendored_conda import MatchSpec

    by_name: dict[str, list[Any]] = {}
    for depend in depends:
        spec = _parsed(depend)
        by_name.setdefault(spec.name, []).append(spec)
    merged = {
        name: specs[0] if len(specs) == 1 else MatchSpec.merge(specs)[0] for name, specs in by_name.items()
    }
    return {name: spec.version.spec_str if spec.version is not None else "" for name, spec in merged.items()}
