"""What each rank's own thread does, and when."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from generator.errors import UserError
from generator.timeline import intervals
from generator.timeline.intervals import Intervals
from generator.timeline.metrics.entry import Number, metric
from generator.timeline.metrics.lanes import activity, chosen_ranks, known_phase, over_ranks
from generator.timeline.spans import Activity, Timeline


@metric("ns")
def step_time(timeline: Timeline) -> Number:
    """Duration of the step.

    From the earliest begin to the latest end over ranks, each after a barrier. Shown is the timed step
    of median duration: neither a warm-up step nor the one that watched memory. On every rank it is the
    sum of `busy`, `host_time`, `blocked` and `idle`.
    """
    return timeline.step_ns


@metric("ns")
def busy(
    timeline: Timeline,
    rank: int | None = None,
    phase: str | None = None,
    layer: int | None = None,
    microbatch: int | None = None,
    module: str | None = None,
) -> Number:
    """Time a rank computes.

    The union of forward, backward and optimizer spans; with a filter, of those alone. `module` is
    embedding, block or head. Host time between them (Python, the optimizer's bookkeeping, issuing calls)
    is not computation.
    """
    kinds = known_phase(phase)
    return over_ranks(
        timeline, rank, lambda r: intervals.length(activity(r, kinds, layer, microbatch, module))
    )


@metric("ns")
def host_time(timeline: Timeline, rank: int | None = None) -> Number:
    """Time a rank's thread runs without computing.

    Python between the phases, loading data, issuing calls, and waking up after a wait. A slow data loader
    or a collection of garbage shows here.
    """
    return over_ranks(timeline, rank, lambda r: intervals.length(activity(r, (Activity.HOST,))))


@metric("ns")
def blocked(timeline: Timeline, rank: int | None = None) -> Number:
    """Time a rank's thread stands inside waits.

    From the begin of a wait to the completion of the call waited for. The thread's own wake-up after
    that is host time.
    """
    return over_ranks(timeline, rank, lambda r: intervals.length(activity(r, (Activity.BLOCKED,))))


@metric("ns")
def idle(timeline: Timeline, rank: int | None = None) -> Number:
    """Time in which a rank's step has not begun, or is over, while others are in theirs.

    A thread that waits for a call is blocked, not idle. What a pipeline calls its bubble is both, within
    the pipeline's span.
    """
    return over_ranks(timeline, rank, lambda r: intervals.length(activity(r, (Activity.IDLE,))))


@metric("ns", of_a_run=False)
def phase_begin(
    timeline: Timeline,
    rank: int | None = None,
    phase: str | None = None,
    layer: int | None = None,
    microbatch: int | None = None,
    module: str | None = None,
) -> Number:
    """When a rank begins to compute something, from the step's begin on.

    The begin of its first span that the filters leave. Without `rank` the mean over the ranks that have
    one.
    """
    return _moment(timeline, rank, phase, layer, microbatch, module, lambda found: int(found[0, 0]))


@metric("ns", of_a_run=False)
def phase_end(
    timeline: Timeline,
    rank: int | None = None,
    phase: str | None = None,
    layer: int | None = None,
    microbatch: int | None = None,
    module: str | None = None,
) -> Number:
    """When a rank has computed something, from the step's begin on.

    The end of its last span that the filters leave; `phase_end` − `phase_begin` also holds what lies
    between. Without `rank` the mean over the ranks that have one.
    """
    return _moment(timeline, rank, phase, layer, microbatch, module, lambda found: int(found[-1, 1]))


def _moment(
    timeline: Timeline,
    rank: int | None,
    phase: str | None,
    layer: int | None,
    microbatch: int | None,
    module: str | None,
    which: Callable[[Intervals], int],
) -> Number:
    kinds = known_phase(phase)
    found = [activity(r, kinds, layer, microbatch, module) for r in chosen_ranks(timeline, rank)]
    moments = [which(times) for times in found if len(times)]
    if not moments:
        whose = "no rank" if rank is None else f"rank {rank} never"
        raise UserError(
            f"in the run '{timeline.run}' {whose} computes that",
            remedy="Ask for a phase, layer, micro-batch and module that it has.",
        )
    return moments[0] if rank is not None else float(np.mean(moments))
