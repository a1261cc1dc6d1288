"""Bubbles, and what a stage holds meanwhile."""

from __future__ import annotations

import numpy as np

from generator.errors import UserError, did_you_mean
from generator.timeline import intervals
from generator.timeline.metrics.calls import all_members
from generator.timeline.metrics.entry import Number, metric
from generator.timeline.metrics.lanes import PIPELINE_WORK, activity, chosen_ranks
from generator.timeline.spans import Activity, RankTimeline, Timeline

#: From where to where a bubble is looked for.
SPANS = ("common", "own")


@metric("")
def bubble_fraction(timeline: Timeline, rank: int | None = None, span: str = "common") -> Number:
    """Idle time of a pipeline over its total time.

    Idle ÷ total over the pipeline's common span, from the first forward to the last backward of any
    stage; the mean over stages. With equal stages and free sends GPipe and 1F1B have
    (p − 1) ÷ (m + p − 1). With `span='own'` each rank is looked at from its own first forward to its own
    last backward, as papers on zero bubbles do. Idle is blocked or without work, but not in a
    collective: that is communication. Papers print this and the overhead both as “the bubble”.
    """
    idle, total = _bubble(timeline, rank, span)
    return idle / total


@metric("")
def bubble_overhead(timeline: Timeline, rank: int | None = None, span: str = "common") -> Number:
    """Idle time of a pipeline over the time it would take without.

    Idle ÷ ideal over the pipeline's common span, where ideal = total − idle. With equal stages and free
    sends GPipe and 1F1B have (p − 1) ÷ m.
    """
    idle, total = _bubble(timeline, rank, span)
    return idle / (total - idle)


@metric("ns")
def bubble_time(timeline: Timeline, rank: int | None = None, span: str = "common") -> Number:
    """Idle time of a pipeline.

    As in `bubble_fraction`, in time: more micro-batches do not shorten it, only its share falls.
    """
    idle, _ = _bubble(timeline, rank, span)
    return idle if rank is not None else idle / len(timeline.ranks)


def _bubble(timeline: Timeline, rank: int | None, span: str) -> tuple[int, int]:
    """Idle and total ns of one rank or of all within a span of forwards and backwards."""
    chosen = chosen_ranks(timeline, rank)
    if span not in SPANS:
        raise UserError(f"there is no span '{span}'", remedy=did_you_mean(span, SPANS))
    if timeline.stages < 2:
        raise UserError(
            f"the run '{timeline.run}' has no pipeline, so it has no bubble", remedy="Ask a pipeline run."
        )
    work = {r.rank: activity(r, PIPELINE_WORK) for r in timeline.ranks}
    common = intervals.merge(*work.values())
    idle = total = 0
    for r in chosen:
        within = common if span == "common" else work[r.rank]
        start, end = int(within[0, 0]), int(within[-1, 1])
        idle += intervals.length(intervals.clip(_still(timeline, r), start, end))
        total += end - start
    return idle, total


def _still(timeline: Timeline, rank: RankTimeline) -> intervals.Intervals:
    """When a rank has no work and is in no collective."""
    still = activity(rank, (Activity.BLOCKED, Activity.IDLE))
    return intervals.subtract(still, all_members(timeline).of(rank.rank).collectives().communicating())


@metric("")
def in_flight(timeline: Timeline, rank: int | None = None) -> Number:
    """Most micro-batches that a rank holds at once.

    Each from the begin of its forward to the end of its backward, when its activations can go; with
    several stages on a rank, each stage's counts on its own. GPipe holds all m, 1F1B min(m, p − i) on
    stage i, accumulation of gradients one. Without `rank` the largest.
    """
    if timeline.microbatches < 2:
        raise UserError(
            f"the run '{timeline.run}' has no micro-batches", remedy="Ask a pipeline, or accumulation."
        )
    return max(_most_at_once(r) for r in chosen_ranks(timeline, rank))


def _most_at_once(rank: RankTimeline) -> int:
    spans = rank.computation
    work = np.isin(spans.activity, PIPELINE_WORK)
    lives: dict[tuple[int, int], tuple[int, int]] = {}
    for start, end, *key in zip(
        *(column[work].tolist() for column in (spans.start_ns, spans.end_ns, spans.microbatch, spans.chunk)),
        strict=True,
    ):
        held = (key[0], key[1])
        begin, last = lives.get(held, (start, end))
        lives[held] = (begin, max(last, end))
    # One that ends where another begins makes room for it.
    changes = sorted([(begin, 1) for begin, _ in lives.values()] + [(end, -1) for _, end in lives.values()])
    most = now = 0
    for _, change in changes:
        now += change
        most = max(most, now)
    return most
