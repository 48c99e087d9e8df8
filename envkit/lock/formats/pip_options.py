"""Options among pip requirements: those that a lock honours, that mean nothing to it, that it refuses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from envkit.channels import canonicalise_url, hostname, is_url, pypi_simple, shown
from envkit.lock.formats.foreign import PipIndexes
from envkit.lock.formats.source import Source
from envkit.messages import _

__all__ = ["OPTIONS", "Action", "Indexes", "split_option", "why_refused"]

Action = Literal["index", "extra", "nested", "ignored", "refused"]


@dataclass(frozen=True, slots=True)
class _Option:
    action: Action
    takes_value: bool = True


OPTIONS: Mapping[str, _Option] = {
    **dict.fromkeys(("-i", "--index-url", "--pypi-url"), _Option("index")),
    "--extra-index-url": _Option("extra"),
    **dict.fromkeys(("-r", "--requirement"), _Option("nested")),
    **dict.fromkeys(
        ("-f", "--find-links", "-c", "--constraint", "-e", "--editable", "--no-binary"), _Option("refused")
    ),
    **dict.fromkeys(("--no-index", "--no-deps"), _Option("refused", takes_value=False)),
    **dict.fromkeys(
        (
            "--trusted-host", "--only-binary", "--use-feature", "--timeout", "--default-timeout", "--retries",
            "--progress-bar", "--proxy", "--cert", "--upgrade-strategy", "--cache-dir",
        ),
        _Option("ignored"),
    ),
    **dict.fromkeys(
        (
            "-U", "--upgrade", "-q", "--quiet", "-v", "--verbose", "--user", "--pre", "--prefer-binary",
            "--require-hashes", "--no-cache-dir", "--no-build-isolation", "--use-pep517",
            "--ignore-installed", "-I", "--force-reinstall", "--disable-pip-version-check",
            "--no-warn-script-location", "--no-warn-conflicts", "--isolated", "--break-system-packages",
        ),
        _Option("ignored", takes_value=False),
    ),
}  # fmt: skip
"""pip's options by name (https://pip.pypa.io/en/stable/reference/requirements-file-format/, and what people
put there beside those)."""


def split_option(words: list[str]) -> tuple[str, str, list[str]]:
    """The first option among `words` with its value, and the words behind it; value "" where it has none."""
    first = words[0]
    name, equals, value = first.partition("=")
    if not first.startswith("--") and len(first) > 2:
        name, equals, value = first[:2], "=", first[2:].removeprefix("=")
    if equals:
        return name, value, words[1:]
    option = OPTIONS.get(name)
    if option is not None and option.takes_value and len(words) > 1:
        return name, words[1], words[2:]
    return name, "", words[1:]


def why_refused(option: str, value: str) -> tuple[str, str]:
    """The message and the hint for an option that a lock cannot honour."""
    if option in ("-f", "--find-links"):
        found = canonicalise_url(value)
        index = found.url.rstrip("/") if found.tree == "pytorch" else "URL"
        return (
            _("{option} {value}: a bare folder of files cannot be locked").format(
                option=option, value=shown(value)
            ),
            _("name an index instead: `--extra-index-url {index}`").format(index=index),
        )
    if option in ("-r", "--requirement"):
        return (
            _("{option} {value}: requirements of another file are not read from here").format(
                option=option, value=value
            ),
            _("write its lines out here, or lock that file itself with `envkit lock --file {value}`").format(
                value=value
            ),
        )
    if option in ("-e", "--editable"):
        return (
            _("{option} {value}: what is installed in place cannot be locked").format(
                option=option, value=value
            ),
            _("leave it out, and run `pip install --no-deps {option} {value}` in the environment").format(
                option=option, value=value
            ),
        )
    if option in ("-c", "--constraint"):
        return (
            _("{option} {value}: constraints of another file are not read").format(
                option=option, value=value
            ),
            _("write the pins into the requirements themselves"),
        )
    return (
        _("the pip option {option} cannot be locked").format(option=f"{option} {value}".rstrip()),
        _("leave it out, or write the requirements out"),
    )


class Indexes:
    """Collects the indexes that options name, as pip takes them: one that replaces, and further ones."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._main: str | None = pypi_simple()
        self._extra: dict[str, None] = {}
        self._without_default = False

    @property
    def result(self) -> PipIndexes:
        public = pypi_simple()
        named = [url for url in (self._main, *self._extra) if url is not None]
        return PipIndexes(
            indexes=tuple(dict.fromkeys(url for url in named if url != public)),
            default_index=not self._without_default and (public in named or self._main is None),
        )

    def drop_default(self) -> None:
        """Never ask the public index."""
        self._without_default = True

    def add(self, url: str, line: int | None, *, replaces: bool) -> None:
        """An index of an option. Raises InputError with the line for a folder of this machine."""
        canonical = self.canonical(url, line)
        if replaces:
            self._main = canonical
        else:
            self._extra[canonical] = None

    def canonical(self, url: str, line: int | None) -> str:
        """The canonical address of an index, with what is to be said about it."""
        source = self._source
        if not is_url(url, "https", "http"):
            raise source.refusal(
                _("{url} is no index that another machine could ask").format(url=shown(url) or "''"),
                _("name an index by its https URL"),
                line,
            )
        found = canonicalise_url(url)
        result = found.url.rstrip("/")
        if found.known and hostname(url) != hostname(result):
            source.note(_("{url} is a mirror of {index}").format(url=shown(url), index=result), line)
        elif not found.known:
            source.warn(
                _("{url} is no index that envkit knows; it is kept as it is").format(url=shown(url)), line
            )
            if url.startswith("http://"):
                source.warn(_("an index over http can be tampered with"), line)
        if urlsplit(result).password and "$" not in (urlsplit(result).password or ""):
            source.warn(_("a password stands in the file; write ${{VARIABLE}} instead").format(), line)
        return result
