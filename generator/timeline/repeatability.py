"""How alike two recordings of the same runs are.

The figures lie beside the runs, in `repeatability.toml`: of the first recording nothing else is kept.
`scripts/repeatability.py` writes them; the page of validation and docs/repeatability.md show them.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from generator.errors import UserError, line_of
from generator.runs.reader import read_run_named, run_ids
from generator.runs.run import Run
from generator.texts import parse_toml, read_text
from generator.timeline.reconstruct import reconstruct

FILE_NAME = "repeatability.toml"
#: What the median of the differences' sizes over runs may be.
REPEAT_TOLERANCE = 0.05
_REMEDY = "Write it again with scripts/repeatability.py."


@dataclass(frozen=True, slots=True)
class Repeated:
    """A run's isolated step, the median over its timed steps, in two recordings."""

    run: str
    first_ms: float
    second_ms: float

    @property
    def difference(self) -> float:
        """Second over first, minus one."""
        return self.second_ms / self.first_ms - 1


@dataclass(frozen=True, slots=True)
class Repeatability:
    #: How the recordings were made, in a sentence or two; may be empty.
    note: str
    #: How long each of the two recordings of all runs took; may be empty.
    minutes: tuple[float, ...]
    runs: tuple[Repeated, ...]

    @property
    def median_difference(self) -> float:
        return statistics.median(abs(r.difference) for r in self.runs)


def read_repeatability(runs: Path) -> Repeatability | None:
    """The figures beside the runs; None where a book has none. Raises UserError."""
    path = runs / FILE_NAME
    if not path.is_file():
        return None
    text = read_text(path)
    data = parse_toml(text, path)
    try:
        rows = tuple(Repeated(**row) for row in data.pop("runs"))
        found = Repeatability(data.pop("note", ""), tuple(data.pop("minutes", ())), rows)
        numbers = [n for r in rows for n in (r.first_ms, r.second_ms)]
        if data or not rows or not all(n > 0 for n in numbers):
            raise ValueError
    except (KeyError, TypeError, ValueError):
        line = line_of(text, next(iter(data), "[[runs]]"))
        raise UserError("these are not figures of two recordings", path=path, line=line,
                        remedy=_REMEDY) from None  # fmt: skip
    return found


def to_toml(found: Repeatability) -> dict[str, Any]:
    """The figures as plain data, in the order of the file."""
    rows = [{"run": r.run, "first_ms": r.first_ms, "second_ms": r.second_ms} for r in found.runs]
    return {"note": found.note, "minutes": list(found.minutes), "runs": rows}


def repeated(first: Path, second: Path) -> Iterator[Repeated]:
    """The runs with timed steps that two folders of recordings both have, measured in each."""
    both = set(run_ids(second))
    for run_id in run_ids(first):
        if run_id not in both:
            continue
        one, two = read_run_named(first, run_id), read_run_named(second, run_id)
        if one.ranks and one.manifest.timed_steps:
            yield Repeated(run_id, *(_isolated_ms(runs, run) for runs, run in ((first, one), (second, two))))


def isolated_step_ns(run: Run, calibration: Run | None) -> float:
    """The isolated step of a run, ns, as the median over its timed steps."""
    steps: Sequence[int] = run.manifest.timed_steps
    return statistics.median(reconstruct(run, calibration=calibration, step=s).step_ns for s in steps)


def _isolated_ms(runs: Path, run: Run) -> float:
    name = run.manifest.link.calibration
    calibration = read_run_named(runs, name) if name else None
    return round(isolated_step_ns(run, calibration) / 1e6, 3)
