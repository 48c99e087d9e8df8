"""Files as git has them: read from the project's repository, never written, no hook or filter run."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from envkit.errors import Error, InputError
from envkit.messages import _

__all__ = ["committed_bytes", "committed_names", "earlier_texts", "repository_top", "revision_id"]

_SECONDS = 30


def revision_id(folder: Path, revision: str) -> str:
    """The full commit id that a revision ("HEAD~1", a tag, a branch) means in the repository around `folder`.

    An empty revision is the index, what is staged for the next commit, and has the empty id. Raises Error
    where git is not there, InputError where there is no repository or no such revision.
    """
    if not revision:
        _require_repository(folder)
        return ""
    if revision.startswith("-"):
        raise _no_revision(revision)
    done = _git(folder, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    if done.returncode != 0:
        # Quiet as it is, git still explains a folder without a repository, or one it does not trust.
        _require_repository(folder)
        raise _no_revision(revision)
    return done.stdout.decode().strip()


def committed_bytes(folder: Path, revision: str, path: str) -> bytes | None:
    """The content of a file at a revision, None where the revision has none of that name.

    `path` counts from the top of the repository, or from `folder` where it starts with `./`.
    """
    done = _git(folder, "cat-file", "blob", f"{revision_id(folder, revision)}:{path}")
    return done.stdout if done.returncode == 0 else None


def committed_names(folder: Path, revision: str, pattern: str) -> tuple[str, ...]:
    """The committed files at a revision, as paths from `folder`, that a shell pattern fits."""
    tree = revision_id(folder, revision)
    listing = ("ls-tree", "-r", "-z", "--name-only", tree) if tree else ("ls-files", "-z")
    done = _git(folder, *listing)
    names = done.stdout.decode(errors="replace").split("\0") if done.returncode == 0 else []
    return tuple(sorted(name for name in names if fnmatchcase(name, pattern)))


def repository_top(folder: Path) -> Path:
    """The top folder of the repository around `folder`; InputError where there is none."""
    _require_repository(folder)
    return Path(os.fsdecode(_git(folder, "rev-parse", "--show-toplevel").stdout.rstrip(b"\n")))


def earlier_texts(folder: Path, path: str, *, most: int = 20) -> Iterator[str]:
    """The committed texts of a file, newest first, at most so many; none where git cannot tell.

    `path` counts from `folder`. Never fails: what was committed is a help to explain, not a need.
    """
    try:
        commits = _git(folder, "log", f"--max-count={most}", "--format=%H", "--", path)
        for commit in commits.stdout.decode().split() if commits.returncode == 0 else []:
            blob = _git(folder, "cat-file", "blob", f"{commit}:./{path}")
            if blob.returncode == 0:
                yield blob.stdout.decode(errors="replace")
    except Error:
        return


def _git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    environ = {**os.environ, "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
    try:
        return subprocess.run(
            ["git", "-C", str(folder), *arguments],
            env=environ, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=_SECONDS,
        )  # fmt: skip
    except FileNotFoundError:
        raise Error(
            _("git is not installed here, so nothing can be read at a revision"),
            _("install git, or compare files: envkit diff OLD.yml NEW.yml"),
        ) from None
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise Error(_("git does not answer: {reason}").format(reason=problem)) from None


def _require_repository(folder: Path) -> None:
    done = _git(folder, "rev-parse", "--git-dir")
    if done.returncode == 0:
        return
    reason = re.sub(r"^fatal: ", "", done.stderr.decode(errors="replace").strip()).split("\n", 1)[0]
    raise InputError(
        _("{folder} cannot be read as a git repository: {reason}").format(folder=folder, reason=reason),
        _("compare files instead, or run this inside the repository of the project"),
    )


def _no_revision(revision: str) -> InputError:
    return InputError(
        _("git knows no revision '{revision}' here").format(revision=revision),
        _("`git log --oneline -- environments` lists some; a shallow clone lacks the older ones"),
    )
