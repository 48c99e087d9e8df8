"""Pip requirements as people write them, one line each: names with constraints, hashes, options, oddities."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from envkit.channels import canonicalise_url, index_url, shown
from envkit.lock.formats.foreign import PipIndexes
from envkit.lock.formats.pip_options import OPTIONS, Indexes, split_option, why_refused
from envkit.lock.formats.source import Source
from envkit.messages import _

__all__ = ["PipReader", "PipSpec"]

_COMMENT = re.compile(r"(^|\s)#.*$")
_HASH = re.compile(r"--hash[= ]\s*(?P<kind>[a-z0-9]+):(?P<value>[0-9A-Za-z]+)")
_PATH = re.compile(r"\.{0,2}[/\\]|\.$|[A-Za-z]:[/\\]|~[/\\]|file:|\S+\.(whl|tar\.gz|zip|tar\.bz2)$")
_LABEL = re.compile(r"cpu|cu\d{2,3}|rocm[\d.]+|xpu")
_TORCH = ("torch", "torchvision", "torchaudio")


@dataclass(frozen=True, kw_only=True, slots=True)
class PipSpec:
    """A requirement: `text` is what conda-lock is told, `hashes` the sha256 that it may have."""

    name: str
    text: str
    hashes: frozenset[str] = field(default_factory=frozenset)
    selector: str = ""
    line: int | None = None

    def __str__(self) -> str:
        return self.text


class PipReader:
    """Reads the lines of one file, or of several that name each other."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._indexes = Indexes(source)
        self.specs: list[PipSpec] = []

    def read(
        self, text: str, line: int | None, *, selector: str = "", source: Source | None = None
    ) -> str | None:
        """One logical line. Returns the file that it asks for with `-r`, which the caller reads or refuses.

        Raises InputError with the line for what a lock cannot hold.
        """
        source = source or self._source
        text = _COMMENT.sub("", text).strip()
        if not text:
            return None
        if text.startswith("-"):
            source.refuse_endless(text, line)
            return self._options(text, line, source)
        hashes = frozenset(
            match["value"].lower() for match in _HASH.finditer(text) if match["kind"] == "sha256"
        )
        text = _HASH.sub("", text).strip().rstrip("\\").strip()
        source.refuse_endless(text, line)
        self.specs.append(replace(_requirement(text, line, source, hashes), hashes=hashes, selector=selector))
        return None

    def add_index(self, url: str, line: int | None) -> None:
        """An index beside the public one, named elsewhere than in an option."""
        self._indexes.add(url, line, replaces=False)

    def forbid_default_index(self) -> None:
        """The public index is not to be asked."""
        self._indexes.drop_default()

    def finish(self) -> tuple[tuple[PipSpec, ...], PipIndexes, str | None]:
        """The requirements, each once, the indexes to ask for them, and the accelerator of PyTorch's builds.

        A build of PyTorch by its local version ("torch==2.3.0+cu121") is on PyTorch's own index alone: that
        index is added where the file forgot it.
        """
        specs = _merged(self.specs, self._source)
        labels = {_label_of(spec): spec for spec in specs if spec.name in _TORCH and _label_of(spec)}
        for label, spec in labels.items():
            wanted = index_url(label or "")
            if wanted not in self._indexes.result.indexes and not _unknown(self._indexes.result.indexes):
                self._indexes.add(wanted, spec.line, replaces=False)
                self._source.warn(
                    _("{spec} is on {index} alone, which was added").format(spec=spec.text, index=wanted),
                    spec.line,
                )
        indexes = self._indexes.result
        named = [
            url.rstrip("/").rpartition("/")[2]
            for url in indexes.indexes
            if canonicalise_url(url).tree == "pytorch"
        ]
        label = next(iter(labels), None) or (
            next((each for each in named if _LABEL.fullmatch(each)), None)
            if any(spec.name in _TORCH for spec in specs)
            else None
        )
        return specs, indexes, _accelerator(label)

    def _options(self, text: str, line: int | None, source: Source) -> str | None:
        try:
            words = shlex.split(text)
        except ValueError:
            raise source.refusal(
                _("a quote is not closed"), _("close it, or leave the quotes out"), line
            ) from None
        nested = None
        while words:
            if not words[0].startswith("-"):
                raise source.refusal(
                    _("an option and a requirement in one line"), _("write them in two lines"), line
                )
            name, value, words = split_option(words)
            option = OPTIONS.get(name)
            if option is None or option.action == "refused" or (option.takes_value and not value):
                raise source.refusal(*why_refused(name, value), line)
            if option.action in ("index", "extra"):
                self._indexes.add(value, line, replaces=option.action == "index")
            elif option.action == "nested":
                nested = value
            elif name == "--pre":
                source.warn(_("--pre is left out: ask for a pre-release by its version"), line)
            else:
                source.note(_("{option} means nothing to a lock").format(option=name), line)
        return nested


def _requirement(
    text: str, line: int | None, source: Source, hashes: frozenset[str] = frozenset()
) -> PipSpec:
    if re.match(r"[\w.\[\],-]*\s*@?\s*(git|hg|svn|bzr)\+", text):
        raise source.refusal(
            _("'{text}' comes from a repository, which has no hash to lock").format(text=shown(text)),
            _("ask for a released version, or run `pip install` for it in the environment"),
            line,
        )
    if "://" in text and "@" not in text.partition("://")[0]:
        text = _named_url(text, line, source)
    if _PATH.match(text) or re.search(r"@\s*(file:|\.{0,2}/|[A-Za-z]:\\)", text):
        hint = _("leave it out, and run `pip install --no-deps` for it in the environment")
        if "@ file:" in text:
            # pip freeze says this of every package that conda installed.
            hint = _("write the list with `pip list --format=freeze` instead of `pip freeze`")
        raise source.refusal(_("'{text}' is a file of one machine").format(text=text), hint, line)
    try:
        parsed = Requirement(text)
    except InvalidRequirement as problem:
        single = re.fullmatch(r"([\w.-]+)=([\w.*+!-]+)(=\S+)?", text)
        hint = (
            _("pip writes {name}=={version}").format(name=single[1], version=single[2])
            if single
            else _("write it as name==1.2 or name>=1.2,<2")
        )
        raise source.refusal(
            _("'{text}' is no requirement: {reason}").format(
                text=text, reason=str(problem).splitlines()[0].strip()
            ),
            hint,
            line,
        ) from None
    if parsed.url is not None:
        if len(hashes) == 1 and "#" not in parsed.url:
            # pip takes it in either place, conda-lock in the URL alone.
            parsed.url += f"#sha256={next(iter(hashes))}"
        _check_url(parsed, line, source)
        parsed.url = canonicalise_url(parsed.url).url
    name = str(canonicalize_name(parsed.name))
    return PipSpec(name=name, text=str(parsed), line=line)


def _named_url(text: str, line: int | None, source: Source) -> str:
    """`https://host/x-1-py3-none-any.whl` with the name that its file says."""
    url, _space, marker = text.partition(" ")
    file = url.partition("#")[0].rpartition("/")[2].replace("%2B", "+")
    try:
        name, version, _build, _tags = parse_wheel_filename(file)
    except InvalidWheelFilename:
        raise source.refusal(
            _("'{text}' does not say which package it is").format(text=shown(text)),
            _("write name @ URL#sha256=…, or name==version"),
            line,
        ) from None
    del version
    return f"{name} @ {url} {marker}".strip()


def _check_url(parsed: Requirement, line: int | None, source: Source) -> None:
    url = parsed.url or ""
    if not url.startswith("https://"):
        raise source.refusal(
            _("{url} is not an https URL").format(url=shown(url)), _("write name==version instead"), line
        )
    if re.search(r"#sha256=[0-9a-f]{64}(&|$)", url):
        return
    hint = _("write name==version instead, or add #sha256=… to the URL")
    found = canonicalise_url(url)
    if found.tree == "pytorch":
        try:
            name, version, _build, _tags = parse_wheel_filename(
                found.url.rpartition("/")[2].replace("%2B", "+")
            )
            hint = _("write {name}=={version} and `--extra-index-url {index}`").format(
                name=name, version=version, index=found.url.rpartition("/")[0]
            )
        except InvalidWheelFilename:
            pass
    raise source.refusal(
        _("{url} has no sha256, so nobody could tell whether it is still the same file").format(
            url=shown(url)
        ),
        hint,
        line,
    )


def _merged(specs: Iterable[PipSpec], source: Source) -> tuple[PipSpec, ...]:
    """Each package once for each marker and selector, with all that was said of it."""
    found: dict[tuple[str, str, str], PipSpec] = {}
    for spec in specs:
        parsed = Requirement(spec.text)
        key = (spec.name, str(parsed.marker or ""), spec.selector)
        first = found.get(key)
        if first is None:
            found[key] = spec
            continue
        source.note(
            _("{name} stands twice (first in line {line})").format(name=spec.name, line=first.line), spec.line
        )
        before = Requirement(first.text)
        if str(before) == str(parsed):
            continue
        if before.url or parsed.url:
            raise source.refusal(
                _("{second} contradicts {first} in line {line}").format(
                    second=spec.text, first=first.text, line=first.line
                ),
                _("keep one of the two lines"),
                spec.line,
            )
        before.specifier &= parsed.specifier
        before.extras |= parsed.extras
        found[key] = replace(first, text=str(before), hashes=first.hashes | spec.hashes)
    return tuple(found.values())


def _label_of(spec: PipSpec) -> str | None:
    match = re.search(r"===?[^,;\s]*\+(?P<label>[a-z0-9.]+)", spec.text)
    return match["label"] if match and _LABEL.fullmatch(match["label"]) else None


def _accelerator(label: str | None) -> str | None:
    """ "cu121" -> "12.1", "cpu" -> "cpu"; None for anything else."""
    if label == "cpu":
        return label
    match = re.fullmatch(r"cu(\d+)(\d)", label or "")
    return f"{match[1]}.{match[2]}" if match else None


def _unknown(indexes: Iterable[str]) -> bool:
    """Whether an index of somebody's own is among them: it may well have what PyTorch's has."""
    return any(not canonicalise_url(url).known for url in indexes)
