"""How long work tells whoever watches: an observer that does nothing unless one is given."""

from __future__ import annotations

__all__ = ["SILENT", "Observer"]


class Observer:
    """Hears of the progress of one piece of work. The default hears nothing; `cli` shows it on stderr.

    Calls may come from several threads at once.
    """

    def start(self, task: str, total: int | None = None, unit: str = "B") -> None:
        """A task begins; `total` counts bytes (unit "B") or things (any other word)."""

    def advance(self, task: str, amount: int = 1) -> None:
        """`amount` more of the task is done."""

    def finish(self, task: str) -> None:
        """The task is done, or given up."""

    def note(self, text: str) -> None:
        """One line a user would want to read even without a progress bar."""


SILENT = Observer()
