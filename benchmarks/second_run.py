"""How much `envkit up` costs when there is nothing to do, as a ratio to the quick validation it ends with.

    python benchmarks/second_run.py [--rounds 5] [AXES of envkit up …]

Both commands run in turn within each round, so that a slow spell of the machine meets both. The promise is
that the median ratio stays under 1.5.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path


def timed(*arguments: str) -> tuple[float, str]:
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "envkit", *arguments, "--json"], capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - began
    if done.returncode not in (0, 1):
        sys.exit(done.stderr)
    return seconds, done.stdout


def main(arguments: list[str]) -> None:
    rounds = 5
    if arguments[:1] == ["--rounds"]:
        rounds, arguments = int(arguments[1]), arguments[2:]
    prefix = json.loads(timed("up", *arguments)[1])["result"]["prefix"]
    ratios = []
    for number in range(rounds):
        quick, _ = timed("validate", prefix, "--quick")
        again, said = timed("up", *arguments)
        if json.loads(said)["result"]["installed"]:
            sys.exit("the second run installed something")
        ratios.append(again / quick)
        print(
            f"round {number + 1}: validate --quick {quick:.2f} s, up again {again:.2f} s,"
            f" ratio {again / quick:.2f}"
        )
    print(
        f"{Path(prefix).name}: median ratio {statistics.median(ratios):.2f} (worst {max(ratios):.2f}),"
        f" promised 1.5"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
