"""What the README says of commands, exit codes and variants is what the program says.

Run as a program, this file writes the generated blocks anew: `python tests/test_readme.py`.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from envkit.cli.frame import VERBS
from envkit.errors import ExitCode
from envkit.lock import read_lock
from envkit.matrix import read_matrix

ROOT = Path(__file__).parents[1]
READMES = (ROOT / "README.md", ROOT / "README.zh-CN.md")


def commands_block() -> str:
    return "\n".join(["```", *(f"envkit {name:<9} {text}" for name, text in VERBS.items()), "```"])


def variants_block() -> str:
    rows = [
        "| variant | Python | accelerator | source | extras | locked torch | platforms |",
        "|" + " --- |" * 7,
    ]
    matrix = read_matrix(ROOT / "environments" / "matrix.yaml")
    for variant in matrix.variants:
        path = ROOT / "environments" / variant.name / "conda-lock.yml"
        torch, platforms = "not committed", ", ".join(variant.platforms)
        if matrix.commits(variant):
            lock = read_lock(path)
            torch = next(p.version for p in lock.packages if p.name == "pytorch")
            platforms = ", ".join(lock.platforms)
        accelerator = "CPU" if variant.cuda is None else f"CUDA {variant.cuda}"
        extras = ", ".join(variant.extras) or "-"
        cells = (f"`{variant.name}`", variant.python, accelerator, variant.source, extras, torch, platforms)
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows)


BLOCKS = {"commands": commands_block, "variants": variants_block}


def fill(text: str) -> str:
    for name, block in BLOCKS.items():
        made = block() + "\n"
        pattern = rf"(?<=<!-- {name}: begin -->\n).*?(?=<!-- {name}: end -->)"
        text, count = re.subn(pattern, lambda _, made=made: made, text, flags=re.DOTALL)
        assert count == 1, f"one block named {name}"
    return text


@pytest.mark.parametrize("path", READMES, ids=lambda path: path.name)
def test_generated_blocks_are_up_to_date(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text == fill(text), "run: python tests/test_readme.py"


@pytest.mark.parametrize("path", READMES, ids=lambda path: path.name)
def test_exit_codes_are_all_there(path: Path) -> None:
    told = re.findall(r"^\| (\d+) \|", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert [int(code) for code in told] == sorted(ExitCode)


@pytest.mark.parametrize("path", READMES, ids=lambda path: path.name)
def test_every_make_target_named_is_there(path: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    named = set(
        re.findall(r"(?:^|`)make ([a-z][a-z-]+)", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    )
    assert named
    assert named <= targets


if __name__ == "__main__":
    for readme in READMES:
        readme.write_text(fill(readme.read_text(encoding="utf-8")), encoding="utf-8")
