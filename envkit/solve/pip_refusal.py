"""Why a pip section has no lock, from what conda-lock's resolver (its copy of Poetry) raises."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from envkit.channels import hostname, shown_text
from envkit.errors import Error, Findings
from envkit.messages import _

__all__ = ["explained"]

_NO_WHEEL = "Unable to find installation candidates"
"""How Poetry's chooser begins its RuntimeError where a version has no file for the platform."""
_DUMMY = re.compile(r"[-_]dummy[-_]package[-_]")
"""Poetry solves for a package of its own making, which stands for the pip section."""
_NOTHING_MATCHES = re.compile(
    r"depends on (?P<name>\S+) \((?P<version>[^)]*)\) which doesn't match any versions"
)
_HOST = re.compile(r"host='(?P<host>[^']+)'|https?://(?:[^/@\s]*@)?(?P<url>[^/:\s]+)")


def explained(
    problem: Exception,
    *,
    name: str,
    platform: str,
    indexes: Sequence[str],
    alike: Callable[[str], Sequence[str]],
) -> Error:
    """The error to raise for it: Findings where there is no solution, Error where an index did not answer.

    `indexes` are those that were asked beside the public one; `alike` finds names that are spelled much like
    one that no index has.
    """
    from conda_lock._vendor.poetry.puzzle.exceptions import SolverProblemError

    if isinstance(problem, SolverProblemError):
        return _unsolvable(str(problem), name, platform, alike)
    if _NO_WHEEL in str(problem):
        return Findings(
            _("the pip section of {name} cannot be locked for {platform}: {reason}").format(
                name=name, platform=platform, reason=problem
            ),
            _("ask for a version that has a wheel or a source archive for that platform"),
        )
    host = next(_hosts(problem), None)
    if host is None:
        return Error(
            _("the pip section of {name} could not be solved for {platform}: {reason}").format(
                name=name, platform=platform, reason=problem
            ),
            _("check the index that `pip config list` shows, or set PIP_INDEX_URL"),
        )
    return Error(
        _(
            "the pip section of {name} could not be solved for {platform}: {host} did not answer ({kind})"
        ).format(name=name, platform=platform, host=host, kind=_kind(problem)),
        _hint(host, indexes),
    )


def _unsolvable(text: str, name: str, platform: str, alike: Callable[[str], Sequence[str]]) -> Findings:
    reason = _DUMMY.sub(_("the environment"), text).strip()
    match = _NOTHING_MATCHES.search(text)
    if match is None:
        return Findings(
            _("the pip section of {name} cannot be solved for {platform}:\n{reason}").format(
                name=name, platform=platform, reason=reason
            ),
            _("relax a constraint of the pip section; what conda provides is held at its version"),
        )
    near = [other for other in alike(match["name"]) if other != match["name"]]
    if match["name"] in alike(match["name"]):
        near = []  # the name is right, it is the version that there is not
    wanted = f"{match['name']} {match['version']}".removesuffix(" *")
    return Findings(
        _("the pip section of {name} cannot be solved for {platform}: no index has {package}").format(
            name=name, platform=platform, package=wanted
        ),
        _("did you mean {names}?").format(names=" / ".join(near))
        if near
        else _(
            "look the name and the version up in the index; `pip index versions {name}` lists them"
        ).format(name=match["name"]),
        details={"lacking": [{"kind": "pip", "spec": wanted, "nearest": near}], "reason": reason},
    )


def _causes(problem: BaseException | None) -> Iterator[BaseException]:
    while problem is not None:
        yield problem
        problem = problem.__cause__ or problem.__context__


def _hosts(problem: BaseException) -> Iterator[str]:
    """The servers that a failed connection was for."""
    for one in _causes(problem):
        if not isinstance(one, OSError) and "host=" not in str(one):
            continue  # of requests' errors all are OSErrors
        url = getattr(getattr(one, "request", None), "url", None)
        match = _HOST.search(url or str(one))
        if match is not None:
            yield match["host"] or match["url"]


def _kind(problem: BaseException) -> str:
    text = " ".join(map(str, _causes(problem)))
    if "NameResolution" in text or "resolve" in text:
        return _("its name is not known here")
    if "ProxyError" in text:
        return _("the proxy refused")
    if "timed out" in text.lower():
        return _("no answer in time")
    if "CERTIFICATE" in text.upper():
        return _("its certificate is not trusted")
    if "refused" in text:
        return _("the connection was refused")
    return shown_text(str(problem))[:160]


def _hint(host: str, indexes: Sequence[str]) -> str:
    from envkit.channels.table import table

    if host == hostname(table().pytorch):
        return _(
            "PyTorch's own builds (`+cu118`) come from {host}: try `--mirror sjtug`, which has copies of them"
        ).format(host=host)
    if any(hostname(url) == host for url in indexes):
        return _("check the index at {host}: the file, `pip config list` or PIP_INDEX_URL names it").format(
            host=host
        )
    return _("check the index that `pip config list` shows, or set PIP_INDEX_URL")
