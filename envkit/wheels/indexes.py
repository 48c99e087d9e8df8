"""Where the builds of PyTorch for one accelerator may lie: its own index, and the mirrors' copies of it."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from envkit.channels import Mirror, hostname, index_url, is_url, local_path, shown, table
from envkit.errors import InputError
from envkit.messages import _

__all__ = ["TorchIndex", "torch_indexes"]

_AUTO, _OFFICIAL = "auto", "official"


@dataclass(frozen=True, kw_only=True, slots=True)
class TorchIndex:
    """One place to ask for wheels. A `flat` one is a page or a folder of files, for pip's --find-links."""

    name: str
    url: str
    flat: bool = False

    @property
    def alone(self) -> tuple[str, ...]:
        """What tells pip to ask here and, but for what the user's configuration adds, nowhere else."""
        return ("--no-index", "--find-links", self.url) if self.flat else ("--index-url", self.url)

    @property
    def beside(self) -> tuple[str, ...]:
        """What tells pip to ask here beside the indexes of the user's configuration."""
        return ("--find-links" if self.flat else "--extra-index-url", self.url)

    def owns(self, url: str) -> bool:
        """Whether a file lies on the very host of the index, the file system counting as one."""
        return hostname(url) == hostname(self.url)


def torch_indexes(label: str, mirrors: Sequence[str] = (), *, only: bool = False) -> tuple[TorchIndex, ...]:
    """The places to ask for the builds of `label` ("cu126", "cpu"), best first.

    `mirrors` are asked first, in their order: ids of the table, `official`, `auto`, the URL of a folder that
    stands for PyTorch's `whl`, or `file:///DIR`, a folder of wheels. Behind them come PyTorch's own index and
    the other mirrors that are known to have a copy; with `only`, nothing that was not named (with no name,
    no index but the mirrors'). Raises InputError for what is no mirror or has no such copy.
    """
    words = [word.strip() for word in mirrors if word.strip()]
    found = [index for word in words for index in _named(word, label)]
    if not only:
        found += _official(label)
    if not (only and words):
        found += _copies(label)
    return tuple(dict.fromkeys(found))


def _named(word: str, label: str) -> Iterator[TorchIndex]:
    facts = table()
    key = word.lower()
    if key == _AUTO:
        yield from (*_official(label), *_copies(label))
    elif key == _OFFICIAL or facts.mirrors.get(key) is facts.upstream:
        yield from _official(label)
    elif key in facts.mirrors:
        mirror = facts.mirrors[key]
        if mirror.wheels is None:
            raise InputError(
                _("{mirror} is not known to carry PyTorch's wheels").format(mirror=mirror.name),
                _("name one of {names}").format(names=", ".join((*_carriers(), _OFFICIAL))),
            )
        yield _at(mirror, mirror.wheels, label)
    elif (folder := local_path(word)) is not None:
        yield from _folders(folder, label)
    elif is_url(word, "https", "http"):
        url = f"{word.rstrip('/')}/{label}"
        yield TorchIndex(name=urlsplit(shown(url)).netloc, url=url)
        yield TorchIndex(name=urlsplit(shown(url)).netloc, url=f"{url}/", flat=True)
    else:
        known = (*_carriers(), _OFFICIAL)
        raise InputError(
            _("there is no mirror '{word}'").format(word=shown(word)),
            _("name one of {names}").format(
                names=", ".join(difflib.get_close_matches(key, known, n=3) or known)
            ),
        )


def _official(label: str) -> tuple[TorchIndex, ...]:
    url = index_url(label)
    return (TorchIndex(name=urlsplit(url).netloc, url=url),)


def _copies(label: str) -> Iterator[TorchIndex]:
    for name in _carriers():
        mirror = table().mirrors[name]
        if mirror.wheels is not None:
            yield _at(mirror, mirror.wheels, label)


def _carriers() -> tuple[str, ...]:
    facts = table()
    return tuple(
        name for name, mirror in facts.mirrors.items() if mirror.wheels and mirror is not facts.upstream
    )


def _at(mirror: Mirror, wheels: str, label: str) -> TorchIndex:
    # pip resolves the links of a page against its address, so that a folder's has to end in a slash.
    url = f"{wheels}/{label}" + ("/" if mirror.flat else "")
    return TorchIndex(name=mirror.host, url=url, flat=mirror.flat)


def _folders(folder: Path, label: str) -> Iterator[TorchIndex]:
    """A folder's index of the accelerator, and its folders of wheels; a tree of channels has `pip`."""
    if not folder.is_dir():
        raise InputError(
            _("{url} is not a directory here").format(
                url=folder.as_uri() if folder.is_absolute() else folder
            ),
            _("write three slashes and the full path of a folder of wheels: file:///path/to/wheels"),
        )
    if (folder / label / "torch").is_dir():
        yield TorchIndex(name=str(folder), url=(folder / label).as_uri())
    for place in (folder / label, folder / "pip", folder):
        if place.is_dir():
            yield TorchIndex(name=str(place), url=place.as_uri(), flat=True)
