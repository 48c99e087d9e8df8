"""`conda list --explicit` and what conda-lock and micromamba write in that form: URLs with hashes.

    https://conda.anaconda.org/conda-forge/linux-64/zlib-1.3.1-hb9d3cd8_2.conda#c9f075ab2f33b3bbee9e62d4ad0a6cd8

conda writes the md5, or the bare sha256 (`--sha256`); mamba writes `#sha256:…`; conda-lock adds the pip
packages as `# pip name @ URL --hash=sha256:…`.
"""

from __future__ import annotations

import re

from envkit.channels import canonical_url, canonicalise_url, channel_name, locate
from envkit.errors import InputError
from envkit.lock.formats.archives import read_archive_url
from envkit.lock.formats.foreign import Foreign, Pinned
from envkit.lock.formats.naming import environment_name, usable
from envkit.lock.formats.source import Source
from envkit.messages import _

__all__ = ["read_explicit_file"]

_LINE = re.compile(
    r"(?P<url>[a-z]+://[^#\s]+)(?:#(?:(?:md5[:=])?(?P<md5>[0-9a-f]{32})|(?:sha256[:=])?(?P<sha256>[0-9a-f]{64})))?"
)
_PIP = re.compile(
    r"#\s*pip\s+(?P<name>[\w.-]+)\s*@\s*(?P<url>\S+?)(?:#sha256=(?P<fragment>[0-9a-f]{64}))?(?P<rest>\s.*)?$"
)
_PLATFORM = re.compile(r"#\s*platform:\s*(?P<platform>\S+)")
_PIP_FILE = re.compile(r"[^/-]+-(?P<version>[^/-]+)(?:-.*\.whl|\.tar\.gz|\.zip|\.tar\.bz2)$")


def read_explicit_file(source: Source, *, platform: str | None = None) -> Foreign:
    """The packages of an explicit file. Mirror URLs become canonical ones.

    `platform` is for a file that consists of noarch packages alone and does not say. Raises InputError with
    the line for what is no archive of a channel.
    """
    pinned: list[Pinned] = []
    said: str | None = None
    for number, written in enumerate(source.lines, 1):
        text = written.strip()
        match = _PLATFORM.match(text)
        if match:
            said = match["platform"]
        if text.startswith("#"):
            package = _pip(text, number, source)
        elif not text or text == "@EXPLICIT":
            continue
        else:
            package = _conda(text, number, source)
        if package is not None:
            pinned.append(package)
    found = sorted({package.platform for package in pinned} - {"noarch", ""})
    if len(found) > 1:
        second = next(package for package in pinned if package.platform == found[1])
        raise source.refusal(
            _("packages of {platforms} stand in one file").format(platforms=", ".join(found)),
            _("write one file for each platform"),
            second.line,
        )
    if found and said not in (None, *found):
        odd = next(package for package in pinned if package.platform == found[0])
        raise source.refusal(
            _("it says that it is for {said}, but this package is for {platform}").format(
                said=said, platform=found[0]
            ),
            _("write one file for each platform"),
            odd.line,
        )
    where = found[0] if found else said or platform
    if not pinned:
        raise source.refusal(
            _("no packages stand in it"), _("write it with `conda list --explicit --sha256`")
        )
    if where is None:
        raise source.refusal(
            _("it does not say for which platform it is"), _("add a line `# platform: linux-64`"), 1
        )
    if any(package.manager == "conda" and not package.depends for package in pinned):
        source.note(_("an explicit file does not say what its packages depend on"))
    return Foreign(
        path=source.path,
        kind="explicit",
        name=environment_name(None, source.path),
        channels=tuple(dict.fromkeys(_channel(package) for package in pinned if package.manager == "conda")),
        platforms=(where,),
        pinned=tuple(usable(package.completed(platform=where), source) for package in pinned),
        notes=source.said,
    )


def _conda(text: str, line: int, source: Source) -> Pinned:
    match = _LINE.fullmatch(text)
    if match is None:
        raise source.refusal(
            _("'{text}' is not the URL of an archive with its md5 or sha256").format(text=text),
            _("write the file with `conda list --explicit --sha256`"),
            line,
        )
    found = canonicalise_url(match["url"])
    archive = read_archive_url(found.url)
    try:
        locate(found.url)
    except InputError:
        archive = None
    if archive is None:
        raise source.refusal(
            _("{url} is not the archive of a conda package").format(url=found.url),
            _("an explicit file lists …/<subdir>/<name>-<version>-<build>.conda"),
            line,
        )
    if not found.known:
        source.warn(
            _("{url} is on no host that envkit knows; it is kept as it is").format(url=found.url), line
        )
    return Pinned(
        name=archive.name,
        version=archive.version,
        manager="conda",
        platform=archive.subdir,
        url=found.url,
        sha256=match["sha256"],
        md5=match["md5"],
        line=line,
    )


def _pip(text: str, line: int, source: Source) -> Pinned | None:
    match = _PIP.fullmatch(text)
    if match is None:
        return None
    found = canonicalise_url(match["url"])
    file = _PIP_FILE.search(found.url.rpartition("/")[2].replace("%2B", "+"))
    if file is None:
        raise source.refusal(
            _("{url} does not say which version it is").format(url=found.url),
            _("leave the line out, or write the URL of a wheel"),
            line,
        )
    digest = re.search(r"sha256[:=](?P<value>[0-9a-f]{64})", match["rest"] or "")
    return Pinned(
        name=match["name"].lower().replace("_", "-"),
        version=file["version"],
        manager="pip",
        platform="",
        url=found.url,
        sha256=match["fragment"] or (digest["value"] if digest else None),
        line=line,
    )


def _channel(package: Pinned) -> str:
    channel = locate(package.url).channel
    return channel_name(canonical_url(channel)) or channel
