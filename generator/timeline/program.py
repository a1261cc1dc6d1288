"""A rank's step as a program: what its thread did, piece by piece, in order.

The nested events of a step (phase, layer, issue, wait) are cut at every begin and end into segments
that follow one another. Each segment has one label and two durations: wall, and the thread's own CPU
time. Replay gives the segments new times; their order never changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from generator.errors import UserError
from generator.runs.run import I8, I32, I64, MISSING, Kind, RankTrace
from generator.timeline.spans import Activity

MODULES = ("embedding", "block", "head")
_PHASES = {
    "forward": Activity.FORWARD,
    "backward": Activity.BACKWARD,
    "backward_input": Activity.BACKWARD_INPUT,
    "backward_weight": Activity.BACKWARD_WEIGHT,
    "optimizer": Activity.OPTIMIZER,
}
_NESTED = (Kind.PHASE, Kind.LAYER, Kind.ISSUE, Kind.WAIT)


class Role(IntEnum):
    """What a segment is to the graph."""

    WORK = 0
    ISSUE = 1
    WAIT = 2


@dataclass(frozen=True, slots=True)
class Program:
    """Segments of one rank's step as columns, in order; times in ns on the run's clock."""

    rank: int
    #: The step's own begin and end on this rank.
    begin_ns: int
    end_ns: int
    role: I8
    activity: I8
    start_ns: I64
    wall_ns: I64
    #: Thread-CPU time inside the segment, ns; the wall time where the trace has no CPU clock.
    cpu_ns: I64
    layer: I32
    microbatch: I32
    #: The pipeline stage that the segment works on.
    chunk: I32
    module: I8
    #: The trace's own id of the call that is issued or waited for.
    call: I32
    #: Row in the rank file of the innermost event around the segment.
    row: I32
    #: For each phase or layer boundary in order: the number of segments before it.
    boundary: I32

    def __len__(self) -> int:
        return len(self.role)


@dataclass(slots=True)
class _Open:
    """An event whose end has not been reached yet."""

    index: int
    end_ns: int
    cpu_end_ns: int
    kind: Kind
    seen: bool = False


def steps_of(trace: RankTrace) -> tuple[int, ...]:
    """Numbers of the steps that a rank file has, in order of time."""
    return tuple(int(s) for s in trace.step[trace.kind == Kind.STEP])


def step_bounds(trace: RankTrace, step: int) -> tuple[int, int]:
    """Begin and end of a step on one rank, ns. Raises UserError where the file has no such step."""
    found = np.flatnonzero((trace.kind == Kind.STEP) & (trace.step == step))
    if len(found) != 1:
        raise UserError(
            f"step {step} occurs {len(found)} times, not once",
            path=trace.path,
            remedy="Restore the file, or record the run again.",
        )
    begin = int(trace.start_ns[found[0]])
    return begin, begin + int(trace.dur_ns[found[0]])


def program(trace: RankTrace, step: int) -> Program:
    """Cut one step of a rank into segments."""
    begin, end = step_bounds(trace, step)
    (root,) = np.flatnonzero((trace.kind == Kind.STEP) & (trace.step == step))
    inside = np.flatnonzero(
        np.isin(trace.kind, _NESTED) & (trace.start_ns >= begin) & (trace.start_ns + trace.dur_ns <= end)
    )
    # Of events that begin together the longer is around the shorter, but one that took no time
    # came first.
    took = trace.dur_ns[inside]
    nested = inside[np.lexsort((trace.row[inside], -took, took > 0, trace.start_ns[inside]))]
    cutter = _Cutter(trace, int(root))
    for index in nested:
        cutter.open(int(index))
    return cutter.finish(begin, end)


class _Cutter:
    """Walks the begins and ends of nested events and emits what lies between two of them."""

    def __init__(self, trace: RankTrace, root: int) -> None:
        self.trace = trace
        self.now = int(trace.start_ns[root])
        self.cpu = int(trace.cpu_start_ns[root])
        self.stack = [self._opened(root)]
        self.segments: list[tuple[int, ...]] = []
        self.boundary: list[int] = []

    def open(self, index: int) -> None:
        start = int(self.trace.start_ns[index])
        while self.stack[-1].end_ns <= start and len(self.stack) > 1:
            self._close()
        opened = self._opened(index)
        if opened.end_ns > self.stack[-1].end_ns:
            raise UserError(
                f"the event in row {self.trace.row[index]} reaches over the end of the one around it",
                path=self.trace.path,
                remedy="Restore the file, or record the run again.",
            )
        self._emit(start, int(self.trace.cpu_start_ns[index]))
        self._mark(opened)
        self.stack.append(opened)

    def finish(self, begin: int, end: int) -> Program:
        while self.stack:
            self._close()
        columns = np.array(self.segments, np.int64).reshape(len(self.segments), 10).T
        role, activity, start, wall, cpu, layer, microbatch, chunk, module, row = columns
        calls = [
            int(self.trace.call[r]) if k != Role.WORK else MISSING for k, r in zip(role, row, strict=True)
        ]
        return Program(
            rank=self.trace.rank,
            begin_ns=begin,
            end_ns=end,
            role=role.astype(np.int8),
            activity=activity.astype(np.int8),
            start_ns=start,
            wall_ns=wall,
            cpu_ns=cpu,
            layer=layer.astype(np.int32),
            microbatch=microbatch.astype(np.int32),
            chunk=chunk.astype(np.int32),
            module=module.astype(np.int8),
            call=np.array(calls, np.int32),
            row=self.trace.row[row].astype(np.int32),
            boundary=np.array(self.boundary, np.int32),
        )

    def _opened(self, index: int) -> _Open:
        t = self.trace
        return _Open(
            index=index,
            end_ns=int(t.start_ns[index] + t.dur_ns[index]),
            cpu_end_ns=int(t.cpu_start_ns[index] + t.cpu_dur_ns[index]),
            kind=Kind(int(t.kind[index])),
        )

    def _close(self) -> None:
        top = self.stack[-1]
        self._emit(top.end_ns, top.cpu_end_ns)
        self.stack.pop()
        self._mark(top)

    def _mark(self, event: _Open) -> None:
        if event.kind in (Kind.PHASE, Kind.LAYER):
            self.boundary.append(len(self.segments))

    def _emit(self, until: int, cpu_until: int) -> None:
        """The segment from now to `until`, labelled by the events that are open."""
        top = self.stack[-1]
        role = {Kind.ISSUE: Role.ISSUE, Kind.WAIT: Role.WAIT}.get(top.kind, Role.WORK)
        wall = until - self.now
        # An issue and a wait are nodes of the graph even where they took no time.
        if wall > 0 or (role != Role.WORK and not top.seen):
            top.seen = True
            has_cpu = self.cpu != MISSING and cpu_until != MISSING
            cpu = min(max(0, cpu_until - self.cpu), wall) if has_cpu else wall
            self.segments.append(
                (role, self._activity(role), self.now, wall, cpu, *self._labels(), top.index)
            )
        self.now, self.cpu = until, cpu_until

    def _activity(self, role: Role) -> Activity:
        if role is Role.WAIT:
            return Activity.BLOCKED
        if role is Role.ISSUE:
            return Activity.HOST
        for event in reversed(self.stack):
            if event.kind == Kind.PHASE:
                return _PHASES.get(self.trace.text(int(self.trace.phase[event.index])), Activity.HOST)
        return Activity.HOST

    def _labels(self) -> tuple[int, int, int, int]:
        """Layer, micro-batch, stage and module of the innermost events that carry them."""
        layer = microbatch = chunk = module = MISSING
        for event in self.stack:
            i = event.index
            if event.kind == Kind.LAYER:
                layer = int(self.trace.layer[i])
                name = self.trace.text(int(self.trace.name[i]))
                module = MODULES.index(name) if name in MODULES else MISSING
            if self.trace.microbatch[i] != MISSING:
                microbatch = int(self.trace.microbatch[i])
            if self.trace.chunk[i] != MISSING:
                chunk = int(self.trace.chunk[i])
        return layer, microbatch, chunk, module
