"""How many calls there are, what they move, and how fast.

The filters are those of communication. Bytes on the wire are those of the ring algorithm, as on a
cluster; what gloo sends, the recordings' backend, is more for some operations.
"""

from __future__ import annotations

import math

import numpy as np

from generator.errors import UserError
from generator.runs.run import MISSING
from generator.timeline import intervals
from generator.timeline.metrics.calls import Members, call_metric, members, ring_bytes
from generator.timeline.metrics.entry import Number, metric
from generator.timeline.spans import Call, Timeline


@call_metric("", label="recorded")
def count(timeline: Timeline, calls: Members, rank: int | None) -> Number:
    """Number of calls.

    Each collective counts once, however many members it has, and so does each send with its receive.
    """
    return len(calls.of(rank).distinct())


@call_metric("B", label="recorded")
def payload_bytes(timeline: Timeline, calls: Members, rank: int | None) -> Number:
    """Bytes of the tensors that calls work on.

    The full tensor of each call, gathered and unreduced: of an all-gather its output, of a
    reduce-scatter its input. Without `rank` each call counts once.
    """
    return sum(timeline.calls[i].bytes for i in calls.of(rank).distinct())


@call_metric("B", label="formula")
def wire_bytes(timeline: Timeline, calls: Members, rank: int | None) -> Number:
    """Bytes a rank sends under the ring algorithm.

    Of a collective of n ranks with a payload S: all-reduce 2(n − 1)/n · S; all-gather, reduce-scatter
    and all-to-all (n − 1)/n · S; broadcast too, the mean over a chain whose last rank sends nothing.
    A send counts on its sender, and an all-to-all with uneven parts as what each rank sends to the
    others. What gloo really sends differs: for a reduce-scatter it sends an all-reduce's bytes.
    """
    return _known(timeline, float(calls.of(rank).wire.sum()))


def _known(timeline: Timeline, size: float) -> float:
    if math.isnan(size):
        raise UserError(
            f"the run '{timeline.run}' has a call for which no ring algorithm is known",
            remedy="Ask with op='…'.",
        )
    return size


@metric("B", label="formula")
def egress_bytes(
    timeline: Timeline,
    node: int | None = None,
    op: str | None = None,
    phase: str | None = None,
    layer: int | None = None,
    microbatch: int | None = None,
    group: str | None = None,
) -> Number:
    """Bytes that leave a node under the ring algorithm.

    A ring that visits node after node crosses each boundary with what one rank sends, however many
    members a node has. An all-to-all sends each member's parts for the ranks elsewhere. Where every rank
    is a node of its own, these are its wire bytes. Without `node` the sum over nodes.
    """
    per_node = timeline.ranks_per_node
    nodes = -(-len(timeline.ranks) // per_node)
    if node is not None and node not in range(nodes):
        raise UserError(
            f"the run '{timeline.run}' has no node {node}", remedy=f"Its nodes are 0 to {nodes - 1}."
        )
    left = [0.0] * nodes
    for index in members(timeline, op, phase, layer, microbatch, group).distinct():
        for at, sent in _crossing(timeline.calls[index], per_node).items():
            left[at] += sent
    return _known(timeline, sum(left) if node is None else left[node])


def _crossing(call: Call, per_node: int) -> dict[int, float]:
    """Bytes that a call sends out of each node that has a member of it."""
    at = [rank // per_node for rank in call.ranks]
    places = sorted(set(at))
    if len(places) < 2:
        return {}
    if call.point_to_point:
        return {at[0]: float(call.bytes)}
    inside, outside = {p: at.count(p) for p in places}, {p: len(at) - at.count(p) for p in places}
    uneven = {m.rank: m.sent for m in call.members if m.sent != MISSING}
    if uneven:
        # Who of the others gets how much is not known: as much each.
        return {
            p: sum(sent for rank, sent in uneven.items() if rank // per_node == p)
            * outside[p] / (len(at) - 1)
            for p in places
        }  # fmt: skip
    if call.op == "all_to_all":
        return {p: inside[p] * outside[p] / len(at) * call.bytes for p in places}
    # A chain over the nodes is one over ranks: the last of it sends nothing.
    length = len(places) if call.op == "broadcast" else len(at)
    return dict.fromkeys(places, ring_bytes(call, length))


@call_metric("B/ns")
def algorithm_bandwidth(timeline: Timeline, calls: Members, rank: int | None) -> Number:
    """Payload over the time it takes to move it.

    `payload_bytes` ÷ `transfer` of a rank: from the last arrival to the end. Divided by the whole bar
    it would count waiting for a late rank as a slow link. Without `rank` the mean over the ranks that
    take part.
    """
    return _rate(timeline, calls, rank, [float(c.bytes) for c in timeline.calls])


@call_metric("B/ns")
def bus_bandwidth(timeline: Timeline, calls: Members, rank: int | None) -> Number:
    """What a rank sends over the time it takes, comparable with the link's rate whatever the operation.

    `wire_bytes` ÷ `transfer` of a rank: the algorithm bandwidth times 2(n − 1)/n for an all-reduce,
    (n − 1)/n for all-gather, reduce-scatter and all-to-all. Without `rank` the mean over the ranks that
    take part.
    """
    return _rate(timeline, calls, rank, None)


def _rate(timeline: Timeline, calls: Members, rank: int | None, payloads: list[float] | None) -> Number:
    found = calls.of(rank)
    if not len(found):
        raise UserError(
            f"the run '{timeline.run}' has no such call, so it has no bandwidth",
            remedy="Ask for calls that it has.",
        )
    rates = []
    for r in np.unique(found.rank).tolist():
        own = found.of(r)
        sizes = own.wire.tolist() if payloads is None else [payloads[i] for i in own.distinct()]
        moved = _known(timeline, sum(sizes))
        took = intervals.length(own.moving())
        if not took:
            raise UserError(
                f"the calls of rank {r} of '{timeline.run}' take no time, so they have no bandwidth",
                remedy="Ask another run, or with other filters.",
            )
        rates.append(moved / took)
    return float(np.mean(rates))


@metric("", label="recorded", of_a_run=False)
def load_imbalance(timeline: Timeline, phase: str | None = None, layer: int | None = None) -> Number:
    """Load of the fullest rank over the mean, of an all-to-all with uneven parts.

    What each member ends up with, its own part included: the largest over the mean, and the largest of
    that over the calls. Of expert parallelism it is the load of the hottest rank, as its tokens arrive.
    """
    found = members(timeline, "all_to_all", phase, layer)
    found = found.where(found.received != MISSING)
    if not len(found):
        raise UserError(
            f"the run '{timeline.run}' has no such all-to-all with uneven parts", remedy="Ask another run."
        )
    shares = []
    for index in found.distinct():
        loads = found.received[found.call == index]
        if loads.sum():
            shares.append(float(loads.max() / loads.mean()))
    return max(shares)
