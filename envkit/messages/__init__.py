"""The language of every message: English in the code, translations beside this file (gettext).

Write `_("{count} packages").format(count=n)`: the text is looked up first and filled in afterwards, so
that it stands in the catalogue with its placeholders.
"""

from __future__ import annotations

import gettext
import os
from pathlib import Path

__all__ = ["LANGUAGES", "_", "language", "use"]

LANGUAGES = ("en", "zh")

_FOLDER = Path(__file__).parent
_current = "en"
_catalogue: gettext.NullTranslations = gettext.NullTranslations()


def _(text: str) -> str:
    """`text` in the language in use."""
    return _catalogue.gettext(text)


def language() -> str:
    """The language in use: one of LANGUAGES."""
    return _current


def use(choice: str | None = None) -> None:
    """Speak `choice` from now on; without one, what ENVKIT_LANG or the locale asks for, else English."""
    global _current, _catalogue
    wanted = choice or _from_environment()
    _current = "zh" if wanted.lower().startswith("zh") else "en"
    _catalogue = gettext.translation("envkit", _FOLDER, languages=[_current], fallback=True)


def _from_environment() -> str:
    for name in ("ENVKIT_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        value = os.environ.get(name)
        if value:
            return value
    return "en"
