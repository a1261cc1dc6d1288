"""What metrics of calls are made of: the members of all calls as columns, and filters over them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from functools import wraps

import numpy as np
import numpy.typing as npt

from generator.errors import UserError, did_you_mean
from generator.runs.run import I64, MISSING
from generator.timeline import intervals
from generator.timeline.intervals import Intervals
from generator.timeline.memo import once
from generator.timeline.metrics.entry import Measure, Number, metric
from generator.timeline.metrics.lanes import known_phase, known_rank
from generator.timeline.spans import Call, Timeline
from generator.units import wire_bytes

_Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Members:
    """Members of calls as columns, one row each. Times in ns from the step's begin."""

    #: Index of the call in Timeline.calls.
    call: I64
    rank: I64
    #: When the first and the last member of the call arrive, and this one.
    first_ns: I64
    last_ns: I64
    arrive_ns: I64
    #: When the transfer begins and ends here.
    begin_ns: I64
    end_ns: I64
    message: _Mask
    #: Bytes that this member sends under the ring algorithm (no number where none is known for the
    #: operation), and that an uneven all-to-all brings it.
    wire: npt.NDArray[np.float64]
    received: I64

    def __len__(self) -> int:
        return len(self.call)

    def where(self, mask: _Mask) -> Members:
        return Members(*(getattr(self, f.name)[mask] for f in fields(self)))

    def of(self, rank: int | None) -> Members:
        """Those of one rank, or all."""
        return self if rank is None else self.where(self.rank == rank)

    def collectives(self) -> Members:
        return self.where(~self.message)

    @property
    def bar_ns(self) -> I64:
        """Where the bar of a call begins: a message has no wait, its receiver is idle before."""
        return np.where(self.message, self.begin_ns, self.arrive_ns)

    def communicating(self) -> Intervals:
        """When any of these is under way, waiting or moving bytes."""
        return intervals.union(self.bar_ns, self.end_ns)

    def waiting(self) -> Intervals:
        """When one of these waits for the last member of its collective."""
        found = self.collectives()
        return intervals.union(found.arrive_ns, found.begin_ns)

    def missed(self) -> Intervals:
        """When one of these is not there yet, and another member of its collective is."""
        found = self.collectives()
        return intervals.union(found.first_ns, found.arrive_ns)

    def moving(self) -> Intervals:
        """When one of these moves bytes."""
        return intervals.union(self.begin_ns, self.end_ns)

    def distinct(self) -> list[int]:
        """Indices of the calls that these take part in."""
        found: list[int] = np.unique(self.call).tolist()
        return found


@once
def all_members(timeline: Timeline) -> Members:
    """The members of all calls, call by call."""
    rows = [row for i, call in enumerate(timeline.calls) for row in _rows(i, call)]
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(fields(Members))
    kinds = (np.int64,) * 7 + (np.bool_, np.float64, np.int64)
    return Members(*(np.array(column, kind) for column, kind in zip(columns, kinds, strict=True)))


def _rows(index: int, call: Call) -> Iterable[tuple[float, ...]]:
    first, last = (chosen(m.arrive_ns for m in call.members) for chosen in (min, max))
    share = ring_bytes(call, len(call.ranks))
    for m in call.members:
        sent = share if m.sent == MISSING else m.sent
        if call.point_to_point and m.rank != call.ranks[0]:
            sent = 0
        times = (first, last, m.arrive_ns, m.begin_ns, m.end_ns)
        yield (index, m.rank, *times, call.point_to_point, sent, m.received)


def ring_bytes(call: Call, members: int) -> float:
    """Bytes that a member sends under the ring algorithm; no number where none is known."""
    try:
        return wire_bytes(call.op, call.bytes, members)
    except ValueError:
        return math.nan


def members(
    timeline: Timeline,
    op: str | None = None,
    phase: str | None = None,
    layer: int | None = None,
    microbatch: int | None = None,
    group: str | None = None,
) -> Members:
    """The members of the calls that filters leave. Labels are those under which the call was issued."""
    if phase is not None:
        known_phase(phase)
    if group is not None and group not in (known := {c.group for c in timeline.calls}):
        raise UserError(
            f"the run '{timeline.run}' has no group '{group}'", remedy=did_you_mean(group, sorted(known))
        )
    found = all_members(timeline)
    if all(wanted is None for wanted in (op, phase, layer, microbatch, group)):
        return found
    # Of a message, which is one call, its source sends and its destination receives.
    name = "send" if op == "recv" else op
    chosen = np.array(
        [
            (name is None or c.op == name)
            and (phase is None or _in_phase(c.phase, phase))
            and (layer is None or c.layer == layer)
            and (microbatch is None or c.microbatch == microbatch)
            and (group is None or c.group == group)
            for c in timeline.calls
        ],
        np.bool_,
    )
    mask = chosen[found.call]
    if name == "send":
        source = np.array([c.ranks[0] if c.ranks else MISSING for c in timeline.calls], np.int64)
        mask &= (source[found.call] == found.rank) == (op == "send")
    return found.where(mask)


def _in_phase(issued: str, phase: str) -> bool:
    """Backward, where it is cut in two, is both of its parts."""
    return issued == phase or (phase == "backward" and issued in ("backward_input", "backward_weight"))


def call_metric(
    unit: str, label: str = "", *, of_a_run: bool = True
) -> Callable[[Callable[[Timeline, Members, int | None], Number]], Measure]:
    """Enter a measure of calls into the vocabulary, with the filters that all of them take.

    The function is given the timeline, the members that the filters leave, of all ranks, and the rank.
    """

    def enter(function: Callable[[Timeline, Members, int | None], Number]) -> Measure:
        @wraps(function)
        def measure(
            timeline: Timeline,
            rank: int | None = None,
            op: str | None = None,
            phase: str | None = None,
            layer: int | None = None,
            microbatch: int | None = None,
            group: str | None = None,
        ) -> Number:
            known_rank(timeline, rank)
            return function(timeline, members(timeline, op, phase, layer, microbatch, group), rank)

        del measure.__wrapped__
        return metric(unit, label, of_a_run=of_a_run)(measure)

    return enter
