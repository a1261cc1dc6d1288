"""Try the properties of the tests on many random examples: make fuzz.

A round tries each property EXAMPLES times, from a seed of its own. Rounds go on until the minutes are
over; without minutes there is one. The first failure ends it and says how to see it again.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_NO_TESTS = 5


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Try properties on random examples.")
    parser.add_argument("--examples", type=int, default=1000, help="of each property, a round")
    parser.add_argument("--minutes", type=float, default=0.0, help="how long to go on; 0 for one round")
    parser.add_argument("--seed", type=int, help="of the one round, to see a failure again")
    given, further = parser.parse_known_args(arguments)
    end = time.monotonic() + 60 * given.minutes
    while True:
        seed = random.randrange(2**32) if given.seed is None else given.seed
        failed = fuzz(given.examples, seed, further)
        if failed or given.seed is not None or time.monotonic() >= end:
            return failed


def fuzz(examples: int, seed: int, further: list[str]) -> int:
    """One round; pytest's exit code."""
    print(f"{examples} examples of each property, SEED={seed}", flush=True)
    command = [sys.executable, "-m", "pytest", "-q", "-m", "hypothesis", f"--hypothesis-seed={seed}",
               "--ignore=tests/browser", *further]  # fmt: skip
    environment = os.environ | {"SHARDBOOK_EXAMPLES": str(examples)}
    code = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    if code not in (0, _NO_TESTS):
        print(f"\nAgain: make fuzz EXAMPLES={examples} SEED={seed}", flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
