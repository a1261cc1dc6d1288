"""What a timeline consists of for one who points at it: blocks of computation, calls, and gaps.

An event is known by its rank and its rows in the rank's file, so it is the same one in every mode and
under every what-if. A gap has no row: it is the time in which a rank computes nothing, and known by it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any

import numpy as np

from generator.lessons.predicates import MODULES, Label
from generator.timeline.intervals import Intervals, clip, length, union
from generator.timeline.spans import COMPUTATION, Activity, Call, RankTimeline, Spans, Timeline
from generator.timeline.turns import turns

#: A gap that takes less of the step is not seen.
_LEAST_GAP = 1 / 1000


@dataclass(frozen=True, slots=True)
class Event:
    """A block of computation, one rank's part in a call, or a gap. Times are ns from the step's begin."""

    rank: int
    begin_ns: int
    end_ns: int
    labels: Mapping[str, Label]
    #: Of the rank file; a gap has none.
    rows: tuple[int, ...] = ()
    #: Index into the timeline's calls, -1 for what is none.
    call: int = -1

    @property
    def duration_ns(self) -> int:
        return self.end_ns - self.begin_ns


def spans(timeline: Timeline, *, all_activities: bool = False) -> Iterator[Event]:
    """What the ranks compute, piece by piece in order of time; with `all_activities` whatever they do."""
    for lane in timeline.ranks:
        columns = lane.computation
        chosen = range(len(columns)) if all_activities else _computing(columns)
        for i in chosen:
            yield Event(
                lane.rank,
                int(columns.start_ns[i]),
                int(columns.end_ns[i]),
                {"rank": lane.rank, **_span_labels(timeline, columns, i)},
                (int(columns.row[i]),),
            )


def calls(timeline: Timeline) -> Iterator[Event]:
    """Every rank's part in every call, rank by rank in the order in which they have the link."""
    for lane in timeline.ranks:
        busy = _busy(lane)
        for index, (begin, end) in sorted(turns(timeline, lane.rank).items(), key=lambda item: item[1]):
            call = timeline.calls[index]
            covered = length(clip(busy, begin, end))
            labels: dict[str, Label] = {
                "rank": lane.rank,
                **_call_labels(call),
                "exposed": 1 - covered / (end - begin) if end > begin else 0.0,
            }
            rows = tuple(m.row for m in call.members if m.rank == lane.rank)
            yield Event(lane.rank, begin, end, labels, rows, index)


def gaps(timeline: Timeline) -> Iterator[Event]:
    """When ranks compute nothing, rank by rank in order of time; slivers are left out."""
    least = timeline.step_ns * _LEAST_GAP
    for lane in timeline.ranks:
        columns, busy = lane.computation, _busy(lane)
        edges = [(0, 0), *busy.tolist(), (timeline.step_ns, timeline.step_ns)]
        for (_, begin), (end, _) in pairwise(edges):
            if end - begin >= max(1, least):
                labels: dict[str, Label] = {
                    "rank": lane.rank,
                    "after": _phase(columns, columns.end_ns, begin),
                    "before": _phase(columns, columns.start_ns, end),
                }
                yield Event(lane.rank, begin, end, labels)


def joined(pieces: Iterable[Event], alike: Callable[[Event], Any]) -> Iterator[Event]:
    """Pieces that follow each other and are alike, as one event."""
    for _, group in groupby(pieces, key=alike):
        first, *others = group
        rows = tuple(dict.fromkeys(row for e in (first, *others) for row in e.rows))
        end = others[-1].end_ns if others else first.end_ns
        yield Event(first.rank, first.begin_ns, end, first.labels, rows, first.call)


def _computing(columns: Spans) -> Iterator[int]:
    return iter(np.flatnonzero(np.isin(columns.activity, COMPUTATION)).tolist())


def _busy(lane: RankTimeline) -> Intervals:
    chosen = np.isin(lane.computation.activity, COMPUTATION)
    return union(lane.computation.start_ns[chosen], lane.computation.end_ns[chosen])


def _phase(columns: Spans, edge: np.ndarray, at: int) -> Label:
    """The phase of the block that begins or ends at an instant, None where there is none."""
    found = [i for i in np.flatnonzero(edge == at) if columns.activity[i] in COMPUTATION]
    return Activity(int(columns.activity[found[0]])).name.lower() if found else None


def _span_labels(timeline: Timeline, columns: Spans, i: int) -> dict[str, Label]:
    activity, call, module = Activity(columns.activity[i]), int(columns.call[i]), int(columns.module[i])
    labels: dict[str, Label] = _call_labels(timeline.calls[call]) if call >= 0 else {}
    labels |= {
        "activity": activity.name.lower(),
        "layer": int(columns.layer[i]),
        "microbatch": int(columns.microbatch[i]),
        "chunk": int(columns.chunk[i]),
    }
    if module >= 0:
        labels["module"] = MODULES[module]
    if activity in COMPUTATION:
        labels["phase"] = activity.name.lower()
    return labels


def _call_labels(call: Call) -> dict[str, Label]:
    return {
        "op": call.op,
        "group": call.group,
        "phase": call.phase,
        "layer": call.layer,
        "microbatch": call.microbatch,
    }
