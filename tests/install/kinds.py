"""The tiny packages that the tests of installing share."""

from __future__ import annotations

from tinychannel import MINOR, PLATFORM, TinyPackage, this_python

KINDS = (
    this_python(),
    TinyPackage(
        "greeting",
        files={"site-packages/greeting.py": "def main():\n    print('hello from greeting')\n"},
        noarch="python",
        depends=[f"python >={MINOR}"],
        entry_points=["greet = greeting:main"],
    ),
    TinyPackage(
        "hooks",
        files={
            "etc/conda/activate.d/hooks.sh": 'export HOOK_PREFIX="$CONDA_PREFIX" HOOK_TEXT="two\nlines"\n',
            "etc/conda/deactivate.d/hooks.sh": "unset HOOK_PREFIX HOOK_TEXT\n",
            "etc/conda/env_vars.d/hooks.json": '{"HOOK_VARIABLE": "set by a package"}',
        },
        platform=PLATFORM,
    ),
    TinyPackage(
        "data", files={f"share/data/{number}.bin": b"%d" % number for number in range(60)}, noarch="generic"
    ),
)
"""One of every kind that an install treats in its own way."""
