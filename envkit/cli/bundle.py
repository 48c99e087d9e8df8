"""envkit bundle: all that an environment needs in one file, for machines without a network."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from envkit.cli.axes import Mirrors, axes_options, mirror_options, request_of
from envkit.cli.frame import Outcome, Session, verb
from envkit.install.bundle import Bundled
from envkit.matrix import Axes
from envkit.messages import _
from envkit.report.size import spoken
from envkit.up.bundling import make_bundle

_FILE = click.Path(path_type=Path)


@verb("bundle")
@click.argument("variant", metavar="[VARIANT|ENVIRONMENT]", required=False)
@axes_options
@mirror_options
@click.option("--lock", type=_FILE, help="Bundle this lock file instead of a variant's.")
@click.option("--name", metavar="ENV", help="What the environment is called; by default as its variant.")
@click.option("--platform", metavar="SUBDIR", help="linux-64 or linux-aarch64; this machine's by default.")
@click.option("--offline", is_flag=True, help="Open no connection: what the cache has must do.")
@click.option("-o", "--output", type=_FILE, required=True, metavar="FILE", help="The file to write.")
def command(
    session: Session,
    variant: str | None,
    axes: Axes,
    mirrors: Mirrors,
    lock: Path | None,
    name: str | None,
    platform: str | None,
    offline: bool,
    output: Path,
) -> Outcome:
    """One plain tar: packages, lock, spec, envkit's own wheels and install.sh. On the other machine
    `envkit install --from FILE`, or, with a POSIX shell and Python alone, unpack it and
    `sh install.sh PREFIX`. Run again after it was interrupted, it goes on. An installed ENVIRONMENT that is
    no variant is bundled from the lock it was made from.
    """
    request = request_of(
        variant,
        axes,
        mirror=mirrors.choice,
        only_mirrors=mirrors.only,
        allow_hosts=mirrors.allow_hosts,
        lock=lock,
        name=name,
        offline=offline,
    )
    made = make_bundle(request, output, platform, session.observer)
    return Outcome(data=_data(made), text="\n".join(_lines(made)))


def _lines(made: Bundled) -> list[str]:
    file, there = shlex.quote(str(made.path)), shlex.quote(made.path.name)
    size = _("{path}: {size}, {count} files for {platform}").format(
        path=file, size=spoken(made.size), count=len(made.contents.members), platform=made.contents.platform
    )
    return [
        size,
        f"sha256 {made.sha256}",
        _("there: envkit install --from {file} --sha256 {sha256}").format(file=there, sha256=made.sha256),
        _("or: mkdir DIR && tar -xf {file} -C DIR && sh DIR/install.sh PREFIX").format(file=there),
    ]


def _data(made: Bundled) -> dict[str, object]:
    contents = made.contents
    return {
        "path": str(made.path),
        "sha256": made.sha256,
        "bytes": made.size,
        "name": contents.name,
        "platform": contents.platform,
        "host_bound": contents.host_bound,
        "pythons": list(contents.pythons),
        "members": len(contents.members),
    }
