"""The floating-point operations of a rank, from the operators that its detail step recorded.

One step of a run is recorded operator by operator, with the operations of each matrix product. An
operator belongs to the phase and layer that its thread was in when it began; what is computed again in
backward belongs to backward.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from generator.runs.run import MISSING, RankTrace
from generator.timeline.memo import once_a_step
from generator.timeline.program import program
from generator.timeline.spans import NO_WORK, Work

#: A product that took less is no measure of a rate: reading the clock takes about a microsecond.
LONG_ENOUGH_NS = 100_000


@once_a_step
def work(trace: RankTrace, step: int) -> Work:
    """Operations by phase, layer, micro-batch and module of one rank in its detail step."""
    chosen = np.flatnonzero((trace.flops > 0) & (trace.step == step))
    if not len(chosen):
        return NO_WORK
    segments = program(trace, step)
    at = np.maximum(np.searchsorted(segments.start_ns, trace.start_ns[chosen], side="right") - 1, 0)
    labels = (segments.activity, segments.layer, segments.microbatch, segments.module)
    total: Counter[tuple[int, ...]] = Counter()
    for flops, *where in zip(
        trace.flops[chosen].tolist(), *(column[at].tolist() for column in labels), strict=True
    ):
        total[tuple(where)] += flops
    columns = np.array(sorted(total), np.int64).T
    return Work(
        activity=columns[0].astype(np.int8),
        layer=columns[1].astype(np.int32),
        microbatch=columns[2].astype(np.int32),
        module=columns[3].astype(np.int8),
        flops=np.array([total[key] for key in sorted(total)], np.int64),
        fastest=_fastest(trace, chosen.tolist()),
    )


def _fastest(trace: RankTrace, products: list[int]) -> tuple[int, int]:
    """Operations and ns of the product at the highest rate, by the thread's own clock where there is one."""
    best = (0, 0)
    for i in products:
        ns = int(trace.cpu_dur_ns[i])
        ns = int(trace.dur_ns[i]) if ns == MISSING else ns
        flops = int(trace.flops[i])
        if ns >= LONG_ENOUGH_NS and flops * best[1] >= best[0] * ns:
            best = (flops, ns)
    return best
