"""What the lanes of a rank hold, as sets of intervals: the data between a timeline and its picture."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from generator.runs.run import MEMORY_CATEGORIES
from generator.timeline.intervals import Intervals, intersect, merge, subtract, union
from generator.timeline.spans import COMPUTATION, Activity, Call, Member, Spans, Timeline
from generator.timeline.turns import turns

#: Says of the labels of a span or of a call's member whether it is in focus. The labels are `rank`,
#: `phase` (an activity's name in small letters), `layer`, `microbatch`, `chunk` (the pipeline stage),
#: `module`, `op`, `group`, `seq`, and `row`, the place in the rank file that it comes from.
Focus = Callable[[Mapping[str, str | int]], bool]

MODULES = ("embedding", "block", "head")
MARK = {
    Activity.FORWARD: "F",
    Activity.BACKWARD: "B",
    Activity.BACKWARD_INPUT: "B",
    Activity.BACKWARD_WEIGHT: "W",
    Activity.OPTIMIZER: "O",
    Activity.HOST: "H",
}
WORDS = {
    Activity.FORWARD: ("forward", "fwd"),
    Activity.BACKWARD: ("backward", "bwd"),
    Activity.BACKWARD_INPUT: ("backward", "bwd"),
    Activity.BACKWARD_WEIGHT: ("weights", "wgt"),
    Activity.OPTIMIZER: ("optimizer", "opt"),
    Activity.HOST: ("host",),
}
#: Marks the number of a micro-batch on a rank's second stage.
PRIME = "′"
MEMORY_WORDS = dict(
    zip(
        MEMORY_CATEGORIES,
        ("parameters", "gradients", "optimizer state", "activations", "communication buffers", "other"),
        strict=True,
    )
)


@dataclass(frozen=True, slots=True)
class Kind:
    """One colour of the computation lane, or one micro-batch on one stage of it, and when it is on."""

    activity: Activity
    #: -1 where the step has no micro-batches.
    microbatch: int
    on: Intervals
    #: Which of the rank's stages: 0 for its first or only one.
    chunk: int = 0


@dataclass(frozen=True, slots=True)
class Shade:
    """One lightness of the layer lane: 'even', 'odd', or 'edge' (embedding and head)."""

    activity: Activity
    shade: str
    on: Intervals


@dataclass(frozen=True, slots=True)
class Phase:
    """A bracket over the first rank."""

    name: str
    start_ns: int
    end_ns: int
    #: For where the name has no room.
    short: str = ""


def at(spans: Spans, chosen: np.ndarray) -> Intervals:
    """The spans a mask selects, as a set of intervals."""
    return union(spans.start_ns[chosen], spans.end_ns[chosen])


def doing(spans: Spans, *activities: Activity) -> Intervals:
    """When a rank does one of `activities`."""
    return at(spans, np.isin(spans.activity, activities))


def computing(spans: Spans) -> Intervals:
    return doing(spans, *COMPUTATION)


def numbered(timeline: Timeline) -> bool:
    """Whether blocks are told apart by their micro-batch (otherwise by their layer)."""
    return timeline.stages > 1 or timeline.microbatches > 1


def kinds(timeline: Timeline, rank: int) -> tuple[Kind, ...]:
    """The computation lane of a rank, split into what gets a block of its own."""
    spans = timeline.ranks[rank].computation
    batch = spans.microbatch if numbered(timeline) else np.full(len(spans), -1, np.int32)
    stage, found = own_stage(spans), []
    for activity in MARK:
        of_activity = spans.activity == activity
        for number, chunk in sorted(
            set(zip(batch[of_activity].tolist(), stage[of_activity].tolist(), strict=True))
        ):
            on = at(spans, of_activity & (batch == number) & (stage == chunk))
            found.append(Kind(activity, number, on, chunk))
    return tuple(found)


def own_stage(spans: Spans) -> np.ndarray:
    """Which of its rank's stages each span works on: 0 for the first, and outside of stages."""
    return np.maximum(0, np.searchsorted(np.unique(spans.chunk[spans.chunk >= 0]), spans.chunk))


def host_index(found: Sequence[Kind]) -> int:
    """Which of some kinds is host work; -1 when none is."""
    return next((i for i, kind in enumerate(found) if kind.activity is Activity.HOST), -1)


def merged(found: Sequence[Kind]) -> Intervals:
    """When any of some kinds is on."""
    return merge(*(kind.on for kind in found))


def shades(timeline: Timeline, rank: int) -> tuple[Shade, ...]:
    """The layer lane of a rank: neighbouring layers differ in lightness, the model's ends stand out."""
    spans = timeline.ranks[rank].computation
    known = (spans.module >= 0) | (spans.layer >= 0)
    edge = known & (spans.layer < 0)
    found = []
    for activity in COMPUTATION:
        here = known & (spans.activity == activity)
        for shade, chosen in (
            ("even", ~edge & (spans.layer % 2 == 0)),
            ("odd", ~edge & (spans.layer % 2 == 1)),
            ("edge", edge),
        ):
            if (here & chosen).any():
                found.append(Shade(activity, shade, at(spans, here & chosen)))
    return tuple(found)


def layers_at(spans: Spans, start_ns: float, end_ns: float) -> tuple[str, ...]:
    """Names of the layers worked on in a stretch of time, or of the one that takes most of it."""
    first = int(np.searchsorted(spans.end_ns, start_ns, side="right"))
    last = int(np.searchsorted(spans.start_ns, end_ns, side="left"))
    spent: dict[str, float] = {}
    for i in range(first, last):
        if spans.layer[i] >= 0 or spans.module[i] >= 0:
            name = layer_name(int(spans.layer[i]), int(spans.module[i]))
            inside = min(end_ns, float(spans.end_ns[i])) - max(start_ns, float(spans.start_ns[i]))
            spent[name] = spent.get(name, 0.0) + inside
    whole = sum(spent.values())
    main = [name for name, ns in spent.items() if ns >= 0.7 * whole]
    return tuple(main or [name for name, ns in spent.items() if ns >= 0.1 * whole])


def layer_name(layer: int, module: int) -> str:
    return str(layer) if layer >= 0 else MODULES[module]


def calls_of(timeline: Timeline, rank: int) -> Iterator[tuple[Call, Member]]:
    """Every call a rank takes part in, with its own part."""
    for call in timeline.calls:
        for member in call.members:
            if member.rank == rank:
                yield call, member


def communication(timeline: Timeline, rank: int) -> tuple[Intervals, Intervals]:
    """Wait and transfer of a rank, unions; where a transfer runs it hides a wait.

    A collective waits from its arrival to its begin. A point-to-point call has no wait of its own, but
    a rank that idles until its neighbour has sent is waiting for it, and is drawn so.
    """
    mine = list(calls_of(timeline, rank))
    transfer = union([m.begin_ns for _, m in mine], [m.end_ns for _, m in mine])
    own = [(m.arrive_ns, m.begin_ns) for c, m in mine if not c.point_to_point]
    sent = [(m.arrive_ns, m.begin_ns) for c, m in mine if c.point_to_point]
    idle = doing(timeline.ranks[rank].computation, Activity.IDLE, Activity.BLOCKED)
    wait = merge(_pairs(own), intersect(_pairs(sent), idle))
    return subtract(wait, transfer), transfer


def handovers(timeline: Timeline, rank: int) -> tuple[int, ...]:
    """When a transfer of a rank ends and no other has its turn: where one call gives way to the next, ns."""
    times = list(turns(timeline, rank).values())
    return tuple(end for _, end in times if not any(a < end < b for a, b in times))


def _pairs(found: list[tuple[int, int]]) -> Intervals:
    return union([a for a, _ in found], [b for _, b in found])


def schedule(timeline: Timeline) -> tuple[Phase, ...]:
    """What the first rank is doing, in words: a pipeline's phases, or forward and backward."""
    spans = timeline.ranks[0].computation
    forward = doing(spans, Activity.FORWARD)
    backward = doing(spans, Activity.BACKWARD, Activity.BACKWARD_INPUT, Activity.BACKWARD_WEIGHT)
    if not len(forward) or not len(backward):
        return ()
    first, turn = int(forward[0, 0]), int(backward[0, 0])
    last_forward, end = int(forward[-1, 1]), int(backward[-1, 1])
    if not numbered(timeline):
        return Phase("forward", first, last_forward), Phase("backward", turn, end)
    if timeline.stages == 1:
        # Micro-batches that add up gradients: nothing warms up or drains, and the blocks say the rest.
        return ()
    if last_forward <= turn:
        return Phase("all forwards", first, last_forward), Phase("all backwards", turn, end)
    warm = int(forward[forward[:, 1] <= turn][-1, 1])
    if _alternates(spans, turn, last_forward):
        steady = Phase("one forward, one backward", turn, last_forward, "1F1B")
    else:
        steady = Phase("steady", turn, last_forward)
    return Phase("warm-up", first, warm), steady, Phase("drain", last_forward, end)


def _alternates(spans: Spans, start_ns: int, end_ns: int) -> bool:
    """Whether forwards and backwards of single micro-batches take turns."""
    chosen = np.isin(spans.activity, (Activity.FORWARD, Activity.BACKWARD))
    chosen &= (spans.start_ns >= start_ns) & (spans.end_ns <= end_ns)
    columns = (spans.activity, spans.microbatch, spans.chunk)
    turns = list(zip(*(column[chosen].tolist() for column in columns), strict=True))
    blocks = [turn for i, turn in enumerate(turns) if i == 0 or turns[i - 1] != turn]
    split = np.isin(spans.activity, (Activity.BACKWARD_INPUT, Activity.BACKWARD_WEIGHT)).any()
    return not split and all(a[0] != b[0] for a, b in pairwise(blocks))


def span_labels(spans: Spans, index: int, rank: int) -> dict[str, str | int]:
    """The labels of a span of the computation lane that a focus is asked about."""
    module = int(spans.module[index])
    return {
        "rank": rank,
        "phase": Activity(int(spans.activity[index])).name.lower(),
        "layer": int(spans.layer[index]),
        "microbatch": int(spans.microbatch[index]),
        "chunk": int(spans.chunk[index]),
        "module": MODULES[module] if module >= 0 else "",
        "op": "",
        "group": "",
        "seq": -1,
        "row": int(spans.row[index]),
    }


def call_labels(call: Call, member: Member) -> dict[str, str | int]:
    """The labels of one rank's part in a call that a focus is asked about."""
    return {
        "rank": member.rank,
        "phase": call.phase,
        "layer": call.layer,
        "microbatch": call.microbatch,
        "chunk": -1,
        "module": "",
        "op": call.op,
        "group": call.group,
        "seq": call.seq,
        "row": member.row,
    }
