"""A variant of the matrix to the text of its environment.yml, and what a solver must know beside it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from types import TracebackType
from typing import Any

import jinja2
import yaml
from jinja2.sandbox import SandboxedEnvironment

from envkit.errors import InputError
from envkit.files import load_yaml
from envkit.matrix import Matrix
from envkit.matrix.constraint import Constraint
from envkit.matrix.pins import pins
from envkit.matrix.requirements import spec_name, torch_requirement
from envkit.messages import _
from envkit.model import Spec, Variant, VirtualPackage

__all__ = ["TEMPLATE", "Dependency", "digest", "environment_file", "render", "virtual_names"]

TEMPLATE = "environment.yml.j2"

_OWN_TEMPLATES = Path(__file__).parent.parent / "templates"


@dataclass(frozen=True, kw_only=True, slots=True)
class Dependency:
    """One line under `dependencies`: a spec and why it stands there (empty where that is plain)."""

    spec: str
    why: str = ""


def render(matrix: Matrix, variant: Variant) -> Spec:
    """The Spec of a variant, by the project's own templates/ and, for what is not there, envkit's.

    The text ends in one newline and is the same wherever it is rendered. Raises InputError with file and
    line for a template that cannot be read, does not parse, uses an unknown name, or makes what is no
    environment file.
    """
    rules = matrix.sources[variant.source]
    if not rules.channels:
        raise InputError(
            _("an environment from '{source}' is made on this machine, not rendered").format(
                source=variant.source
            ),
            _("run `envkit up --mirror {source}`").format(source=variant.source),
        )
    folders = (matrix.root / "templates", _OWN_TEMPLATES)
    text = _fill(folders, _context(matrix, variant))
    channels = _checked(text, _first_template(folders))
    packages = virtual_packages(variant, matrix.glibc(variant))
    return Spec(
        variant=variant,
        text=text,
        channels=channels,
        virtual_packages=packages,
        digest=digest(text, channels, packages),
        listed=matrix.lists(variant),
    )


def environment_file(root: Path, variant: Variant) -> Path:
    """Where the rendered text of a listed variant is committed."""
    return root / "environments" / variant.name / "environment.yml"


def digest(text: str, channels: tuple[str, ...], packages: Mapping[str, tuple[VirtualPackage, ...]]) -> str:
    """The sha256 (hex) that says whether a lock is still that of a Spec.

    It is taken over UTF-8 lines: `envkit-spec 1`, one `channel NAME` in priority order, one
    `PLATFORM NAME=VERSION=BUILD` for each virtual package (sorted), an empty line, the text. So it changes
    with anything a solve depends on, and with nothing else.
    """
    lines = ["envkit-spec 1", *(f"channel {channel}" for channel in channels)]
    lines += sorted(f"{platform} {package}" for platform, found in packages.items() for package in found)
    return hashlib.sha256("\n".join([*lines, "", text]).encode()).hexdigest()


def virtual_names(platform: str) -> frozenset[str]:
    """The virtual packages that machines of a platform can have at all; those of any for an unknown one."""
    rows = _platforms().get(platform)
    known = [row for group in _platforms().values() for row in group] if rows is None else rows
    gpu = () if platform.startswith("osx-") else ("__cuda", "__cuda_arch")
    return frozenset({row["name"] for row in known} | {"__conda", *gpu})


def virtual_packages(variant: Variant, glibc: str) -> dict[str, tuple[VirtualPackage, ...]]:
    """What the solver is told of the machines of each platform: never this one's properties."""
    found = {}
    for platform in variant.platforms:
        packages = [
            VirtualPackage(
                name=row["name"],
                version=glibc if row["name"] == "__glibc" else row["version"],
                build=row.get("build", "0"),
            )
            for row in _platforms()[platform]
        ]
        if variant.cuda is not None:
            packages.append(VirtualPackage(name="__cuda", version=variant.cuda))
        found[platform] = tuple(sorted(packages, key=lambda package: package.name))
    return found


@cache
def _platforms() -> dict[str, list[dict[str, str]]]:
    text = (resources.files("envkit") / "data" / "virtual_packages.yaml").read_text(encoding="utf-8")
    platforms: dict[str, list[dict[str, str]]] = load_yaml(text)["platforms"]
    return platforms


def _context(matrix: Matrix, variant: Variant) -> dict[str, object]:
    """The names a template may use; templates/environment.yml.j2 explains them."""
    dependencies, pip = _dependencies(matrix, variant)
    return {
        "variant": variant,
        "channels": (*matrix.sources[variant.source].channels, "nodefaults"),
        "dependencies": dependencies,
        "pip": pip,
    }


def _dependencies(matrix: Matrix, variant: Variant) -> tuple[tuple[Dependency, ...], tuple[str, ...]]:
    rules, packages = matrix.sources[variant.source], matrix.packages(variant)
    found = [Dependency(spec=f"python={variant.python}")]
    pip = list(packages.pip)
    if variant.source == "pip":
        # pip itself is conda's: it is what installs the others.
        pip = [torch_requirement(Constraint(variant.torch)), *(name for name in pip if name != "pip")]
        if (index := rules.indexes.get(variant.accelerator)) is not None:
            pip.insert(0, f"--extra-index-url {index}")
    else:
        found.append(Dependency(spec=_torch(variant.torch, rules.build_string(variant.accelerator))))
    found += [Dependency(spec=spec) for spec in rules.companions(variant.accelerator)]
    applied = {spec_name(pin.spec): pin for pin in pins(matrix, variant)}
    found += [Dependency(spec=spec) for spec in packages.conda if spec not in applied]
    if pip and all(spec_name(dependency.spec) != "pip" for dependency in found):
        found.append(Dependency(spec="pip"))
    found += [Dependency(spec=pin.spec, why=f"{pin.why}: {pin.source}") for pin in applied.values()]
    return tuple(found), tuple(pip)


def _torch(constraint: str, build: str | None) -> str:
    """The spec for pytorch: `pytorch=2.3.*=*cuda11.8*`, or with spaces where the version is a range.

    `pytorch=2.3=BUILD` would mean exactly 2.3, so a series always has its star.
    """
    if build is None:
        return f"pytorch {constraint}" if constraint[0] in "!<>~=" else f"pytorch={constraint}"
    if re.fullmatch(r"[\d.*]+", constraint):
        return f"pytorch={constraint}={build}"
    return f"pytorch {constraint} {build}"


def _yaml(value: object) -> str:
    """A text as a YAML scalar that is read back as the same text: plain where that works, else quoted."""
    text = str(value)
    try:
        plain = "\n" not in text and load_yaml(f"- {text}\n") == [text]
    except yaml.YAMLError:
        plain = False
    if plain:
        return text
    return yaml.safe_dump(text, default_style='"', width=1 << 30, allow_unicode=True).strip("\n")


def _comment(value: object) -> str:
    """A text as a comment: on one line, and without the brackets conda-lock takes for selectors."""
    return " ".join(str(value).split()).translate(str.maketrans("[]", "()"))


@cache
def _templates(folders: tuple[Path, ...]) -> SandboxedEnvironment:
    """One for all variants, since compiling the templates takes longer than filling them.

    A template that is edited meanwhile is compiled again: Jinja looks at the time of its file.
    """
    environment = SandboxedEnvironment(
        loader=jinja2.FileSystemLoader(folders, encoding="utf-8-sig"),
        undefined=jinja2.StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(yaml=_yaml, comment=_comment)
    return environment


def _fill(folders: tuple[Path, ...], context: Mapping[str, object]) -> str:
    try:
        return _templates(folders).get_template(TEMPLATE).render(**context).rstrip("\n") + "\n"
    except jinja2.TemplateSyntaxError as problem:
        where = Path(problem.filename) if problem.filename else None
        raise InputError(
            _("the template does not parse: {reason}").format(reason=problem.message),
            path=where,
            line=problem.lineno,
        ) from None
    except jinja2.TemplateNotFound as problem:
        raise InputError(
            _("there is no template '{name}' in {folder}").format(name=problem.name, folder=folders[0]),
            _("restore it: git checkout templates"),
        ) from None
    except (OSError, UnicodeError) as problem:
        raise InputError(
            _("a template cannot be read: {reason}").format(reason=problem),
            _("save the files in {folder} as UTF-8 and make them readable").format(folder=folders[0]),
        ) from None
    except Exception as problem:  # whatever a template may do: undefined names, wrong types, endless work
        where, line = _place(problem.__traceback__, folders)
        raise InputError(
            _("the template fails: {reason}").format(reason=problem or type(problem).__name__),
            _("the names a template may use are explained in templates/environment.yml.j2"),
            path=where,
            line=line,
        ) from None


def _place(traceback: TracebackType | None, folders: tuple[Path, ...]) -> tuple[Path | None, int | None]:
    """The innermost line of a template in a traceback; Jinja gives its frames the template's file."""
    place: tuple[Path | None, int | None] = (None, None)
    while traceback is not None:
        file = Path(traceback.tb_frame.f_code.co_filename)
        if any(folder in file.parents for folder in folders):
            place = (file, traceback.tb_lineno)
        traceback = traceback.tb_next
    return place


def _first_template(folders: tuple[Path, ...]) -> Path:
    return next(
        (folder / TEMPLATE for folder in folders if (folder / TEMPLATE).exists()), folders[0] / TEMPLATE
    )


def _checked(text: str, template: Path) -> tuple[str, ...]:
    """The channels of a rendered text, once it is known to be an environment file."""
    try:
        document: Any = load_yaml(text)
    except yaml.YAMLError as problem:
        mark = getattr(problem, "problem_mark", None)
        shown = text.splitlines()[mark.line] if mark and mark.line < len(text.splitlines()) else ""
        raise InputError(
            _("the template makes what is not YAML: {line}").format(line=shown.strip() or problem),
            _("write values with the filter: {{ value | yaml }}"),
            path=template,
        ) from None
    channels, dependencies = (_list(document, key, template) for key in ("channels", "dependencies"))
    names = [channel for channel in channels if isinstance(channel, str)]
    if len(names) < len(channels) or names[-1] != "nodefaults":
        raise InputError(
            _("the template makes a file whose channels do not end with nodefaults"),
            _("without it conda adds the channels of a user's .condarc"),
            path=template,
        )
    if not all(isinstance(spec, str | dict) for spec in dependencies):
        raise InputError(_("the template makes a dependency that is not text"), path=template)
    return tuple(names[:-1])


def _list(document: Any, key: str, template: Path) -> list[Any]:
    value = document.get(key) if isinstance(document, dict) else None
    if not isinstance(value, list) or not value:
        raise InputError(
            _("the template makes a file without a list of {key}").format(key=key), path=template
        )
    return value
