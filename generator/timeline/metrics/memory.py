"""What a rank holds, by category. Recorded in a step of its own and carried over to the one shown."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from generator.errors import UserError, did_you_mean
from generator.runs.run import I64, MEMORY_CATEGORIES
from generator.timeline.metrics.entry import Number, metric
from generator.timeline.metrics.lanes import activity, chosen_ranks
from generator.timeline.spans import Activity, RankTimeline, Timeline

_BACKWARD = (Activity.BACKWARD, Activity.BACKWARD_INPUT, Activity.BACKWARD_WEIGHT)
#: Moments at which memory can be asked for.
MOMENTS = ("peak", "begin", "forward", "backward", "optimizer", "end")


@metric("B", label="recorded")
def peak_memory(timeline: Timeline, rank: int | None = None, category: str | None = None) -> Number:
    """Largest number of bytes a rank's tensors hold at once.

    From the tensors' own storages, not from the process. With `category` (parameters, gradients,
    optimizer, activations, communication, other) the peak of that category alone; the peaks of
    categories need not fall on one instant, so they do not add up. Without `rank` the largest.
    """
    return max(int(_held(timeline, r, category).max()) for r in chosen_ranks(timeline, rank))


@metric("B", label="recorded", of_a_run=False)
def memory(
    timeline: Timeline, rank: int | None = None, category: str | None = None, at: str = "peak"
) -> Number:
    """Bytes a rank's tensors hold at one moment of the step.

    `at='peak'` is the instant at which the rank holds most in all, so its categories add up;
    `begin` and `end` are those of the step, `forward` and `backward` the ends of the last span of that
    phase, `optimizer` the begin of the first. Without `rank` the largest.
    """
    return max(_at(timeline, r, category, at) for r in chosen_ranks(timeline, rank))


@metric("ns", of_a_run=False)
def peak_time(timeline: Timeline, rank: int | None = None, category: str | None = None) -> Number:
    """When a rank holds most, from the step's begin on.

    The first instant of its peak, with `category` of that category's. Without `rank` the mean over ranks.
    """
    times = [
        int(r.memory.time_ns[int(_held(timeline, r, category).argmax())])
        for r in chosen_ranks(timeline, rank)
    ]
    return times[0] if rank is not None else float(np.mean(times))


def _held(timeline: Timeline, rank: RankTimeline, category: str | None) -> I64:
    """Bytes at each sample of a rank's memory, of one category or of all."""
    if category is not None and category not in MEMORY_CATEGORIES:
        raise UserError(
            f"there is no memory category '{category}'", remedy="Known: " + ", ".join(MEMORY_CATEGORIES) + "."
        )
    held = rank.memory.bytes
    if not len(held):
        raise UserError(f"the run '{timeline.run}' recorded no memory", remedy="Ask another run.")
    total: I64 = held.sum(axis=1) if category is None else held[:, MEMORY_CATEGORIES.index(category)]
    return total


def _at(timeline: Timeline, rank: RankTimeline, category: str | None, at: str) -> int:
    if at not in MOMENTS:
        raise UserError(f"there is no moment '{at}'", remedy=did_you_mean(at, MOMENTS))
    held = _held(timeline, rank, category)
    if at == "peak":
        return int(held[int(_held(timeline, rank, None).argmax())])
    # What is held from a time on is said by the last sample up to it.
    row = int(np.searchsorted(rank.memory.time_ns, _MOMENT[at](timeline, rank), side="right")) - 1
    return int(held[max(row, 0)])


def _ends(*kinds: Activity) -> Callable[[Timeline, RankTimeline], int]:
    def last(timeline: Timeline, rank: RankTimeline) -> int:
        return int(_of(timeline, rank, kinds)[-1, 1])

    return last


def _of(timeline: Timeline, rank: RankTimeline, kinds: tuple[Activity, ...]) -> I64:
    found = activity(rank, kinds)
    if not len(found):
        raise UserError(
            f"rank {rank.rank} of '{timeline.run}' has no {kinds[0].name.lower()} phase",
            remedy="Ask for another moment.",
        )
    return found


_MOMENT: dict[str, Callable[[Timeline, RankTimeline], int]] = {
    "begin": lambda _timeline, _rank: 0,
    "end": lambda timeline, _rank: timeline.step_ns,
    "forward": _ends(Activity.FORWARD),
    "backward": _ends(*_BACKWARD),
    "optimizer": lambda timeline, rank: int(_of(timeline, rank, (Activity.OPTIMIZER,))[0, 0]),
}
