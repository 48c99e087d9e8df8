"""Runs the user's own pip, with the user's own configuration, and says in plain words why it failed.

pip alone knows which indexes, proxies, certificates and credentials hold here, so everything about wheels
that needs a connection is asked of it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from envkit.errors import Error
from envkit.messages import _

__all__ = ["PipError", "command", "has_no_index", "newer", "run", "version"]

FIRST_TO_REPORT = "22.2"
"""The first pip that can say what it would install."""

FIRST_TO_REPORT_LIGHTLY = "23.3"
"""The first that does not download what it only reports (pypa/pip#12186)."""

_TAIL = 6
"""How many of pip's last lines go into an error."""


class PipError(Error):
    """pip did not do it. `kind` is one of "disk", "old", "certificate", "refused", "conflict",
    "unreachable", "missing", "other"."""

    def __init__(self, kind: str, message: str, hint: str) -> None:
        super().__init__(message, hint)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class _Reason:
    """What a piece of pip's text stands for."""

    kind: str
    pattern: re.Pattern[str]
    message: Callable[[], str]
    hint: Callable[[], str]


def _reason(kind: str, pattern: str, message: Callable[[], str], hint: Callable[[], str]) -> _Reason:
    return _Reason(kind, re.compile(pattern, re.IGNORECASE), message, hint)


_REASONS = (
    _reason(
        "disk",
        r"no space left on device|disk quota exceeded",
        lambda: _("the disk is full"),
        lambda: _("free some space, or set ENVKIT_CACHE and TMPDIR to a larger disk"),
    ),
    _reason(
        "old",
        r"no such option: --(?:dry-run|report)",
        lambda: _("pip is too old to say what it would install"),
        lambda: _("run `{python} -m pip install --upgrade pip`").format(python=sys.executable),
    ),
    _reason(
        "certificate",
        r"CERTIFICATE_VERIFY_FAILED|SSLError|SSLCertVerificationError",
        lambda: _("the index's certificate is not trusted here"),
        lambda: _("name your proxy's certificate: `pip config set global.cert FILE`"),
    ),
    _reason(
        "refused",
        r"\b(?:401|403|407)\b.{0,40}(?:error|unauthorized|forbidden|proxy)|ProxyError.*407",
        lambda: _("the index or the proxy refused the request (credentials?)"),
        lambda: _("check `pip config list`, ~/.netrc and the variables HTTPS_PROXY and NO_PROXY"),
    ),
    _reason(
        "conflict",
        r"ResolutionImpossible|conflicting dependencies",
        lambda: _("these requirements contradict each other or your pip constraints"),
        lambda: _("loosen the versions asked for, or the constraints in `pip config list`"),
    ),
    _reason(
        "missing",
        r"from versions: (?!none)",
        lambda: _("no wheel of that version fits this Python and this machine"),
        lambda: _("ask for another version (`--torch`, `--python`), or look at `pip config list`"),
    ),
    _reason(
        "unreachable",
        r"Retrying \(Retry|NewConnectionError|ConnectTimeout|Name or service not known|ProxyError"
        r"|ReadTimeout|name resolution|Network is unreachable|Connection refused|Failed to establish",
        lambda: _("pip reaches no package index"),
        lambda: _(
            "give pip an index it can reach (`pip config set global.index-url URL`) "
            "or a folder of wheels (`PIP_FIND_LINKS=DIR`)"
        ),
    ),
    _reason(
        "missing",
        r"No matching distribution|Could not find a version",
        lambda: _("pip finds no wheel of it at all"),
        lambda: _("look at `pip config list`: is the index the right one, and does it carry wheels?"),
    ),
)


def command() -> list[str]:
    """How to run pip with the interpreter that runs this; the copy that `ensurepip` carries where none is."""
    from importlib.util import find_spec

    if find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    if find_spec("ensurepip") is not None:
        import ensurepip

        bundled = Path(ensurepip.__file__).parent / "_bundled"
        for wheel in sorted(bundled.glob("pip-*.whl")):
            return [sys.executable, str(wheel / "pip")]
    raise PipError(
        "other",
        _("pip is not installed for {python}").format(python=sys.executable),
        _("run `{python} -m ensurepip`, or install your distribution's python3-pip").format(
            python=sys.executable
        ),
    )


def version() -> tuple[int, ...]:
    """The version of the pip that `command` runs: (23, 2); empty where it does not say."""
    said: list[str] = []
    run(["--version"], heard=said.append)
    found = re.match(r"pip (\d+)\.(\d+)", said[0]) if said else None
    return (int(found[1]), int(found[2])) if found else ()


def has_no_index() -> bool:
    """Whether the user's configuration forbids pip every index (`no-index`)."""
    said: list[str] = []
    run(["config", "list"], heard=said.append)
    settings = (re.match(r"\S*\bno-index='(.*)'", line) for line in said)
    return any(found and found[1].lower() in ("1", "true", "yes", "on", "y", "t") for found in settings)


def newer(folder: Path, least: str = FIRST_TO_REPORT) -> list[str]:
    """How to run a pip of at least that version, fetched as a wheel into `folder` by an older one.

    Ubuntu 22.04 comes with pip 22.0. Nothing is installed: pip runs from where its wheel is unpacked, which
    takes half the time that it takes from inside.
    """
    run(["download", "--no-deps", "--only-binary", ":all:", "--dest", str(folder), f"pip>={least}"])
    (wheel,) = folder.glob("pip-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "newer")
    return [sys.executable, str(folder / "newer" / "pip")]


def run(
    arguments: Sequence[str],
    *,
    heard: Callable[[str], object] | None = None,
    program: Sequence[str] | None = None,
    limit: float | None = None,
    temporary: Path | None = None,
) -> None:
    """Run pip to its end; `heard` is told every line it says, and stops pip by raising.

    `program` is how to run it, by default `command()`; `limit` how many seconds it has, until `heard` returns
    something true; `temporary` where it puts what it does not keep.
    PipError, with pip's last lines, where it fails.
    """
    # By itself pip tries five times, fifteen seconds each, for every package: minutes of waiting.
    environment = {"PIP_RETRIES": "2", **os.environ, "PIP_USER": "0", "PYTHONSAFEPATH": "1"}
    environment |= {
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_REQUIRE_VIRTUALENV": "0",
        "PIP_PROGRESS_BAR": "off",
    }
    if temporary is not None:
        environment["TMPDIR"] = str(temporary)
    lines: list[str] = []
    options = ["--no-input", "--no-color"]
    full = [*(program or command()), *arguments[:1], *options, *arguments[1:]]
    process = subprocess.Popen(
        full,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
        text=True,
        encoding="utf-8",
        errors="replace",
    )
    late = threading.Event()

    def stop() -> None:
        late.set()
        process.terminate()

    watch = threading.Timer(limit or 0, stop)
    if limit is not None:
        watch.start()
    try:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line.rstrip())
            if heard is not None and heard(line):
                watch.cancel()
        code = process.wait()
    finally:
        watch.cancel()
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if process.stdout is not None:
            process.stdout.close()
    if late.is_set():
        raise PipError(
            "unreachable",
            _("pip had no answer within {seconds} s").format(seconds=round(limit or 0)),
            _("name a faster mirror, or try again later"),
        )
    if code:
        raise _explain(lines)


def _explain(lines: Sequence[str]) -> PipError:
    """What pip's text means; its last lines are kept, for whoever knows pip."""
    text = "\n".join(lines)
    said = [line for line in lines if line.strip() and "is ignored: it is neither" not in line]
    tail = "\n".join(f"  {line}" for line in said[-_TAIL:])
    for reason in _REASONS:
        if reason.pattern.search(text):
            return PipError(reason.kind, f"{reason.message()}\n{tail}", reason.hint())
    return PipError(
        "other",
        _("pip failed") + f"\n{tail}",
        _("run `{python} -m pip install --dry-run torch` to see the same").format(python=sys.executable),
    )
