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
from generator.timeline.memo import once_a_step
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


# Plain numbers: a member of an enumeration costs a look-up each time, and a run has a million segments.
_WORK = int(Role.WORK)
_PHASE_EVENT, _ISSUE_EVENT, _WAIT_EVENT = int(Kind.PHASE), int(Kind.ISSUE), int(Kind.WAIT)


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
    """An event whose end has not been reached yet, with the labels of all that is around it."""

    index: int
    end_ns: int
    cpu_end_ns: int
    role: int
    activity: int
    #: Layer, micro-batch, stage and module.
    labels: tuple[int, int, int, int]
    #: Whether its begin and end are boundaries of a phase or a layer.
    bounds: bool
    seen: bool = False


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


@once_a_step
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
    for index in nested.tolist():
        cutter.open(index)
    return cutter.finish(begin, end)


class _Cutter:
    """Walks the begins and ends of nested events and emits what lies between two of them."""

    def __init__(self, trace: RankTrace, root: int) -> None:
        self.trace = trace
        self.now = int(trace.start_ns[root])
        self.cpu = int(trace.cpu_start_ns[root])
        nothing = (MISSING, MISSING, MISSING, MISSING)
        self.stack = [_Open(root, *self._ends(root), _WORK, int(Activity.HOST), nothing, bounds=False)]
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
            call=np.where(role == _WORK, MISSING, self.trace.call[row]).astype(np.int32),
            row=self.trace.row[row].astype(np.int32),
            boundary=np.array(self.boundary, np.int32),
        )

    def _ends(self, index: int) -> tuple[int, int]:
        """End of an event on both clocks; the CPU clock's is MISSING where the trace has none."""
        t = self.trace
        cpu, took = int(t.cpu_start_ns[index]), int(t.cpu_dur_ns[index])
        cpu_end = MISSING if MISSING in (cpu, took) else cpu + took
        return int(t.start_ns[index] + t.dur_ns[index]), cpu_end

    def _opened(self, index: int) -> _Open:
        """The event with its own labels, and for those it does not have, those of what is around it."""
        t, around = self.trace, self.stack[-1]
        kind = int(t.kind[index])
        role, activity = _WORK, around.activity
        layer, microbatch, chunk, module = around.labels
        if kind == _ISSUE_EVENT:
            role, activity = int(Role.ISSUE), int(Activity.HOST)
        elif kind == _WAIT_EVENT:
            role, activity = int(Role.WAIT), int(Activity.BLOCKED)
        elif kind == _PHASE_EVENT:
            activity = int(_PHASES.get(t.text(int(t.phase[index])), Activity.HOST))
        else:
            name = t.text(int(t.name[index]))
            layer, module = int(t.layer[index]), MODULES.index(name) if name in MODULES else MISSING
        own_microbatch, own_chunk = int(t.microbatch[index]), int(t.chunk[index])
        labels = (
            layer,
            microbatch if own_microbatch == MISSING else own_microbatch,
            chunk if own_chunk == MISSING else own_chunk,
            module,
        )
        return _Open(index, *self._ends(index), role, activity, labels, bounds=role == _WORK)

    def _close(self) -> None:
        top = self.stack[-1]
        self._emit(top.end_ns, top.cpu_end_ns)
        self.stack.pop()
        self._mark(top)

    def _mark(self, event: _Open) -> None:
        if event.bounds:
            self.boundary.append(len(self.segments))

    def _emit(self, until: int, cpu_until: int) -> None:
        """The segment from now to `until`, labelled by the innermost event that is open."""
        top = self.stack[-1]
        wall = until - self.now
        # An issue and a wait are nodes of the graph even where they took no time.
        if wall > 0 or (top.role != _WORK and not top.seen):
            top.seen = True
            has_cpu = self.cpu != MISSING and cpu_until != MISSING
            cpu = min(max(0, cpu_until - self.cpu), wall) if has_cpu else wall
            self.segments.append((top.role, top.activity, self.now, wall, cpu, *top.labels, top.index))
        self.now, self.cpu = until, cpu_until
