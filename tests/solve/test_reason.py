"""The solver's words, cut to what decides."""

from __future__ import annotations

import pytest

from envkit.solve.reason import SHORT, Excluded, parse_reason, readable

LONG = """\
Cannot solve the request because of: The following packages are incompatible
├─ pytorch 2.1.* *cuda12.1* cannot be installed because there are no viable options:
│  ├─ pytorch 2.1.0 would require
│  │  └─ python >=3.11,<3.12.0a0, which cannot be installed because there are no viable options:
│  │     ├─ python 3.11.15, which conflicts with the versions reported above.
│  │     ├─ python 3.11.15, which conflicts with the versions reported above.
│  │     └─ python 3.11.0 | 3.11.4, which conflicts with the versions reported above.
│  └─ pytorch 2.1.0 would require
│     └─ python >=3.11,<3.12.0a0, which cannot be installed because there are no viable options:
│        ├─ python 3.11.15, which conflicts with the versions reported above.
│        └─ python 3.11.0, which conflicts with the versions reported above.
└─ python 3.12.* can be installed with any of the following options:
   └─ python 3.12.0
"""
HIDDEN = """\
Cannot solve the request because of: The following packages are incompatible
└─ pytorch-cuda 12.1.* cannot be installed because there are no viable options:
   └─ pytorch-cuda 12.1 would require
      └─ cuda-libraries >=12.1,<12.2, which cannot be installed because there are no viable options:
         └─ cuda-libraries 12.1.1 is excluded because due to strict channel priority not using this option \
from: 'https://conda.anaconda.org/nvidia/'
"""


def test_options_of_one_kind_are_told_once() -> None:
    found = parse_reason(LONG, ["python 3.12.*", "pytorch 2.1.* *cuda12.1*"])
    assert found.lines == (
        "pytorch 2.1.* *cuda12.1* cannot be had:",
        "  pytorch 2.1.0 requires",
        "    python >=3.11,<3.12.0a0, which cannot be had:",
        "      python 3.11.0 to 3.11.15, but `python 3.12.*` is asked for",
        "python 3.12.* is asked for; there is:",
        "  python 3.12.0",
    )
    assert found.path == (*found.lines[:3], "      python 3.11.15, but `python 3.12.*` is asked for")


def test_what_nothing_matches_is_found_in_both_wordings() -> None:
    text = "Cannot solve the request because of: No candidates were found for pandas ==9.9.\n"
    assert parse_reason(text).missing == ("pandas ==9.9",)
    text = """\
Cannot solve the request because of: pytorch ==2.5.1 cannot be installed because there are no viable options:
└─ pytorch 2.5.1 would require
   └─ mkl >=2018, for which no candidates were found.
"""
    assert parse_reason(text).missing == ("mkl >=2018",)
    assert parse_reason(text).lines[-1] == "    mkl >=2018, of which there is none"


def test_what_priority_hides_is_named_with_its_channel() -> None:
    reason = parse_reason(HIDDEN)
    assert reason.excluded == (Excluded(name="cuda-libraries", channel="https://conda.anaconda.org/nvidia"),)
    assert "hidden by strict channel priority" in reason.lines[-1]


def test_of_a_long_reason_the_way_to_a_cause_is_shown_and_all_is_kept() -> None:
    text = "Cannot solve the request because of: a cannot be installed because there are no viable options:\n"
    text += "".join(
        f"├─ b{number} 1.0 would require\n│  └─ c{number} 2.0, for which no candidates were found.\n"
        for number in range(40)
    )
    assert readable(text).splitlines() == [
        "a cannot be had:",
        "  b0 1.0 requires",
        "    c0 2.0, of which there is none",
    ]
    assert len(parse_reason(text).lines) == 81


def test_a_way_that_is_long_itself_ends_in_its_cause() -> None:
    text = "Cannot solve the request because of: a cannot be installed because there are no viable options:\n"
    for depth in range(9):
        text += f"{'   ' * depth}└─ b{depth} 1.0 would require\n"
    text += f"{'   ' * 9}└─ c 2.0, for which no candidates were found.\n"
    lines = parse_reason(text).path
    assert len(lines) == SHORT
    assert lines[0] == "a cannot be had:" and lines[2].strip() == "…"
    assert lines[-1].strip() == "c 2.0, of which there is none"


@pytest.mark.parametrize(
    "sentence",
    [
        "No candidates were found for sklearn *.",
        "mkl >=2018, for which no candidates were found.",
        "__cuda * can be installed with any of the following options:",
        "python 3.11.*, which can be installed with any of the following options:",
        "python >=3.12,<3.13.0a0, which cannot be installed because there are no viable options:",
        "numpy <2 cannot be installed because there are no viable options:",
        "cudnn 9.3.0.75 | 9.7.1.26 | ... | 9.13.1.26 would require",
        "cuda-version 12.1 would constrain",
        "__cuda >=12, which conflicts with any installable versions previously reported",
        "numpy 1.0 is locked, but another version is required as reported above",
        "numpy 1.0 is locked, but it is excluded because yanked",
        "numpy 1.0 is excluded because yanked",
        "the constraint numpy <2 cannot be fulfilled",
    ],
)
def test_no_sentence_of_the_solvers_stays_in_its_own_words(sentence: str) -> None:
    """Translated parts in an English sentence read worse than either language."""
    (line,) = parse_reason(f"Cannot solve the request because of: {sentence}\n").lines
    theirs = (
        "viable",
        "candidates",
        "would",
        "options",
        "previously",
        "excluded",
        "locked",
        "fulfilled",
        " *",
    )
    assert not [word for word in theirs if word in line]
