"""Whether PyTorch's own packages belong together, and whether anything beside them is known to break them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase

from packaging.version import InvalidVersion, Version

from envkit.channels import canonicalise_url
from envkit.host.drivers import numbers
from envkit.lock.accelerator import TORCH_NAMES, UNSTATED, build_cuda
from envkit.lock.audit.cuda import torch_of
from envkit.lock.audit.match import Unreadable, allows
from envkit.lock.audit.rule import Facts, Finding, Result, Subject, about, found, good, rule, skipped
from envkit.lock.pypi_names import conda_name
from envkit.lock.read import Entry
from envkit.matrix.combos import Combo, Part, locked_combos
from envkit.matrix.releases import known_release, known_releases
from envkit.messages import _
from envkit.model import Package, Severity

__all__ = ["channel_of", "combos_in", "known_bad", "pairs"]

_STABLE_AUDIO = Version("2.11")
"""From here on torchaudio uses torch's stable ABI and serves every later torch (data/torch_matrix.yaml)."""


def channel_of(package: Package) -> str | None:
    """The name of the channel of a conda package, whichever mirror the lock names; None where it has none."""
    return canonicalise_url(package.url).channel


@rule(
    "lock.torch-pairs",
    Severity.FATAL,
    lambda: _("pin the three together; the pairs: https://github.com/pytorch/vision#installation"),
)
def pairs(subject: Subject, facts: Facts) -> Result:
    """torchvision and torchaudio are built against one torch: `operator torchvision::nms does not exist`.

    On the pytorch channel and among wheels the very patch release counts; conda-forge builds a series of
    torchvision against each release of torch, and the dependencies of its packages say which.
    """
    findings: list[Finding] = []
    told, unknown = [], []
    for platform in subject.platforms:
        here = {entry.package.name: entry for entry in subject.on(platform)}
        torch = torch_of({name: entry.package for name, entry in here.items()})
        for name in ("torchvision", "torchaudio"):
            if torch is None or name not in here:
                continue
            problem = _pair_problem(torch, here[name].package, platform)
            if problem is None:
                unknown.append(f"{name} {here[name].package.version}")
            elif problem:
                findings.append(about(here[name], problem))
            else:
                told.append(f"{name} {here[name].package.version}")
    if not findings and unknown:
        names = ", ".join(dict.fromkeys(unknown))
        return skipped(_("which torch {names} belongs to is not on record").format(names=names))
    if not findings and not told:
        return good(_("neither torchvision nor torchaudio beside torch"))
    return found(findings, _("{names}: the pair of its torch").format(names=", ".join(dict.fromkeys(told))))


def _pair_problem(torch: Package, other: Package, platform: str) -> str | None:
    """What is wrong with a pair, empty where nothing is, None where the table does not know."""
    words = {
        "platform": platform,
        "torch": f"{torch.name} {torch.version}",
        "other": f"{other.name} {other.version}",
    }
    torch_cuda, other_cuda = build_cuda(torch), build_cuda(other)
    if (
        other.manager == torch.manager
        and (torch_cuda is None) != (other_cuda is None)
        and _says(torch, other)
    ):
        return _(
            "{platform}: {other} {other_build} beside {torch} {torch_build}: one is a CUDA build"
        ).format(**words, other_build=_build(other), torch_build=_build(torch))
    if torch_cuda and other_cuda and other_cuda != UNSTATED and torch_cuda != other_cuda:
        return _("{platform}: {other} is for CUDA {own}, {torch} for CUDA {cuda}").format(
            **words, own=other_cuda, cuda=torch_cuda
        )
    try:
        release, own = Version(torch.version.partition("+")[0]), Version(other.version.partition("+")[0])
    except InvalidVersion:
        return None
    if other.name == "torchaudio" and own >= _STABLE_AUDIO and release >= _STABLE_AUDIO:
        return ""
    wanted = _wanted(release, other.name)
    if wanted is None:
        return None
    exact = wanted.count(".") == 2 and "x" not in wanted and channel_of(other) != "conda-forge"
    digits = 3 if exact and _in_table(release) else 2
    if numbers(wanted)[:digits] == own.release[:digits]:
        return ""
    return _("{platform}: {other} is not for {torch}, which goes with {name} {wanted}").format(
        **words, name=other.name, wanted=wanted
    )


def _says(torch: Package, other: Package) -> bool:
    """Whether both builds can say that they are for CUDA: plain wheels of the Python index cannot."""
    return torch.manager == "conda" or ("+" in torch.version and "+" in other.version)


def _build(package: Package) -> str:
    return package.build or package.version.partition("+")[2]


def _wanted(torch: Version, name: str) -> str | None:
    """The version of torchvision or torchaudio for a torch: of its own row, or of its series' last one."""
    rows = [
        release
        for release in known_releases()
        if Version(release.torch).release[:2] == torch.release[:2] and getattr(release, name) is not None
    ]
    exact = next((row for row in rows if Version(row.torch) == torch), None)
    if exact is None and not rows:
        return None
    version: str = getattr(exact or rows[-1], name)
    return version


def _in_table(torch: Version) -> bool:
    release = known_release(str(torch))
    return release is not None and release.torchvision is not None


@rule(
    "lock.known-bad",
    Severity.HIGH,
    lambda: _("add the pin that is named and lock again"),
)
def known_bad(subject: Subject, facts: Facts) -> Result:
    """Combinations that solve and then fail (data/bad_combos.yaml)."""
    findings = []
    for platform in subject.platforms:
        for combo, entries in combos_in(subject, platform):
            if combo.glibc is not None:
                continue  # the glibc that it asks for is among lock.needs
            names = ", ".join(f"{entry.package.name} {entry.package.version}" for entry in entries)
            text = _("{platform}: {names}: {symptom}; pin {pin} ({source})")
            findings.append(
                about(
                    entries[-1],
                    text.format(
                        platform=platform,
                        names=names,
                        symptom=combo.symptom,
                        pin=combo.pin,
                        source=combo.source,
                    ),
                    severity=combo.severity,
                )
            )
    return found(findings, _("none of the combinations that are known to fail"))


def combos_in(subject: Subject, platform: str) -> Iterator[tuple[Combo, tuple[Entry, ...]]]:
    """The known bad combinations whose packages are all there."""
    here: dict[str, Entry] = {}
    for entry in subject.on(platform):
        here.setdefault(_combo_name(entry.package), entry)
    for combo in locked_combos():
        if combo.platforms is not None and platform not in combo.platforms:
            continue
        if all(_is(here, name, part) for name, part in combo.parts.items()):
            yield combo, tuple(here[name] for name in combo.parts)


def _combo_name(package: Package) -> str:
    if package.name in TORCH_NAMES:
        return "torch"
    return conda_name(package.name) if package.manager == "pip" else package.name


def _is(here: Mapping[str, Entry], name: str, part: Part) -> bool:
    if name not in here:
        return False
    package = here[name].package
    try:
        return (
            (part.version is None or allows(part.version, package.version.partition("+")[0]))
            and (part.build is None or fnmatchcase(package.build, part.build))
            and (part.channel is None or channel_of(package) == part.channel)
        )
    except Unreadable:
        return False
