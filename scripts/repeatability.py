"""How alike two recordings of the same runs are: python scripts/repeatability.py FIRST SECOND.

Both are folders of runs. Printed as Markdown, one row a run that both have: the isolated step of the
representative step, and of all timed steps the median.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

from generator.errors import UserError
from generator.runs.reader import read_run_named, run_ids
from generator.runs.run import Run
from generator.timeline.reconstruct import reconstruct

LIMIT = 0.05


def isolated_ms(runs: Path, run: Run) -> float:
    """Median isolated step over the timed steps, ms."""
    name = run.manifest.link.calibration
    calibration = read_run_named(runs, name) if name else None
    steps = [
        reconstruct(run, calibration=calibration, step=step).step_ns / 1e6
        for step in run.manifest.timed_steps
    ]
    return statistics.median(steps)


def main(first: Path, second: Path) -> int:
    print("| run | first, ms | second, ms | difference |\n|---|---:|---:|---:|")
    differences = []
    for run_id in [r for r in run_ids(first) if r in run_ids(second)]:
        a, b = read_run_named(first, run_id), read_run_named(second, run_id)
        if not a.ranks or not a.manifest.timed_steps:
            continue
        one, two = isolated_ms(first, a), isolated_ms(second, b)
        differences.append(abs(two / one - 1))
        print(f"| {run_id} | {one:.1f} | {two:.1f} | {two / one - 1:+.1%} |")
    median = statistics.median(differences)
    print(f"\nMedian of {len(differences)} runs: {median:.1%} (limit {LIMIT:.0%}).")
    return int(median > LIMIT)


if __name__ == "__main__":
    try:
        sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
    except UserError as error:
        sys.exit(f"error: {error}")
