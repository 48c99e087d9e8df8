"""The options that say which environment is meant, shared by the verbs that take them."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from envkit.channels import read_condarc
from envkit.errors import InputError
from envkit.host import read_host
from envkit.matrix import Axes, Matrix, choose, find_root, read_matrix
from envkit.messages import _
from envkit.model import Variant
from envkit.up import Request

if TYPE_CHECKING:
    from envkit import fetch

__all__ = ["Mirrors", "axes_options", "chosen_variants", "mirror_options", "request_of", "request_options"]

_AXES = (
    click.option("--python", metavar="X.Y", help="Python minor version."),
    click.option(
        "--cuda", metavar="X.Y|cpu|auto", help="CUDA runtime; auto (the default) looks at this machine."
    ),
    click.option("--torch", metavar="X.Y[.Z]", help="PyTorch version."),
    click.option("--source", metavar="SOURCE", help="Where PyTorch comes from: pytorch, conda-forge."),
    click.option(
        "--with",
        "extras",
        metavar="EXTRA",
        multiple=True,
        help="An extra of the matrix; again or with commas for more.",
    ),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Mirrors:
    """Who may be asked, and in which order, as it was said on the command line."""

    choice: str = "auto"
    only: bool = False
    allow_hosts: tuple[str, ...] = ()

    def routes(self) -> fetch.Routes:
        """The same with the user's own .condarc. Raises InputError for a mirror that is none."""
        from envkit import fetch

        return fetch.routes(self.choice, only=self.only, allow_hosts=self.allow_hosts, condarc=read_condarc())


def mirror_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """--mirror, --only-mirrors and --allow-host, handed over as one `mirrors` argument."""

    @functools.wraps(function)
    def call(*args: Any, mirror: str, only_mirrors: bool, allow_hosts: tuple[str, ...], **rest: Any) -> Any:
        mirrors = Mirrors(choice=mirror, only=only_mirrors, allow_hosts=allow_hosts)
        return function(*args, mirrors=mirrors, **rest)

    return _mirror_flags(call, wheels=False)


def _mirror_flags(function: Callable[..., Any], *, wheels: bool) -> Callable[..., Any]:
    """`wheels` says whether the verb takes the wheel channel for a mirror."""
    words = "auto, official, a mirror's name, a URL, file:///DIR" + (", wheels" if wheels else "")
    for option in (
        click.option(
            "--allow-host",
            "allow_hosts",
            metavar="HOST",
            multiple=True,
            help="A host to trust besides the known ones; again for more.",
        ),
        click.option(
            "--only-mirrors",
            is_flag=True,
            envvar="ENVKIT_ONLY_MIRRORS",
            help="Ask the chosen mirrors alone, never upstream.",
        ),
        click.option(
            "--mirror",
            metavar="MIRROR",
            envvar="ENVKIT_MIRROR",
            default="auto",
            help=f"{words}, or several with commas.",
        ),
    ):
        function = option(function)
    return function


def axes_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The axes as options, handed over as one `axes` argument without its name."""

    @functools.wraps(function)
    def call(
        *args: Any,
        python: str | None,
        cuda: str | None,
        torch: str | None,
        source: str | None,
        extras: tuple[str, ...],
        **rest: Any,
    ) -> Any:
        words = tuple(word for group in extras for word in group.replace(",", " ").split())
        axes = Axes(
            python=python or None,
            cuda=cuda or None,
            torch=torch or None,
            source=source or None,
            extras=words or None,
        )
        return function(*args, axes=axes, **rest)

    decorated: Callable[..., Any] = call
    for option in reversed(_AXES):
        decorated = option(decorated)
    return decorated


def request_of(
    variant: str | None,
    axes: Axes,
    *,
    mirror: str = "auto",
    name: str | None = None,
    prefix: Path | None = None,
    lock: Path | None = None,
    bundle: Path | None = None,
    sha256: str | None = None,
    **how: Any,
) -> Request:
    """The request that the arguments of one call make; InputError where they contradict each other.

    `how` are the other fields of Request: offline, only_mirrors, allow_hosts, dry_run.
    """
    given = [word for word in ("python", "cuda", "torch", "source", "extras") if getattr(axes, word)]
    if variant and [word for word in given if word != "extras"]:
        raise InputError(
            _("a variant name and axes were both given: {variant} and {axes}").format(
                variant=variant, axes=", ".join(given)
            ),
            _("name the variant, or describe it by its axes"),
        )
    if lock and (variant or given):
        raise InputError(
            _("a lock was given beside a variant or axes, which it already decides"),
            _("leave out everything but --lock, --name, --prefix and --mirror"),
        )
    if bundle and (variant or given or lock):
        raise InputError(
            _("a bundle was given beside a lock, a variant or axes, which it already decides"),
            _("leave out everything but --from, --sha256, --name and --prefix"),
        )
    if sha256 is not None and bundle is None:
        raise InputError(
            _("--sha256 was given without a bundle"), _("name the bundle that must have it: `--from FILE`")
        )
    if sha256 is not None and not re.fullmatch(r"[0-9a-fA-F]{64}", sha256):
        raise InputError(
            _("'{text}' is no sha256").format(text=sha256),
            _("write the 64 digits that `envkit bundle` printed"),
        )
    return Request(
        axes=Axes(
            python=axes.python,
            cuda=axes.cuda,
            torch=axes.torch,
            source=axes.source,
            extras=axes.extras,
            name=variant,
        ),
        mirror=mirror or "auto",
        name=name,
        prefix=prefix,
        lock=lock,
        bundle=bundle,
        sha256=sha256.lower() if sha256 else None,
        **how,
        fallback=os.environ.get("ENVKIT_FALLBACK", "auto").lower() != "never",
    )


def matrix_channels() -> tuple[str, ...]:
    """The channels of the project's matrix, conda-forge first; outside of any project those of PyTorch."""
    try:
        root = find_root()
    except InputError:
        return ("conda-forge", "pytorch", "nvidia")
    known = read_matrix(root / "environments" / "matrix.yaml")
    named = dict.fromkeys(channel for source in known.sources.values() for channel in source.channels)
    return tuple(sorted(named, key=lambda channel: channel != "conda-forge"))


def chosen_variants(known: Matrix, variant: str | None, axes: Axes, *, every: bool) -> tuple[Variant, ...]:
    """All variants of the matrix, or the one that a name or axes mean."""
    if every and (
        variant or any(getattr(axes, word) for word in ("python", "cuda", "torch", "source", "extras"))
    ):
        raise InputError(_("--all was given beside a variant or axes"), _("leave out one of the two"))
    if every:
        return known.variants
    return (choose(known, read_host(), request_of(variant, axes).axes).variant,)


def request_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """All that can be asked of `up` and `install`, handed over as one `request` argument."""

    @functools.wraps(function)
    def call(*args: Any, variant: str | None, axes: Axes, **where: Any) -> Any:
        return function(*args, request=request_of(variant, axes, **where))

    folder = click.Path(path_type=Path)
    decorated = axes_options(call)
    for option in (
        click.option("--prefix", type=folder, help="Folder of the environment."),
        click.option("--name", metavar="ENV", help="Name of the environment; by default the variant's."),
        click.option("--lock", type=folder, help="Install this lock file instead of a variant's."),
        click.option(
            "--from", "bundle", type=folder, metavar="BUNDLE", help="Install from this bundle alone."
        ),
        click.option("--sha256", metavar="HEX", help="What the bundle's sha256 must be."),
        click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing."),
        click.option("--offline", is_flag=True, help="Open no connection: what the cache has must do."),
        functools.partial(_mirror_flags, wheels=True),
        click.argument("variant", required=False),
    ):
        decorated = option(decorated)
    return decorated
