"""What a reconstruction is made of: spans on two lanes a rank, calls with their members, memory.

Times are integer nanoseconds from the step's begin. Two lanes a rank:

* the *computation lane*, where each instant of the step belongs to exactly one span;
* the *communication lane*, one entry per call this rank took part in: wait, then transfer.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from generator.runs.run import I8, I32, I64, MISSING


class Activity(IntEnum):
    """What a rank's own thread does at an instant."""

    FORWARD = 0
    BACKWARD = 1
    BACKWARD_INPUT = 2
    BACKWARD_WEIGHT = 3
    OPTIMIZER = 4
    HOST = 5
    BLOCKED = 6
    IDLE = 7


#: Activities that count as computation.
COMPUTATION = (
    Activity.FORWARD,
    Activity.BACKWARD,
    Activity.BACKWARD_INPUT,
    Activity.BACKWARD_WEIGHT,
    Activity.OPTIMIZER,
)


@dataclass(frozen=True, slots=True)
class Spans:
    """Spans of a computation lane as columns: sorted, not overlapping, without gaps.

    Neighbours differ in at least one label. -1 means: does not apply.
    """

    start_ns: I64
    end_ns: I64
    activity: I8
    layer: I32
    microbatch: I32
    #: 0 embedding, 1 block, 2 head, -1 elsewhere.
    module: I8
    #: Index into Timeline.calls of the call waited for or issued.
    call: I32
    #: Row of the event in the rank file that begins the span.
    row: I32
    #: Model chunk: the pipeline stage that the span works on.
    chunk: I32

    def __len__(self) -> int:
        return len(self.start_ns)


@dataclass(frozen=True, slots=True)
class Member:
    """One rank's part in a call. Collective: wait is arrive..begin, transfer is begin..end."""

    rank: int
    arrive_ns: int
    begin_ns: int
    end_ns: int
    #: Row of the issuing event in the rank file.
    row: int
    #: Of an all-to-all with uneven parts: bytes to the other members, and bytes that this one ends up
    #: with, its own part included. MISSING for any other call.
    sent: int = MISSING
    received: int = MISSING


@dataclass(frozen=True, slots=True)
class Call:
    """One collective, or one send with its receive (members: source, then destination)."""

    op: str
    group: str
    ranks: tuple[int, ...]
    seq: int
    #: Payload, bytes; with uneven parts that of the member with most.
    bytes: int
    dtype: str
    members: tuple[Member, ...]
    phase: str
    layer: int
    microbatch: int

    @property
    def point_to_point(self) -> bool:
        return self.op == "send"


@dataclass(frozen=True, slots=True)
class MemoryCurve:
    """Bytes held by category over the step: piecewise constant from each time on."""

    time_ns: I64
    #: int64 [times, categories], in the order of runs.run.MEMORY_CATEGORIES.
    bytes: I64


@dataclass(frozen=True, slots=True)
class Work:
    """Floating-point operations of a rank's matrix products in one step, by where they ran.

    Counted once, in the detail step; they are the same in every step.
    """

    activity: I8
    layer: I32
    microbatch: I32
    #: 0 embedding, 1 block, 2 head, -1 elsewhere.
    module: I8
    flops: I64
    #: Operations and thread-CPU ns of the product that ran at the highest rate; zeros where none is known.
    fastest: tuple[int, int] = (0, 0)


NO_WORK = Work(
    np.zeros(0, np.int8),
    np.zeros(0, np.int32),
    np.zeros(0, np.int32),
    np.zeros(0, np.int8),
    np.zeros(0, np.int64),
)


@dataclass(frozen=True, slots=True)
class RankTimeline:
    rank: int
    computation: Spans
    memory: MemoryCurve
    work: Work = NO_WORK


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Timeline:
    """One step of a run on all ranks, in one mode."""

    run: str
    #: "recorded", "isolated" or "what-if".
    mode: str
    #: "ring", "gloo" or "" (recorded).
    link_model: str
    step: int
    #: From the earliest begin to the latest end over ranks.
    step_ns: int
    ranks: tuple[RankTimeline, ...]
    calls: tuple[Call, ...]
    #: Pipeline stages (of all ranks, which may have several each), 1 where there is no pipeline;
    #: micro-batches of a step.
    stages: int
    microbatches: int
    #: Ranks that share a node's interface; 1 where each rank is a node of its own.
    ranks_per_node: int = 1
