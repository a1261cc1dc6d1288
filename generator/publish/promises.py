"""What is promised of all runs together, and the worst or the whole of what was measured."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from generator.publish import show
from generator.publish.library import Library
from generator.publish.parts import Promise
from generator.timeline.corecheck import CORE_MEDIAN_TOLERANCE, CORE_TOLERANCE, median_error
from generator.timeline.repeatability import REPEAT_TOLERANCE
from generator.timeline.validation import (
    LOSS_TOLERANCE,
    REPLAY_MEDIAN_TOLERANCE,
    REPLAY_TOLERANCE,
    Validation,
)

_METER_LEFT_PX, _METER_LIMIT_PX = 4, 100


def promises(library: Library) -> tuple[Promise, ...]:
    """One line a promise, those that the book has runs for."""
    found = [library.validation(m.id) for m in library.with_steps]
    return (*_losses(found), *_calls(found), *_replay(found), *_cores(library), *_repeated(library))


def predicted(library: Library) -> str:
    """How well a step is predicted that was not recorded, in a sentence."""
    checks = library.core_checks()
    if not checks:
        return "How well that layout predicts ranks that do have a device each is not measured in this book."
    worst = max(checks, key=lambda c: abs(c.error))
    return (
        f"From two ranks on one core it predicted the step of two ranks with a core each to "
        f"{show.percent(median_error(checks))} in the median of {len(checks)} schemes and "
        f"{show.percent(abs(worst.error))} in the worst."
    )


def meter(value: float, limit: float) -> int:
    """Where a value lies on the rail, px; a little beyond its end when it is over the limit."""
    part = min(value / limit, 1.05) if limit else 0.0
    return round(_METER_LEFT_PX + part * (_METER_LIMIT_PX - _METER_LEFT_PX))


def _losses(found: list[Validation]) -> Iterator[Promise]:
    losses = [v.loss_difference for v in found if v.loss_difference is not None]
    if losses:
        yield Promise(
            "Loss of every scheme against its partner, every step, largest relative difference",
            "≤ 10⁻⁶", show.power(max(losses)), len(losses), "losses", meter(max(losses), LOSS_TOLERANCE),
        )  # fmt: skip


def _calls(found: list[Validation]) -> Iterator[Promise]:
    calls = [v for v in found if v.calls]
    if calls:
        matched, total = sum(v.matched for v in calls), sum(v.calls for v in calls)
        yield Promise(
            "Collectives and sends matched across ranks", "all",
            f"{show.integer(matched)} of {show.integer(total)}", len(calls), "matching",
            meter(total - matched, total),
        )  # fmt: skip


def _replay(found: list[Validation]) -> Iterator[Promise]:
    if not found:
        return
    errors = [abs(v.median_replay_error) for v in found]
    yield _share(
        "Replay with recorded durations gives back the step, worst run (zero unless the graph is wrong)",
        REPLAY_TOLERANCE, max(errors), len(found), "replay",
    )  # fmt: skip
    yield _share(
        "The same, median of runs", REPLAY_MEDIAN_TOLERANCE, statistics.median(errors), len(found), "replay"
    )
    alone = sorted((v.median_replay_error_alone for v in found if v.calls), key=abs)
    if alone:
        yield Promise(
            "The same when no rank waits for another: what the edges between ranks carry", "–",
            show.percent(alone[-1], 1), len(alone), "replay",
        )  # fmt: skip


def _cores(library: Library) -> Iterator[Promise]:
    if checks := library.core_checks():
        worst, recordings = max(abs(c.error) for c in checks), 2 * len(checks)
        yield _share(
            "Step with a core for each rank, predicted from a recording on one core, worst scheme",
            CORE_TOLERANCE, worst, recordings, "cores",
        )  # fmt: skip
        median = median_error(checks)
        yield _share("The same, median of schemes", CORE_MEDIAN_TOLERANCE, median, recordings, "cores")


def _repeated(library: Library) -> Iterator[Promise]:
    if found := library.repeatability():
        yield _share(
            "Isolated step in two recordings of everything, median difference of runs",
            REPEAT_TOLERANCE, found.median_difference, len(found.runs), "repeatability",
        )  # fmt: skip


def _share(what: str, limit: float, value: float, runs: int, section: str) -> Promise:
    return Promise(
        what, f"≤ {show.percent(limit, 0)}", show.percent(value, 2), runs, section, meter(value, limit)
    )
