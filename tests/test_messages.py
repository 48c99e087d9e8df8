"""Every text a user can see is in the catalogue, translated, with its placeholders intact."""

from __future__ import annotations

import ast
import gettext
import re
import string
from pathlib import Path

import pytest

from envkit import messages

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "envkit"
CATALOGUE = PACKAGE / "messages" / "zh" / "LC_MESSAGES" / "envkit.po"
SOURCES = sorted(path for path in PACKAGE.rglob("*.py") if "probe" not in path.parts)


def calls(path: Path, name: str) -> list[ast.Call]:
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
    ]


def texts_in_code() -> dict[str, str]:
    """Every literal given to `_`, with the place of its first use."""
    found: dict[str, str] = {}
    for path in SOURCES:
        for call in calls(path, "_"):
            (argument,) = call.args
            where = f"{path.relative_to(ROOT)}:{call.lineno}"
            assert isinstance(argument, ast.Constant), f"{where}: _() needs a literal, filled in afterwards"
            assert isinstance(argument.value, str)
            found.setdefault(argument.value, where)
    return found


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


def test_every_text_is_translated_with_its_placeholders() -> None:
    pofile = pytest.importorskip("babel.messages.pofile")
    with CATALOGUE.open("rb") as file:
        catalogue = pofile.read_po(file)
    missing, wrong = [], []
    for text, where in texts_in_code().items():
        entry = catalogue.get(text)
        if entry is None or not entry.string or entry.fuzzy:
            missing.append(f"{where}: {text!r}")
        elif placeholders(text) != placeholders(str(entry.string)):
            wrong.append(f"{where}: {text!r} -> {entry.string!r}")
    assert not missing, "not translated (make messages, then fill in):\n" + "\n".join(missing)
    assert not wrong, "placeholders differ:\n" + "\n".join(wrong)


def test_the_compiled_catalogue_is_the_text_one() -> None:
    pofile = pytest.importorskip("babel.messages.pofile")
    with CATALOGUE.open("rb") as file:
        written = {entry.id: entry.string for entry in pofile.read_po(file) if entry.id}
    with CATALOGUE.with_suffix(".mo").open("rb") as file:
        compiled = gettext.GNUTranslations(file)
    stale = [text for text, meant in written.items() if compiled.gettext(text) != meant]
    assert not stale, "run `make messages`"


@pytest.mark.parametrize("kind", ["Error", "InputError", "Findings"])
def test_no_error_is_raised_with_an_untranslated_text(kind: str) -> None:
    bare = []
    for path in SOURCES:
        for call in calls(path, kind):
            for argument in call.args[:2]:
                literal = isinstance(argument, ast.Constant) and re.search(
                    r"[A-Za-z]{2}", str(argument.value)
                )
                if literal or (isinstance(argument, ast.JoinedStr) and " " in ast.unparse(argument)):
                    bare.append(f"{path.relative_to(ROOT)}:{argument.lineno}: {ast.unparse(argument)[:80]}")
    assert not bare, "\n".join(bare)


def test_the_language_follows_choice_then_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ENVKIT_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    try:
        messages.use()
        assert messages.language() == "en"
        monkeypatch.setenv("LANG", "zh_CN.UTF-8")
        messages.use()
        assert messages.language() == "zh"
        assert messages._("interrupted") != "interrupted"
        messages.use("en")
        assert messages._("interrupted") == "interrupted"
    finally:
        messages.use("en")
