"""The solver's words, cut to what decides."""

from __future__ import annotations

from envkit.solve.reason import Excluded, parse_reason, readable

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
    assert parse_reason(LONG).lines == (
        "pytorch 2.1.* *cuda12.1* cannot be had:",
        "  pytorch 2.1.0 requires",
        "    python >=3.11,<3.12.0a0, which cannot be had:",
        "      python 3.11.0 to 3.11.15 conflicts with that",
        "python 3.12.* can be installed with any of the following options:",
        "  python 3.12.0",
    )


def test_what_nothing_matches_is_found_in_both_wordings() -> None:
    text = "Cannot solve the request because of: No candidates were found for pandas ==9.9.\n"
    assert parse_reason(text).missing == ("pandas ==9.9",)
    text = """\
Cannot solve the request because of: pytorch ==2.5.1 cannot be installed because there are no viable options:
└─ pytorch 2.5.1 would require
   └─ mkl >=2018, for which no candidates were found.
"""
    assert parse_reason(text).missing == ("mkl >=2018",)
    assert parse_reason(text).lines[-1] == "    mkl >=2018, for which no candidates were found."


def test_what_priority_hides_is_named_with_its_channel() -> None:
    reason = parse_reason(HIDDEN)
    assert reason.excluded == (Excluded(name="cuda-libraries", channel="https://conda.anaconda.org/nvidia"),)
    assert "hidden by strict channel priority" in reason.lines[-1]


def test_a_long_reason_is_cut() -> None:
    text = "Cannot solve the request because of: a cannot be installed because there are no viable options:\n"
    text += "".join(
        f"├─ b{number} 1.0 would require\n│  └─ c{number} 2.0, for which no candidates were found.\n"
        for number in range(40)
    )
    lines = readable(text).splitlines()
    assert len(lines) == 9
    assert lines[-1] == "… and 73 more lines"
