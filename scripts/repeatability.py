"""How alike two recordings of the same runs are: writes the figures, and docs/repeatability.md from them.

Without arguments it writes the document alone; with two folders of runs, FIRST and SECOND, the figures too.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from pathlib import Path

import tomli_w

from generator.errors import UserError
from generator.timeline.repeatability import (
    FILE_NAME,
    REPEAT_TOLERANCE,
    Repeatability,
    read_repeatability,
    repeated,
    to_toml,
)

ROOT = Path(__file__).resolve().parent.parent
RUNS, DOCUMENT = ROOT / "measured_runs", ROOT / "docs" / "repeatability.md"
WHAT = (
    "All runs were recorded twice on one machine, one after the other, each time anew: processes, network, "
    "weights. Below is the step of each in isolated mode (each rank on a device of its own, the link of its "
    "calibration), as the median over its timed steps."
)
MADE = "Made by `python scripts/repeatability.py` from `measured_runs/{}`."
MINUTES = "Recording everything took {:g} minutes the first time and {:g} the second."
ROWS = "| run | first, ms | second, ms | difference |\n|---|---:|---:|---:|\n"
DIFFERS = (
    "What differs is computation: the processor does not always run equally fast. What is counted (calls, "
    "bytes, micro-batches in flight, losses to the last digit shown) does not differ at all."
)


def document(found: Repeatability) -> str:
    """The figures as Markdown."""
    made = [MADE.format(FILE_NAME)]
    if len(found.minutes) == 2:
        made.append(MINUTES.format(*found.minutes))
    rows = (f"| {r.run} | {r.first_ms:.1f} | {r.second_ms:.1f} | {r.difference:+.1%} |\n" for r in found.runs)
    median = f"{found.median_difference:.1%} (limit {REPEAT_TOLERANCE:.0%})"
    return "\n".join(
        (
            "# How repeatable the recordings are\n",
            paragraph(WHAT, found.note),
            paragraph(*made),
            f"{ROWS}{''.join(rows)}",
            paragraph(f"Median of {len(found.runs)} runs: {median}."),
            paragraph(DIFFERS),
        )
    ).rstrip("\n") + "\n"  # fmt: skip


def paragraph(*sentences: str) -> str:
    return textwrap.fill(" ".join(s for s in sentences if s), 115, break_on_hyphens=False) + "\n"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, metavar="FIRST SECOND")
    parser.add_argument("--minutes", nargs=2, type=float, default=(), help="how long each recording took")
    parser.add_argument("--note", default="", help="how the recordings were made")
    given = parser.parse_args(arguments)
    if len(given.folders) not in (0, 2):
        parser.error("give both folders of runs, or none")
    if given.folders:
        found = Repeatability(given.note, tuple(given.minutes), tuple(repeated(*given.folders)))
        (RUNS / FILE_NAME).write_text(tomli_w.dumps(to_toml(found)), encoding="utf-8")
    figures = read_repeatability(RUNS)
    if figures is None:
        parser.error(f"{FILE_NAME} is missing: give both folders of runs")
    DOCUMENT.write_text(document(figures), encoding="utf-8")
    return int(figures.median_difference > REPEAT_TOLERANCE)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except UserError as error:
        sys.exit(f"error: {error}")
