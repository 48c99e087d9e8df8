"""Whether one machine can run what the lock pins. What is not known of it is skipped, never good."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.version import InvalidVersion, Version

from envkit.lock.accelerator import UNSTATED, build_cuda
from envkit.lock.audit.cuda import runtime, torch_of
from envkit.lock.audit.match import Unreadable, allows
from envkit.lock.audit.needs import Need, cpu_level_needed, needs_of
from envkit.lock.audit.rule import Facts, Finding, Result, Subject, found, good, rule, skipped
from envkit.lock.audit.torch import channel_of
from envkit.matrix.hardware import Answer, Build, Verdict, build_runs, driver_ok
from envkit.messages import _
from envkit.model import Host, Package, Severity, Source

__all__ = ["cpu", "driver", "glibc", "gpus", "platform", "system"]

_SOURCES: dict[str | None, Source] = {"pytorch": "pytorch", "conda-forge": "conda-forge"}


def _packages(subject: Subject, host: Host) -> list[Package]:
    return [entry.package for entry in subject.on(host.platform)]


def _spared(subject: Subject, facts: Facts) -> Result | None:
    """What to say where there is nothing to judge."""
    if facts.host is None:
        return skipped(_("no machine was to be looked at"))
    if not subject.on(facts.host.platform):
        return skipped(_("the lock is not for {platform}").format(platform=facts.host.platform))
    return None


@rule(
    "lock.host-platform",
    Severity.HIGH,
    lambda: _("add the platform to `platforms` of the variant in environments/matrix.yaml and lock again"),
)
def platform(subject: Subject, facts: Facts) -> Result:
    if facts.host is None:
        return skipped(_("no machine was to be looked at"))
    own = facts.host.platform
    if subject.on(own):
        return good(_("the lock has packages for {platform}").format(platform=own))
    text = _("the lock is for {platforms}, the machine is {platform}")
    return found(
        [
            Finding(
                place="metadata.platforms",
                text=text.format(platforms=", ".join(subject.platforms), platform=own),
            )
        ],
        "",
    )


@rule(
    "lock.host-glibc",
    Severity.FATAL,
    lambda: _(
        "use a newer system or a container, or lower `glibc` of the source, or else of `defaults`, in"
        " environments/matrix.yaml and lock again"
    ),
)
def glibc(subject: Subject, facts: Facts) -> Result:
    spared = _spared(subject, facts)
    if spared or facts.host is None:
        return spared or skipped("")
    wanted = [need for need in needs_of(subject, facts, facts.host.platform) if need.name == "__glibc"]
    if not wanted:
        return good(_("nothing asks for glibc"))
    if facts.host.glibc is None:
        return skipped(_("the machine's glibc is not known"))
    return found(
        _unmet(wanted, facts.host.glibc, facts.host.platform),
        _("glibc {version} is new enough").format(version=facts.host.glibc),
    )


@rule(
    "lock.host-system",
    Severity.FATAL,
    lambda: _("use a newer system, or lock with a lower floor in `virtual_packages`"),
)
def system(subject: Subject, facts: Facts) -> Result:
    """The kernel on Linux, the release on macOS and Windows."""
    spared = _spared(subject, facts)
    if spared or facts.host is None:
        return spared or skipped("")
    wanted = [
        need
        for need in needs_of(subject, facts, facts.host.platform)
        if need.name in ("__linux", "__osx", "__win") and need.constraint.strip(" *")
    ]
    if not wanted:
        return good(_("nothing asks for a version of the system"))
    if facts.host.system is None:
        return skipped(_("the version of the machine's system is not known"))
    return found(
        _unmet(wanted, facts.host.system, facts.host.platform),
        _("version {version} of the system is new enough").format(version=facts.host.system),
    )


def _unmet(wanted: list[Need], version: str, platform: str) -> Iterator[Finding]:
    for need in wanted:
        try:
            met = allows(need.constraint, version)
        except Unreadable:
            continue  # told by lock.constraints
        if not met:
            text = _("{package} needs {name} {constraint}, the machine has {version}")
            yield Finding(
                place="",
                text=text.format(
                    package=need.package,
                    name=need.name.removeprefix("__"),
                    constraint=need.constraint,
                    version=version,
                ),
                platform=platform,
                package=need.package,
            )


@rule(
    "lock.host-cpu",
    Severity.FATAL,
    lambda: _("pin a lower level: _x86_64-microarch-level=1 in the spec, and lock again"),
)
def cpu(subject: Subject, facts: Facts) -> Result:
    spared = _spared(subject, facts)
    if spared or facts.host is None:
        return spared or skipped("")
    level = cpu_level_needed(_packages(subject, facts.host))
    if level <= 1:
        return good(_("any processor of the platform will do"))
    if facts.host.cpu_level is None:
        return skipped(_("it needs x86_64_v{level}; the machine's level is not known").format(level=level))
    text = _("it needs x86_64_v{level}, the machine's processor is x86_64_v{own}")
    low = facts.host.cpu_level < level
    finding = Finding(place="", text=text.format(level=level, own=facts.host.cpu_level))
    return found(
        [finding] if low else [], _("the processor has x86_64_v{level}").format(level=facts.host.cpu_level)
    )


@rule(
    "lock.host-driver",
    Severity.FATAL,
    lambda: _("update the NVIDIA driver, or choose a variant for an older CUDA: `envkit variants`"),
)
def driver(subject: Subject, facts: Facts) -> Result:
    spared = _spared(subject, facts)
    if spared or facts.host is None:
        return spared or skipped("")
    host = facts.host
    cuda = runtime(_packages(subject, host))
    if cuda is None:
        return good(_("a CPU build needs no driver"))
    if host.driver is None and host.driver_cuda is None:
        return skipped(
            _("it is for CUDA {cuda}; no driver was named").format(cuda=cuda)
            if facts.named
            else _("it is for CUDA {cuda}; no NVIDIA driver is here, torch would use the CPU").format(
                cuda=cuda
            )
        )
    answer = driver_ok(cuda, host)
    if answer.verdict is Verdict.UNKNOWN:
        return skipped(answer.reason)
    findings = list(_virtual_cuda(subject, facts, host))
    if answer.verdict is Verdict.NO:
        findings.insert(0, Finding(place="", text=answer.reason, platform=host.platform))
    return found(
        findings,
        _("the driver ({driver}) runs CUDA {cuda}").format(driver=host.driver or host.driver_cuda, cuda=cuda),
    )


def _virtual_cuda(subject: Subject, facts: Facts, host: Host) -> Iterator[Finding]:
    if host.driver_cuda is not None:
        wanted = [need for need in needs_of(subject, facts, host.platform) if need.name == "__cuda"]
        yield from _unmet(wanted, host.driver_cuda, host.platform)


@rule(
    "lock.host-gpu",
    Severity.FATAL,
    lambda: _(
        "choose a build that has code for every GPU: `envkit variants`, or `envkit up --cuda auto` on that"
        " machine"
    ),
)
def gpus(subject: Subject, facts: Facts) -> Result:
    """Each GPU's compute capability against the code in the build of torch."""
    spared = _spared(subject, facts)
    if spared or facts.host is None:
        return spared or skipped("")
    packages = _packages(subject, facts.host)
    torch = torch_of({package.name: package for package in packages})
    cuda = runtime(packages)
    if torch is None or cuda is None or build_cuda(torch) not in (cuda, UNSTATED, None):
        return good(_("there is no CUDA build of torch in it"))
    if not facts.host.gpus:
        return skipped(_("no GPU was named") if facts.named else _("there is no NVIDIA GPU here"))
    source: Source | None = "pip" if torch.manager == "pip" else _SOURCES.get(channel_of(torch))
    try:
        release = Version(torch.version).public
    except InvalidVersion:
        release = None
    if source is None or release is None:
        return skipped(_("which GPUs this build of torch runs on is not on record"))
    build = Build(source=source, torch=release, cuda=cuda, platform=facts.host.platform)
    answers = [build_runs(build, gpu, facts.host) for gpu in facts.host.gpus]
    return _of_answers(answers, facts.host)


def _of_answers(answers: list[Answer], host: Host) -> Result:
    refused = [answer.reason for answer in answers if answer.verdict is Verdict.NO]
    if refused:
        findings = (
            Finding(place="", text=reason, platform=host.platform) for reason in dict.fromkeys(refused)
        )
        return found(findings, "")
    unknown = [answer.reason for answer in answers if answer.verdict is Verdict.UNKNOWN]
    if unknown:
        return skipped("; ".join(dict.fromkeys(unknown)))
    notes = "; ".join(dict.fromkeys(answer.reason for answer in answers if answer.reason))
    capabilities = ", ".join(dict.fromkeys(gpu.capability or "?" for gpu in host.gpus))
    text = _("torch has code for compute capability {capabilities}").format(capabilities=capabilities)
    return good(f"{text} ({notes})" if notes else text)
