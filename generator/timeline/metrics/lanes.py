"""What metrics of the computation lane are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from generator.errors import UserError, did_you_mean
from generator.timeline import intervals
from generator.timeline.intervals import Intervals
from generator.timeline.metrics.entry import Number
from generator.timeline.program import MODULES
from generator.timeline.spans import COMPUTATION, Activity, RankTimeline, Timeline

#: Forward and backward, in whole or in parts: what a pipeline's schedule moves.
PIPELINE_WORK = (Activity.FORWARD, Activity.BACKWARD, Activity.BACKWARD_INPUT, Activity.BACKWARD_WEIGHT)
PHASES = {
    "forward": (Activity.FORWARD,),
    "backward": (Activity.BACKWARD, Activity.BACKWARD_INPUT, Activity.BACKWARD_WEIGHT),
    "backward_input": (Activity.BACKWARD_INPUT,),
    "backward_weight": (Activity.BACKWARD_WEIGHT,),
    "optimizer": (Activity.OPTIMIZER,),
}


def activity(
    rank: RankTimeline,
    kinds: Sequence[Activity],
    layer: int | None = None,
    microbatch: int | None = None,
    module: str | None = None,
) -> Intervals:
    """When a rank does one of some activities, of one layer, micro-batch or module."""
    spans = rank.computation
    chosen = np.isin(spans.activity, kinds)
    if layer is not None:
        chosen &= spans.layer == layer
    if microbatch is not None:
        chosen &= spans.microbatch == microbatch
    if module is not None:
        chosen &= spans.module == known_module(module)
    return intervals.union(spans.start_ns[chosen], spans.end_ns[chosen])


def known_rank(timeline: Timeline, rank: int | None) -> None:
    if rank is not None and rank not in range(len(timeline.ranks)):
        raise UserError(
            f"the run '{timeline.run}' has no rank {rank}",
            remedy=f"Its ranks are 0 to {len(timeline.ranks) - 1}.",
        )


def known_phase(phase: str | None) -> tuple[Activity, ...]:
    if phase is None:
        return COMPUTATION
    if phase not in PHASES:
        raise UserError(f"there is no phase '{phase}'", remedy=did_you_mean(phase, PHASES))
    return PHASES[phase]


def known_module(module: str) -> int:
    if module not in MODULES:
        raise UserError(f"there is no module '{module}'", remedy=did_you_mean(module, MODULES))
    return MODULES.index(module)


def chosen_ranks(timeline: Timeline, rank: int | None) -> tuple[RankTimeline, ...]:
    """One rank, or all."""
    known_rank(timeline, rank)
    return timeline.ranks if rank is None else (timeline.ranks[rank],)


def over_ranks(timeline: Timeline, rank: int | None, value: Callable[[RankTimeline], Number]) -> Number:
    """One rank's value, or the mean over all."""
    known_rank(timeline, rank)
    if rank is not None:
        return value(timeline.ranks[rank])
    return float(np.mean([value(r) for r in timeline.ranks]))
