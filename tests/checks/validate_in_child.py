"""Run by the tests: validate an interpreter, print the report as JSON, exit by the verdict."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from envkit.checks import UNKNOWN, Target, validate
from envkit.report import to_json

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("python", type=Path)
    parser.add_argument("--cuda", default=UNKNOWN)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", action="append", default=[])
    asked = parser.parse_args()
    report = validate(
        Target(python=asked.python, cuda=None if asked.cuda == "cpu" else asked.cuda),
        quick=asked.quick,
        only=asked.only,
    )
    print(json.dumps(to_json(report)))
    sys.exit(0 if report.ok else 1)
