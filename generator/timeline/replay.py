"""Replay: lay a step out again with other durations, by the longest path through its graph.

Three things decide when a node begins: the end of what it depends on, and nothing else. So replay is
one pass over the nodes in topological order, in integer ns, and is monotone: longer durations never
end earlier.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from generator.runs.manifest import nodes_of
from generator.runs.run import I64
from generator.timeline.collectives import Match
from generator.timeline.graph import Graph, Node
from generator.timeline.links import LinkModel


@dataclass(frozen=True, slots=True)
class Schedule:
    """When every node of a graph begins and ends, ns from the step's begin."""

    begin_ns: I64
    end_ns: I64

    @property
    def step_ns(self) -> int:
        return int(self.end_ns.max(initial=0))


def replay(graph: Graph, duration_ns: I64) -> Schedule:
    """Longest path: each node begins when the last of its predecessors ends."""
    begin = [0] * len(graph)
    end = [0] * len(graph)
    first, before = graph.first.tolist(), graph.predecessors.tolist()
    durations = duration_ns.tolist()
    for node in graph.order.tolist():
        at = 0
        for i in range(first[node], first[node + 1]):
            if end[before[i]] > at:
                at = end[before[i]]
        begin[node] = at
        end[node] = at + durations[node]
    return Schedule(begin_ns=np.array(begin, np.int64), end_ns=np.array(end, np.int64))


def recorded_schedule(graph: Graph) -> Schedule:
    """When everything did happen: no replay, the times of the recording."""
    origin = min(p.begin_ns for p in graph.programs)
    begin = np.zeros(len(graph), np.int64)
    end = np.zeros(len(graph), np.int64)
    for index, match in enumerate(graph.matches):
        for rank, at in _completions(match).items():
            end[graph.done[index, rank]] = at - origin
        for m in match.members:
            end[graph.arrive[index, m.rank]] = begin[graph.arrive[index, m.rank]] = m.issue_ns - origin
    _in_turn(graph, end, origin)
    # When each queue was free. gloo may complete two calls of a group out of order: the earlier keeps
    # the queue until it is complete, and the next after both is not charged for it again.
    free: dict[tuple[object, ...], int] = {}
    for index, match in enumerate(graph.matches):
        for m in match.members:
            node, queue = graph.done[index, m.rank], (match.group, match.expected, m.rank)
            at, free_at = int(end[node]), free.get(queue, 0)
            begin[node] = min(at, max(int(end[graph.before(node)].max()), free_at))
            free[queue] = max(free_at, at)
    for program, lane in zip(graph.programs, graph.lanes, strict=True):
        end[lane[0]] = program.begin_ns - origin
        nodes = lane[graph.segment[lane] >= 0]
        segments = graph.segment[nodes]
        begin[nodes] = program.start_ns[segments] - origin
        end[nodes] = begin[nodes] + program.wall_ns[segments]
        waits = nodes[graph.kind[nodes] == Node.WAIT]
        done = [graph.done[match, program.rank] for match in graph.match[waits].tolist()]
        begin[waits] = np.minimum(np.maximum(begin[waits], end[done]), end[waits])
    return Schedule(begin_ns=begin, end_ns=end)


def recorded_durations(graph: Graph) -> I64:
    """The durations as they were recorded.

    Work takes its wall time. A call takes from the last thing it depended on to its completion. A
    wait takes what is left after its call was done: the lag until the thread ran again.
    """
    seen = recorded_schedule(graph)
    durations: I64 = seen.end_ns - seen.begin_ns
    return durations


def _completions(match: Match) -> dict[int, int]:
    """When each member of a call was complete, ns on the run's clock.

    A member that only its wait tells of woke up at or after the completion; the first of those to
    wake is the best witness for all of them, and what the others took longer is their own lag.
    """
    last = max(m.issue_ns for m in match.members)
    woken = [
        m.done_ns for m in match.members if m.done_ns is not None and not m.done_seen and m.done_ns >= last
    ]
    out = {}
    for m in match.members:
        if m.done_ns is None:
            out[m.rank] = last
        elif m.done_seen or m.done_ns < last:
            out[m.rank] = m.done_ns
        else:
            out[m.rank] = min(woken)
    return out


def _in_turn(graph: Graph, end: I64, origin: int) -> None:
    """Complete each call no later than the next one of its group, where only a late wait tells of it.

    A group is a queue, and a rank may wait for its calls in any order, long after they were complete.
    """
    following: dict[tuple[str, tuple[int, ...], int], int] = {}
    for index in reversed(range(len(graph.matches))):
        match = graph.matches[index]
        last = max(m.issue_ns for m in match.members) - origin
        for m in match.members:
            node, queue = graph.done[index, m.rank], (match.group, match.expected, m.rank)
            if not m.done_seen and end[node] > last:
                end[node] = max(last, min(end[node], following.get(queue, end[node])))
            following[queue] = int(end[node])


def isolated_durations(graph: Graph, link: LinkModel) -> I64:
    """What the ranks would have taken each on a device of its own, joined by a link.

    Work takes its thread-CPU time, a call what the link model says, and a thread runs again at once
    when its call is done.
    """
    own, latency, transfer = isolated_parts(graph, link)
    durations: I64 = own + latency + transfer
    return durations


def isolated_parts(graph: Graph, link: LinkModel) -> tuple[I64, I64, I64]:
    """The same apart: what each node takes on its own, and of completions the latency and the transfer."""
    own, latency, transfer = (np.zeros(len(graph), np.int64) for _ in range(3))
    for program, lane in zip(graph.programs, graph.lanes, strict=True):
        work = lane[graph.kind[lane] == Node.WORK]
        own[work] = program.cpu_ns[graph.segment[work]]
    for index, match in enumerate(graph.matches):
        nodes = nodes_of(match.expected, link.ranks_per_node)
        parts = link.parts_ns(match.op, match.bytes, len(match.expected), nodes)
        for m in match.members:
            done = graph.done[index, m.rank]
            latency[done], transfer[done] = parts
    return own, latency, transfer


def scale_rank(graph: Graph, durations: I64, rank: int, per_mille: int) -> I64:
    """A copy with one rank's work scaled, rounded half up: what if that rank were slower?"""
    scaled = durations.copy()
    chosen = (graph.rank == rank) & (graph.kind == Node.WORK)
    scaled[chosen] = (scaled[chosen] * per_mille + 500) // 1000
    return scaled
