"""The memory of a rank over a reconstructed step.

Memory is sampled in one step of its own (the detail step), because watching every tensor slows a
step down. Its samples are carried over to any other step of the same run by the boundaries that both
have in the same order: the begins and ends of phases and layers. Between two boundaries time is
stretched evenly.
"""

from __future__ import annotations

import numpy as np

from generator.errors import UserError
from generator.runs.run import I64, MEMORY_CATEGORIES, RankTrace
from generator.timeline.program import Program
from generator.timeline.spans import MemoryCurve

NO_MEMORY = MemoryCurve(np.zeros(0, np.int64), np.zeros((0, len(MEMORY_CATEGORIES)), np.int64))


def boundary_times(program: Program, segment_end_ns: I64, begin_ns: int) -> I64:
    """Times of a program's phase and layer boundaries, given when its segments end.

    The first and last time are the rank's begin and end of the step.
    """
    ends = np.concatenate([[begin_ns], segment_end_ns])
    inner = ends[program.boundary]
    times: I64 = np.concatenate([[begin_ns], inner, ends[-1:]])
    return np.maximum.accumulate(times)


def memory_curve(trace: RankTrace, detail: Program, detail_times: I64, times: I64) -> MemoryCurve:
    """The samples of the detail step at the times of another step with the same boundaries."""
    if len(detail_times) != len(times):
        raise UserError(
            f"the detail step has {len(detail_times)} boundaries of phases and layers, another step "
            f"{len(times)}",
            path=trace.path,
            remedy="Record the run again.",
        )
    samples = trace.memory
    inside = samples.time_ns <= detail.end_ns
    if not inside.any():
        return NO_MEMORY
    # The first sample is taken just before the step begins: what is held then is held at its begin.
    moved = np.interp(np.maximum(samples.time_ns[inside], detail.begin_ns), detail_times, times)
    return MemoryCurve(time_ns=np.rint(moved).astype(np.int64), bytes=samples.bytes[inside])
