"""Does a recording on a shared core predict the step with a core for each rank?

Recordings come in pairs of the same work on two ranks: `cores-shared-<scheme>`, with both ranks on one
core, and `cores-each-<scheme>`, with a core each. The first predicts the step of the second. This is
the one check of what a reconstruction is for: a step that was not recorded.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from generator.runs.run import Run
from generator.timeline.sharing import measured_steps_ns, predicted_step_ns

SHARED, EACH = "cores-shared-", "cores-each-"
#: What is promised of the error: for each pair, and in the median of pairs.
CORE_TOLERANCE = 0.06
CORE_MEDIAN_TOLERANCE = 0.03


@dataclass(frozen=True, slots=True)
class Pair:
    """Two recordings of one scheme, and the calibration of the link of the first."""

    scheme: str
    shared: Run
    each: Run
    calibration: Run


@dataclass(frozen=True, slots=True)
class CoreCheck:
    """A pair's prediction and what was measured, ns. Steps are those that count in a recording."""

    scheme: str
    shared: str
    each: str
    #: Median recorded step of the shared recording: what the prediction starts from.
    contended_ns: int
    predicted_ns: int
    #: Recorded steps of the other: median, shortest and longest.
    measured_ns: int
    shortest_ns: int
    longest_ns: int
    #: Steps of the other that count, of how many timed ones.
    steps: int
    steps_of: int

    @property
    def error(self) -> float:
        """Predicted over measured, minus one."""
        return self.predicted_ns / self.measured_ns - 1

    @property
    def spread(self) -> float:
        """(longest − shortest) ÷ median of the measured steps."""
        return (self.longest_ns - self.shortest_ns) / self.measured_ns


def pairs_among(run_ids: Iterable[str]) -> tuple[tuple[str, str, str], ...]:
    """(scheme, shared, each) of the pairs that are whole, in order of scheme."""
    known = set(run_ids)
    schemes = sorted(i.removeprefix(SHARED) for i in known if i.startswith(SHARED))
    return tuple((s, SHARED + s, EACH + s) for s in schemes if EACH + s in known)


def core_check(pairs: Iterable[Pair]) -> tuple[CoreCheck, ...]:
    """Hold the prediction from each pair's shared recording against its other recording."""
    return tuple(_checked(pair) for pair in pairs)


def _checked(pair: Pair) -> CoreCheck:
    measured = measured_steps_ns(pair.each)
    return CoreCheck(
        scheme=pair.scheme,
        shared=pair.shared.id,
        each=pair.each.id,
        contended_ns=round(statistics.median(measured_steps_ns(pair.shared))),
        predicted_ns=predicted_step_ns(pair.shared, pair.calibration),
        measured_ns=round(statistics.median(measured)),
        shortest_ns=min(measured),
        longest_ns=max(measured),
        steps=len(measured),
        steps_of=len(pair.each.manifest.timed_steps),
    )


def median_error(checks: Sequence[CoreCheck]) -> float:
    """Median over pairs of the error's size."""
    return statistics.median(abs(c.error) for c in checks)
