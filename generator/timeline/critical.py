"""The critical path: the chain of work and transfers, over all ranks, that is as long as the step.

It is found from the end: of the node that ends last, what it depended on and that ended last, and so on
to the step's begin. A wait for a late rank is no piece of it: there the path goes over to that rank and
its work. So the pieces say *where* the step's time is. They do not say what a piece would win if it went:
another path may be almost as long. That is what a what-if says (:mod:`generator.timeline.whatif`).

Of several that ended at the same instant, the one of the same rank is taken, then the one that is listed
first in the graph: the thread's own work before the call it waits for. Of several that end the step, the
first in the graph: the lowest rank's work before any call.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeVar

from generator.runs.run import MISSING
from generator.timeline.graph import Graph, Node
from generator.timeline.replay import Schedule
from generator.timeline.spans import COMPUTATION, Activity

Name = TypeVar("Name", int, str)

#: The piece before a rank has begun its step: the step is as old as the first of its ranks.
IDLE = "idle"


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of the critical path on one rank, ns from the step's begin."""

    rank: int
    start_ns: int
    end_ns: int
    #: What the time goes to: a phase, "host", "idle", or the operation of a call that is under way.
    label: str
    #: Of computation; -1 elsewhere.
    layer: int
    microbatch: int
    #: Index of the call that is under way, -1 elsewhere.
    call: int

    @property
    def ns(self) -> int:
        return self.end_ns - self.start_ns


@dataclass(frozen=True, slots=True)
class CriticalPath:
    """Pieces that follow each other from 0 to the step's end; neighbours differ in rank or label."""

    step_ns: int
    pieces: tuple[Piece, ...]

    def composition(self) -> dict[str, int]:
        """Time of the path by label, ns, in order of its size; it sums to the step's time."""
        return _sums((p.label, p.ns) for p in self.pieces)

    def by_rank(self) -> dict[int, int]:
        """The same by the rank that it goes along."""
        return _sums((p.rank, p.ns) for p in self.pieces)

    @property
    def hops(self) -> int:
        """How often the path goes over from one rank to another."""
        return sum(a.rank != b.rank for a, b in pairwise(self.pieces))


def critical_path(graph: Graph, schedule: Schedule) -> CriticalPath:
    """The critical path of a step that was laid out on a graph.

    `graph` must have the edges that the schedule was made with: for a what-if those of `what_if_graph`.
    """
    end = schedule.end_ns.tolist()
    until = schedule.step_ns
    node = end.index(until) if end else MISSING
    found: list[Piece] = []
    while node != MISSING:
        cause = _cause(graph, end, node)
        # In a recording a thing may have ended a little after what depended on it began.
        start = 0 if cause == MISSING else min(until, end[cause])
        _add(found, _piece(graph, node, start, until))
        node, until = cause, start
    return CriticalPath(step_ns=schedule.step_ns, pieces=tuple(reversed(found)))


def _cause(graph: Graph, end: list[int], node: int) -> int:
    """What a node waited for: of its predecessors that which ended last, -1 if it has none."""
    rank = graph.rank[node]
    return max(graph.before(node).tolist(), key=lambda p: (end[p], graph.rank[p] == rank), default=MISSING)


def _add(found: list[Piece], piece: Piece) -> None:
    """Put a piece before those found, joined with the one after it where only their times differ."""
    if not piece.ns:
        return
    if found and _labels(found[-1]) == _labels(piece):
        piece = replace(piece, end_ns=found.pop().end_ns)
    found.append(piece)


def _labels(piece: Piece) -> tuple[int, str, int, int, int]:
    return piece.rank, piece.label, piece.layer, piece.microbatch, piece.call


def _piece(graph: Graph, node: int, start_ns: int, end_ns: int) -> Piece:
    kind, rank, segment = int(graph.kind[node]), int(graph.rank[node]), int(graph.segment[node])
    label, layer, microbatch, call = IDLE, MISSING, MISSING, MISSING
    if kind == Node.DONE:
        call = int(graph.match[node])
        label = graph.matches[call].op
    elif kind == Node.WAIT:
        # Its call is done; the thread takes this long to run again.
        label = Activity.HOST.name.lower()
    elif kind == Node.WORK:
        program = next(p for p in graph.programs if p.rank == rank)
        activity = Activity(program.activity[segment])
        label = activity.name.lower()
        if activity in COMPUTATION:
            layer, microbatch = int(program.layer[segment]), int(program.microbatch[segment])
    return Piece(rank, start_ns, end_ns, label, layer, microbatch, call)


def _sums(parts: Iterable[tuple[Name, int]]) -> dict[Name, int]:
    sums: dict[Name, int] = defaultdict(int)
    for name, ns in parts:
        sums[name] += ns
    return dict(sorted(sums.items(), key=lambda item: (-item[1], str(item[0]))))
