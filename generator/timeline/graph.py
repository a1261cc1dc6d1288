"""The dependency graph of one step over all ranks.

Nodes are pieces of time, edges say what cannot begin before what has ended:

* program order on each rank: a segment follows the one before it;
* a call *arrives* on a rank where it is issued, and is *done* there some time after its members have
  arrived (a collective after all of them, a receive after its send) and after the call before it in
  the same group: a group is a queue;
* a wait ends when its call is done here, and not before its thread got there.

Durations are not part of the graph; `generator.timeline.replay` gives each node one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from generator.errors import UserError
from generator.runs.run import I8, I32, I64
from generator.timeline.collectives import Arrival, Match
from generator.timeline.program import Program, Role


class Node(IntEnum):
    """What a node stands for."""

    BEGIN = 0
    WORK = 1
    ARRIVE = 2
    WAIT = 3
    DONE = 4


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes as columns and, for each, the nodes that must have ended before it begins."""

    programs: tuple[Program, ...]
    matches: tuple[Match, ...]
    kind: I8
    rank: I32
    #: Segment of the rank's program (WORK, WAIT), else -1.
    segment: I32
    #: Index of the match (ARRIVE, WAIT, DONE), else -1.
    match: I32
    #: Predecessors of node i: predecessors[first[i]:first[i + 1]].
    first: I64
    predecessors: I64
    #: Nodes in an order in which every predecessor comes first.
    order: I64
    #: For each rank the nodes of its program, in order; the first is its BEGIN.
    lanes: tuple[I64, ...]
    #: (match, rank) to the node of that member's arrival and completion.
    arrive: dict[tuple[int, int], int]
    done: dict[tuple[int, int], int]

    def __len__(self) -> int:
        return len(self.kind)

    def before(self, node: int) -> npt.NDArray[np.int64]:
        """The predecessors of a node."""
        return self.predecessors[self.first[node] : self.first[node + 1]]


def build(
    programs: Sequence[Program], matches: Sequence[Match], *, eager: bool = False, cross_rank: bool = True
) -> Graph:
    """Build the graph of a step.

    `eager`: a send's bytes may leave before its receive has been posted (the receiver has a buffer),
    as small messages do on a cluster; else both must be there, as in gloo. `cross_rank=False` leaves
    out every edge between ranks, which only serves to see what those edges are worth.
    """
    return _Builder(tuple(programs), tuple(matches), eager, cross_rank).build()


class _Builder:
    def __init__(
        self, programs: tuple[Program, ...], matches: tuple[Match, ...], eager: bool, cross_rank: bool
    ) -> None:
        self.programs, self.matches = programs, matches
        self.eager, self.cross_rank = eager, cross_rank
        self.nodes: list[tuple[Node, int, int, int]] = []
        self.before: list[list[int]] = []
        self.arrive: dict[tuple[int, int], int] = {}
        self.done: dict[tuple[int, int], int] = {}
        self.waits: list[tuple[int, int, int]] = []
        self.match_of = {(m.rank, m.call): i for i, match in enumerate(matches) for m in match.members}

    def build(self) -> Graph:
        lanes = [self._lane(program) for program in self.programs]
        self._calls()
        for node, match, rank in self.waits:
            self.before[node].append(self.done[match, rank])
        counts = np.array([len(b) for b in self.before], np.int64)
        kind, rank_column, segment, match_column = np.array(self.nodes, np.int64).reshape(-1, 4).T
        first = np.concatenate([[0], np.cumsum(counts)])
        return Graph(
            programs=self.programs,
            matches=self.matches,
            kind=kind.astype(np.int8),
            rank=rank_column.astype(np.int32),
            segment=segment.astype(np.int32),
            match=match_column.astype(np.int32),
            first=first,
            predecessors=np.array([p for b in self.before for p in b], np.int64),
            order=topological_order(self.before, rank_column.tolist()),
            lanes=tuple(np.array(lane, np.int64) for lane in lanes),
            arrive=self.arrive,
            done=self.done,
        )

    def _add(self, kind: Node, rank: int, segment: int, match: int, before: list[int]) -> int:
        self.nodes.append((kind, rank, segment, match))
        self.before.append(before)
        return len(self.nodes) - 1

    def _lane(self, program: Program) -> list[int]:
        rank = program.rank
        lane = [self._add(Node.BEGIN, rank, -1, -1, [])]
        issue, wait = int(Role.ISSUE), int(Role.WAIT)
        for i, (role, call) in enumerate(zip(program.role.tolist(), program.call.tolist(), strict=True)):
            match = self.match_of.get((rank, call), -1)
            if role == issue and match >= 0 and (match, rank) not in self.arrive:
                self.arrive[match, rank] = self._add(Node.ARRIVE, rank, -1, match, [lane[-1]])
                lane.append(self.arrive[match, rank])
            waits = role == wait and match >= 0
            lane.append(
                self._add(Node.WAIT if waits else Node.WORK, rank, i, match if waits else -1, [lane[-1]])
            )
            if waits:
                self.waits.append((lane[-1], match, rank))
        return lane

    def _calls(self) -> None:
        """Add the completion of every member, queue after queue."""
        previous: dict[tuple[object, ...], int] = {}
        for index, match in enumerate(self.matches):
            for member in match.members:
                queue = (match.group, match.expected, member.rank)
                before = self._causes(index, match, member)
                if queue in previous:
                    before.append(previous[queue])
                node = self._add(Node.DONE, member.rank, -1, index, before)
                self.done[index, member.rank] = previous[queue] = node

    def _causes(self, index: int, match: Match, member: Arrival) -> list[int]:
        own = self.arrive[index, member.rank]
        if not self.cross_rank:
            return [own]
        if match.point_to_point:
            source = self.arrive.get((index, match.expected[0]), own)
            return [source] if self.eager else [self.arrive[index, m.rank] for m in match.members]
        return [self.arrive[index, m.rank] for m in match.members]


def topological_order(before: Sequence[Sequence[int]], ranks: Sequence[int]) -> I64:
    """Nodes in an order in which all of `before[node]` come before it (Kahn).

    Raises UserError where nodes wait for each other in a circle, naming those of `ranks` that are in it.
    """
    after: dict[int, list[int]] = defaultdict(list)
    waiting = [len(b) for b in before]
    for node, its in enumerate(before):
        for p in its:
            after[p].append(node)
    ready = [n for n, count in enumerate(waiting) if count == 0]
    order = []
    while ready:
        node = ready.pop()
        order.append(node)
        for n in after[node]:
            waiting[n] -= 1
            if waiting[n] == 0:
                ready.append(n)
    if len(order) < len(before):
        stuck = sorted({ranks[n] for n, count in enumerate(waiting) if count})
        raise UserError(
            f"calls of ranks {stuck} wait for each other in a circle",
            remedy="The trace contradicts itself; check that all rank files are of one run.",
        )
    return np.array(order, np.int64)
