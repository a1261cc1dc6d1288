"""A measured run in memory: its manifest and one set of columns per rank.

Events are numpy columns, not objects: a rank of a long recording has hundreds of thousands of them.
All times are integer nanoseconds on the run's clock, whose zero is the base of the rank files.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

import numpy as np
import numpy.typing as npt

from generator.runs.manifest import Manifest

I8 = npt.NDArray[np.int8]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]

#: The value of an integer column where the trace does not say.
MISSING = -1


class Kind(IntEnum):
    """What an event of a rank file is. See `generator.runs.chrome` for how it is written there."""

    STEP = 0
    PHASE = 1
    LAYER = 2
    ISSUE = 3
    TRANSFER = 4
    WAIT = 5
    OTHER = 6


MEMORY_CATEGORIES = ("parameters", "gradients", "optimizer", "activations", "communication", "other")


@dataclass(frozen=True, slots=True)
class MemorySamples:
    """Bytes held by a rank, by category, at points in time."""

    #: When each sample was taken, int64 [samples], ns.
    time_ns: I64
    #: Bytes, int64 [samples, categories], in the order of MEMORY_CATEGORIES.
    bytes: I64


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class RankTrace:
    """The events of one rank as columns of equal length, sorted by start, longest first.

    Text columns (`name`, `phase`, `op`, `group`, `dtype`) hold indices into `strings`.
    """

    rank: int
    path: Path
    #: What the file's times count from, ns on the host's clock.
    base_ns: int
    strings: tuple[str, ...]
    #: Global ranks of every process group named in this file.
    groups: dict[str, tuple[int, ...]]
    #: Position of the event in the file's traceEvents.
    row: I32
    kind: I8
    name: I32
    start_ns: I64
    dur_ns: I64
    #: Thread-CPU clock at the event's start and the CPU time inside it, ns.
    cpu_start_ns: I64
    cpu_dur_ns: I64
    #: Of a step: CPU time of the process's other threads meanwhile, ns.
    helpers_cpu_ns: I64
    step: I32
    phase: I32
    layer: I32
    microbatch: I32
    #: Model chunk (pipeline stage index) that a pipeline phase works on.
    chunk: I32
    #: Ties issue, transfer and wait of one call within this file.
    call: I32
    op: I32
    group: I32
    seq: I32
    dtype: I32
    #: Payload: the full (gathered, unreduced) tensor, bytes.
    bytes: I64
    #: Of an all-to-all with uneven parts: bytes that this rank sends to the others, and those that it
    #: ends up with, its own part included.
    sent: I64
    received: I64
    #: Floating-point operations of a matrix product, in the detail step.
    flops: I64
    src: I32
    dst: I32
    tag: I32
    memory: MemorySamples

    def __len__(self) -> int:
        return len(self.start_ns)

    def text(self, index: int) -> str:
        """The string behind an index of a text column; empty where missing."""
        return "" if index == MISSING else self.strings[index]


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Run:
    """One folder below measured_runs/: what was run and what each rank saw."""

    folder: Path
    manifest: Manifest
    #: In order of rank; empty for a calibration.
    ranks: tuple[RankTrace, ...]

    @property
    def id(self) -> str:
        return self.manifest.id
