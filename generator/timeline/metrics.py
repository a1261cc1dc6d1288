"""The vocabulary of the exercises: named measures of a timeline.

Each metric is a function of a timeline and a few filters; its docstring is its entry on the
definitions page. Times are unions of intervals, never sums: two calls at once count once.

Without `rank`, a time or a fraction is the mean over ranks, bytes are the sum over ranks, a count
counts each call once, and a peak is the largest of all ranks.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from generator.errors import UserError
from generator.runs.run import MEMORY_CATEGORIES, MISSING
from generator.timeline import intervals
from generator.timeline.intervals import EMPTY, Intervals
from generator.timeline.spans import COMPUTATION, Activity, Call, RankTimeline, Timeline
from generator.units import wire_bytes as ring_bytes

Number = int | float
#: Forward and backward, in whole or in parts: what a pipeline's schedule moves.
PIPELINE_WORK = (Activity.FORWARD, Activity.BACKWARD, Activity.BACKWARD_INPUT, Activity.BACKWARD_WEIGHT)
PHASES = {
    "forward": (Activity.FORWARD,),
    "backward": (Activity.BACKWARD, Activity.BACKWARD_INPUT, Activity.BACKWARD_WEIGHT),
    "backward_input": (Activity.BACKWARD_INPUT,),
    "backward_weight": (Activity.BACKWARD_WEIGHT,),
    "optimizer": (Activity.OPTIMIZER,),
}


@dataclass(frozen=True, slots=True)
class Metric:
    """A measure that expressions may name."""

    name: str
    function: Callable[..., Number]
    #: "ns", "B" or "" (a pure number).
    unit: str
    #: First sentence of the docstring, and all of it (Markdown).
    summary: str
    doc: str
    #: Names of the filters it takes.
    parameters: tuple[str, ...]
    #: Origin of its value whatever the mode, where it has one: "recorded" or
    #: "formula"; "" where the mode decides.
    label: str

    def __call__(self, timeline: Timeline, **filters: Any) -> Number:
        return self.function(timeline, **filters)


METRICS: dict[str, Metric] = {}


def metric(unit: str, label: str = "") -> Callable[[Callable[..., Number]], Callable[..., Number]]:
    """Enter a function into the vocabulary."""

    def enter(function: Callable[..., Number]) -> Callable[..., Number]:
        doc = inspect.getdoc(function) or ""
        METRICS[function.__name__] = Metric(
            name=function.__name__,
            function=function,
            unit=unit,
            doc=doc,
            summary=doc.split("\n\n")[0].replace("\n", " "),
            parameters=tuple(inspect.signature(function).parameters)[1:],
            label=label,
        )
        return function

    return enter


# ---- what the metrics are made of


def activity(rank: RankTimeline, kinds: Sequence[Activity], layer: int | None = None) -> Intervals:
    """When a rank does one of some activities (in one layer)."""
    spans = rank.computation
    chosen = np.isin(spans.activity, kinds)
    if layer is not None:
        chosen &= spans.layer == layer
    return intervals.union(spans.start_ns[chosen], spans.end_ns[chosen])


def calls_of(
    timeline: Timeline,
    rank: int | None = None,
    op: str | None = None,
    phase: str | None = None,
    layer: int | None = None,
) -> tuple[Call, ...]:
    """The calls that a rank takes part in, filtered. The phase and layer are those that issued it."""
    _known_rank(timeline, rank)
    return tuple(
        c
        for c in timeline.calls
        if (rank is None or any(m.rank == rank for m in c.members))
        and (op is None or c.op == op)
        and (phase is None or c.phase == phase)
        and (layer is None or c.layer == layer)
    )


def _parts(calls: Iterable[Call], rank: int, part: str) -> Intervals:
    """The intervals of one rank in calls: 'wait', 'transfer' or 'all' of it.

    A point-to-point call has no wait: before its send has happened its receiver is idle.
    """
    members = [(c, m) for c in calls for m in c.members if m.rank == rank]
    if part == "wait":
        pairs = [(m.arrive_ns, m.begin_ns) for c, m in members if not c.point_to_point]
    elif part == "transfer":
        pairs = [(m.begin_ns, m.end_ns) for _, m in members]
    else:
        pairs = [(m.begin_ns if c.point_to_point else m.arrive_ns, m.end_ns) for c, m in members]
    return intervals.union([a for a, _ in pairs], [b for _, b in pairs]) if pairs else EMPTY


def _known_rank(timeline: Timeline, rank: int | None) -> None:
    if rank is not None and rank not in range(len(timeline.ranks)):
        raise UserError(
            f"the run '{timeline.run}' has no rank {rank}",
            remedy=f"Its ranks are 0 to {len(timeline.ranks) - 1}.",
        )


def _known_phase(phase: str | None) -> tuple[Activity, ...]:
    if phase is None:
        return COMPUTATION
    if phase not in PHASES:
        raise UserError(f"there is no phase '{phase}'", remedy="Known: " + ", ".join(PHASES) + ".")
    return PHASES[phase]


def _over_ranks(timeline: Timeline, rank: int | None, value: Callable[[RankTimeline], Number]) -> Number:
    """One rank's value, or the mean over all."""
    _known_rank(timeline, rank)
    if rank is not None:
        return value(timeline.ranks[rank])
    return float(np.mean([value(r) for r in timeline.ranks]))


# ---- the vocabulary


@metric("ns")
def step_time(timeline: Timeline) -> Number:
    """Duration of the step.

    From the earliest begin to the latest end over ranks, each after a barrier. Shown is the timed step
    of median duration: neither a warm-up step nor the one that watched memory.
    """
    return timeline.step_ns


@metric("ns")
def busy(
    timeline: Timeline, rank: int | None = None, phase: str | None = None, layer: int | None = None
) -> Number:
    """Time a rank computes.

    The union of forward, backward and optimizer spans; with `phase` or `layer`, of those alone. Host
    time between them (Python, the optimizer's bookkeeping, issuing calls) is not computation.
    """
    kinds = _known_phase(phase)
    return _over_ranks(timeline, rank, lambda r: intervals.length(activity(r, kinds, layer)))


@metric("ns")
def blocked(timeline: Timeline, rank: int | None = None) -> Number:
    """Time a rank's thread stands inside waits.

    From the begin of a wait to the completion of the call waited for. The thread's own wake-up after
    that is host time.
    """
    return _over_ranks(timeline, rank, lambda r: intervals.length(activity(r, (Activity.BLOCKED,))))


@metric("ns")
def comm_time(
    timeline: Timeline, rank: int | None = None, op: str | None = None, phase: str | None = None
) -> Number:
    """Time during which a rank has communication under way.

    The union of its collectives (wait and transfer) and of its point-to-point transfers.
    """
    calls = calls_of(timeline, None, op, phase)
    return _over_ranks(timeline, rank, lambda r: intervals.length(_parts(calls, r.rank, "all")))


@metric("ns")
def exposed_comm(
    timeline: Timeline, rank: int | None = None, op: str | None = None, phase: str | None = None
) -> Number:
    """Communication with no computation above it.

    The length of (union of communication) minus (union of computation) on a rank. It is what a faster
    link or a better overlap could win at most.
    """
    return _exposed(timeline, rank, calls_of(timeline, None, op, phase), "all")


@metric("ns")
def exposed_transfer(
    timeline: Timeline, rank: int | None = None, op: str | None = None, phase: str | None = None
) -> Number:
    """Transfers with no computation above them.

    As exposed communication, but without the time spent waiting for other members to arrive.
    """
    return _exposed(timeline, rank, calls_of(timeline, None, op, phase), "transfer")


def _exposed(timeline: Timeline, rank: int | None, calls: Sequence[Call], part: str) -> Number:
    return _over_ranks(
        timeline,
        rank,
        lambda r: intervals.length(intervals.subtract(_parts(calls, r.rank, part), activity(r, COMPUTATION))),
    )


@metric("")
def overlap(timeline: Timeline, rank: int | None = None) -> Number:
    """Share of the communication that runs under computation.

    |communication ∩ computation| ÷ |communication| on a rank, both as unions. Undefined, and an error,
    for a rank that does not communicate.
    """

    def share(r: RankTimeline) -> Number:
        comm = _parts(timeline.calls, r.rank, "all")
        if not len(comm):
            raise UserError(
                f"rank {r.rank} of '{timeline.run}' does not communicate, so it has no overlap",
                remedy="Ask another run.",
            )
        hidden = intervals.intersect(comm, activity(r, COMPUTATION))
        return intervals.length(hidden) / intervals.length(comm)

    return _over_ranks(timeline, rank, share)


@metric("ns")
def wait(timeline: Timeline, rank: int | None = None, op: str | None = None) -> Number:
    """Time in collectives before the last member has arrived.

    From a rank's own arrival to the last arrival, as a union over its collectives. The rank that all
    wait for has none. Point-to-point calls have no wait: there the receiver is idle.
    """
    calls = calls_of(timeline, None, op)
    return _over_ranks(timeline, rank, lambda r: intervals.length(_parts(calls, r.rank, "wait")))


@metric("ns")
def transfer(timeline: Timeline, rank: int | None = None, op: str | None = None) -> Number:
    """Time in calls after everybody has arrived.

    From the last arrival to the end, as a union over a rank's collectives, and the transfers of its
    sends and receives. A call that queues behind another one counts from its own last arrival.
    """
    calls = calls_of(timeline, None, op)
    return _over_ranks(timeline, rank, lambda r: intervals.length(_parts(calls, r.rank, "transfer")))


@metric("")
def bubble_fraction(timeline: Timeline, rank: int | None = None) -> Number:
    """Idle time of a pipeline over its total time.

    Idle ÷ total over the pipeline's common span, from the first forward to the last backward of any
    stage; the mean over stages. With equal stages and free sends GPipe and 1F1B have
    (p − 1) ÷ (m + p − 1). Idle is blocked or without work, but not in a collective: that is communication.
    Papers print this and the overhead both as “the bubble”.
    """
    idle, total = _bubble(timeline, rank)
    return idle / total


@metric("")
def bubble_overhead(timeline: Timeline, rank: int | None = None) -> Number:
    """Idle time of a pipeline over the time it would take without.

    Idle ÷ ideal over the pipeline's common span, where ideal = total − idle. With equal stages and free
    sends GPipe and 1F1B have (p − 1) ÷ m.
    """
    idle, total = _bubble(timeline, rank)
    return idle / (total - idle)


def _bubble(timeline: Timeline, rank: int | None) -> tuple[int, int]:
    """Idle and total ns of one rank or of all within the common span of forwards and backwards."""
    _known_rank(timeline, rank)
    if timeline.stages < 2:
        raise UserError(
            f"the run '{timeline.run}' has no pipeline, so it has no bubble", remedy="Ask a pipeline run."
        )
    work = intervals.merge(*(activity(r, PIPELINE_WORK) for r in timeline.ranks))
    start, end = int(work[0, 0]), int(work[-1, 1])
    chosen = timeline.ranks if rank is None else (timeline.ranks[rank],)
    collectives = [c for c in timeline.calls if not c.point_to_point]
    idle = 0
    for r in chosen:
        still = activity(r, (Activity.BLOCKED, Activity.IDLE))
        still = intervals.subtract(still, _parts(collectives, r.rank, "all"))
        idle += intervals.length(intervals.clip(still, start, end))
    return idle, (end - start) * len(chosen)


@metric("B", label="formula")
def wire_bytes(
    timeline: Timeline, rank: int | None = None, op: str | None = None, phase: str | None = None
) -> Number:
    """Bytes a rank sends under the ring algorithm.

    Of a collective of n ranks with a payload S: all-reduce 2(n − 1)/n · S; all-gather, reduce-scatter
    and all-to-all (n − 1)/n · S; broadcast too, the mean over a chain whose last rank sends nothing.
    A send counts on its sender, and an all-to-all with uneven parts as what each rank sends to the
    others. What gloo really sends differs: for a reduce-scatter it sends an all-reduce's bytes.
    """
    total = 0.0
    for call in calls_of(timeline, rank, op, phase):
        share = ring_bytes(call.op, 1, len(call.ranks))
        uneven = [m.sent for m in call.members if m.sent != MISSING and rank in (None, m.rank)]
        if uneven:
            total += sum(uneven)
            continue
        if call.point_to_point:
            senders = 1 if rank is None or call.ranks[0] == rank else 0
        else:
            senders = len(call.members) if rank is None else 1
        total += senders * share * call.bytes
    return total


@metric("B", label="recorded")
def payload_bytes(
    timeline: Timeline, rank: int | None = None, op: str | None = None, phase: str | None = None
) -> Number:
    """Bytes of the tensors that calls work on.

    The full tensor of each call, gathered and unreduced: of an all-gather its output, of a
    reduce-scatter its input. Without `rank` each call counts once.
    """
    return sum(c.bytes for c in calls_of(timeline, rank, op, phase))


@metric("", label="recorded")
def count(
    timeline: Timeline,
    op: str | None = None,
    rank: int | None = None,
    phase: str | None = None,
    layer: int | None = None,
) -> Number:
    """Number of calls.

    Each collective counts once, however many members it has, and so does each send with its receive.
    `phase` and `layer` are those that issued the call on its first member.
    """
    return len(calls_of(timeline, rank, op, phase, layer))


@metric("B", label="recorded")
def peak_memory(timeline: Timeline, rank: int | None = None, category: str | None = None) -> Number:
    """Largest number of bytes a rank's tensors hold at once.

    From the tensors' own storages, not from the process. With `category` (parameters, gradients,
    optimizer, activations, communication, other) the peak of that category alone; the peaks of
    categories need not fall on one instant, so they do not add up.
    """
    _known_rank(timeline, rank)
    if category is not None and category not in MEMORY_CATEGORIES:
        raise UserError(
            f"there is no memory category '{category}'", remedy="Known: " + ", ".join(MEMORY_CATEGORIES) + "."
        )
    chosen = timeline.ranks if rank is None else (timeline.ranks[rank],)
    if not all(len(r.memory.time_ns) for r in chosen):
        raise UserError(f"the run '{timeline.run}' recorded no memory", remedy="Ask another run.")
    return max(int(_held(r, category).max()) for r in chosen)


def _held(rank: RankTimeline, category: str | None) -> intervals.Intervals:
    held = rank.memory.bytes
    return held.sum(axis=1) if category is None else held[:, MEMORY_CATEGORIES.index(category)]
