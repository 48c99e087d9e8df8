"""The channels that a stranger's file names, in canonical words."""

from __future__ import annotations

from envkit.channels import canonical_url, canonicalise_url, channel_name, hostname, is_licensed, shown
from envkit.errors import InputError
from envkit.lock.formats.source import Source
from envkit.messages import _

__all__ = ["DEFAULT_CHANNEL", "Channels"]

DEFAULT_CHANNEL = "conda-forge"
"""What is asked where a file names no channel at all."""

_DEFAULTS = ("pkgs/main", "pkgs/r")


class Channels:
    """Collects channels in order, each once, and says what became of them."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._names: dict[str, None] = {}
        self._licensed = False

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._names)

    def add(self, written: str, line: int | None) -> None:
        """One entry of `channels:`. Raises InputError with the line for what can be no channel."""
        self._source.refuse_endless(written, line)
        written = written.strip()
        if written == "nodefaults":
            return
        if written == "defaults":
            self._names.update(dict.fromkeys(_DEFAULTS))
            self._warn_of_licence(written, line)
            return
        name = self.canonical(written, line)
        if name in self._names:
            self._source.note(_("the channel {channel} stands twice").format(channel=shown(name)), line)
        self._names[name] = None

    def add_from_spec(self, written: str, package: str, line: int | None) -> str:
        """The channel of `channel::package`, asked last where the file does not list it."""
        name = "defaults" if written == "defaults" else self.canonical(written, line)
        wanted = _DEFAULTS if name == "defaults" else (name,)
        if not any(each in self._names for each in wanted):
            self._source.note(
                _("{package} names the channel {channel}, which is not listed: it is asked last").format(
                    package=package, channel=shown(name)
                ),
                line,
            )
            self._names.update(dict.fromkeys(wanted))
        return wanted[0]

    def canonical(self, written: str, line: int | None) -> str:
        """The name of a channel, or its URL where it has none; a mirror becomes what it copies."""
        self._source.look_for_credentials(written, line)
        try:
            # conda takes a platform behind the channel's name: "conda-forge/linux-64".
            url = canonical_url(canonicalise_url(written).url if "://" in written else written)
        except InputError as problem:
            raise self._source.refusal(
                problem.message, problem.hint or _("name a channel such as conda-forge"), line
            ) from None
        found = canonicalise_url(url)
        name = found.channel or channel_name(url) or url
        if "://" in written and found.known and hostname(written) != hostname(url):
            self._source.note(
                _("{url} is a mirror of the channel {channel}").format(url=shown(written), channel=name), line
            )
        elif not found.known:
            self._source.warn(
                _("{url} is no channel that envkit knows; it is kept as it is").format(url=shown(url)), line
            )
        self._warn_of_licence(name, line)
        return name

    def _warn_of_licence(self, name: str, line: int | None) -> None:
        if is_licensed(name) and not self._licensed:
            self._licensed = True
            self._source.warn(
                _(
                    "{channel} means Anaconda's own channels, which need a paid licence in larger "
                    "organisations; whoever mirrors them"
                ).format(channel=name),
                line,
            )
