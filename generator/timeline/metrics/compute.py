"""Floating-point operations of matrix products, counted operator by operator in the detail step."""

from __future__ import annotations

import numpy as np

from generator.errors import UserError
from generator.timeline.metrics.entry import Number, metric
from generator.timeline.metrics.lanes import chosen_ranks, known_module, known_phase
from generator.timeline.spans import RankTimeline, Timeline


@metric("FLOP", label="recorded")
def flops(
    timeline: Timeline,
    rank: int | None = None,
    phase: str | None = None,
    layer: int | None = None,
    microbatch: int | None = None,
    module: str | None = None,
) -> Number:
    """Floating-point operations of matrix products.

    Counted from the operators that ran, so what is computed again counts again (in backward). A causal
    mask counts as the full square, and flash attention's backward has five products for forward's two.
    Over `step_time` it is the achieved rate. Without `rank` the sum over ranks.
    """
    known_phase(phase)
    total = 0
    for r in chosen_ranks(timeline, rank):
        _counted(timeline, r)
        chosen = np.ones(len(r.work.flops), np.bool_)
        if phase is not None:
            chosen &= np.isin(r.work.activity, known_phase(phase))
        if layer is not None:
            chosen &= r.work.layer == layer
        if microbatch is not None:
            chosen &= r.work.microbatch == microbatch
        if module is not None:
            chosen &= r.work.module == known_module(module)
        total += int(r.work.flops[chosen].sum())
    return total


@metric("FLOP/ns", label="recorded")
def fastest_product(timeline: Timeline, rank: int | None = None) -> Number:
    """Rate of the fastest matrix product.

    Of all products of the detail step that took 0.1 ms or more, the highest rate, in the time of the
    rank's own thread: what one core of this machine reaches at best. There was no benchmark of its own,
    so a product of the best shape might be faster. Without `rank` the largest.
    """
    rates = []
    for r in chosen_ranks(timeline, rank):
        _counted(timeline, r)
        done, took = r.work.fastest
        if took:
            rates.append(done / took)
    if not rates:
        raise UserError(f"no matrix product of '{timeline.run}' took long enough", remedy="Ask another run.")
    return max(rates)


def _counted(timeline: Timeline, rank: RankTimeline) -> None:
    if not len(rank.work.flops):
        raise UserError(
            f"rank {rank.rank} of '{timeline.run}' recorded no matrix products", remedy="Ask another run."
        )
