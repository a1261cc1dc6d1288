"""What if: the graph of a recorded step laid out again with other costs.

Everything here is integers, so that the page's JavaScript and this module get the same nanosecond. The
algorithm, whole, on the columns of a :class:`Replayable`, with `a // b` rounding down:

1. *Own time* of node i: `own_ns[i]`, with `balance` step 5's. Where `phase[i]` is not -1 the node is
   work, and each factor f that is given, and is not 1000, multiplies it, one after the other: of its
   rank; of "backward", if its phase is that or a part of it; of its phase by any other name; of its layer,
   if `layer[i]` is not -1. Each time `d = min(LONGEST_NS, (d * f + 500) // 1000)`.
2. *Completion* i (`call[i]` is not -1 and `completes[i]` is true) of a call of operation o: 0 if free or o
   is in `free_ops`; else `min(LONGEST_NS, (latency_ns[i] * latency + 500) // 1000 + (transfer_ns[i] * 1000
   + bandwidth // 2) // bandwidth)`.
3. *Edges*. The wait i for a call whose operation is in `asynchronous` takes 0 and loses its completions
   (`completes`) from its predecessors. For an operation in `blocking`, `stands[i]` of each completion i
   (where it is not -1) gets i as one more predecessor: the first node of the issuer's thread after the
   issue. Nodes that then wait for each other in a circle are an error, as they are on a cluster.
4. *Longest path*. A node begins when the last of its predecessors ends, or at 0 where it has none, and ends
   its duration later. The step is as long as the latest end. Any topological order gives the same times.
5. *Balance*, before all factors. Work nodes of one `share` are one piece of work, of each rank that takes
   any time for it. With the sum s over k ranks, each of them takes the mean m = (2s + k) // 2k. A rank that
   took t for it goes through its nodes in order with the running sum c of their own times; a node then
   takes `(c * m) // t` after it minus the same before it. (These products need more than 53 bits.)

What is one piece of work: a phase, layer and micro-batch, where the ranks that have the phase all have the
same ones. Otherwise, as in a pipeline, all that a rank does of the phase.

No node may be longer than LONGEST_NS and no factor larger than 100,000 per mille, so every other product
stays below 2**53. Without factors nothing changes. On recorded durations a call has no latency part, as
nobody measured it: all of it is transfer, and only `bandwidth` and `free` change it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from generator.errors import UserError, did_you_mean
from generator.runs.run import I8, I32, I64, MISSING, Run
from generator.timeline.graph import Graph, Node, topological_order
from generator.timeline.program import Role
from generator.timeline.reconstruct import (
    MODES,
    graph_of,
    isolated_link,
    representative_step,
    timeline_of,
)
from generator.timeline.replay import Schedule, isolated_parts, recorded_durations, replay
from generator.timeline.spans import COMPUTATION, Activity, Timeline
from generator.timeline.whatif_text import NOTHING, PHASES, WhatIf, parse_what_if, what_if_text

__all__ = [
    "LONGEST_NS",
    "NOTHING",
    "Replayable",
    "WhatIf",
    "parse_what_if",
    "replay_what_if",
    "replayable",
    "what_if_durations",
    "what_if_graph",
    "what_if_text",
    "what_if_timeline",
]

#: The longest that a node may be, ns (90 s): 100,000 times it is still below 2**53.
LONGEST_NS = 90_000_000_000
MODE = "what-if"
_PARTS_OF_BACKWARD = (Activity.BACKWARD, Activity.BACKWARD_INPUT, Activity.BACKWARD_WEIGHT)


@dataclass(frozen=True, slots=True, eq=False)
class Replayable:
    """A step of a run, ready to be laid out again: its graph, and a row of columns for each node."""

    run: Run
    step: int
    #: "isolated" or "recorded": where the durations are from.
    mode: str
    #: "ring", "gloo", "free" or "" (recorded).
    link_model: str
    graph: Graph
    #: What a node takes on its own: work, a rank's late begin, a wake-up. 0 for a completion.
    own_ns: I64
    #: Of a completion, the two parts of the call; 0 elsewhere.
    latency_ns: I64
    transfer_ns: I64
    #: Activity of a work node, -1 elsewhere.
    phase: I8
    #: Layer of a work node that computes, -1 elsewhere.
    layer: I32
    #: Operation of the call that a node arrives at, waits for or completes, as an index into `ops`; else -1.
    call: I8
    completes: npt.NDArray[np.bool_]
    #: Of a completion, the node of the issuer's thread that follows the issue, -1 if none does or elsewhere.
    stands: I64
    #: Piece of work that a work node belongs to, -1 elsewhere.
    share: I32
    ops: tuple[str, ...]

    @property
    def durations(self) -> I64:
        """Of each node when nothing is changed, ns."""
        out: I64 = self.own_ns + self.latency_ns + self.transfer_ns
        return out


# ---- from a run


def replayable(
    run: Run,
    *,
    mode: str = "isolated",
    link_model: str = "ring",
    calibration: Run | None = None,
    step: int | None = None,
) -> Replayable:
    """A step of a run (the representative one unless given), to ask what-ifs of. Raises UserError."""
    if mode not in MODES:
        raise UserError(f"there is no mode '{mode}'", remedy="Known: " + ", ".join(MODES) + ".")
    chosen = representative_step(run) if step is None else step
    if mode == "recorded":
        graph = graph_of(run, chosen)
        durations = recorded_durations(graph)
        completes = graph.kind == Node.DONE
        parts = np.where(completes, 0, durations), np.zeros_like(durations), np.where(completes, durations, 0)
        return _replayable(run, chosen, mode, "", graph, parts)
    link = isolated_link(run, link_model, calibration)
    graph = graph_of(run, chosen, eager=link_model != "gloo")
    return _replayable(run, chosen, mode, link_model, graph, isolated_parts(graph, link))


def _replayable(
    run: Run, step: int, mode: str, link_model: str, graph: Graph, parts: tuple[I64, I64, I64]
) -> Replayable:
    own, latency, transfer = parts
    longest = int((own + latency + transfer).max(initial=0))
    if longest > LONGEST_NS:
        raise UserError(
            f"step {step} of '{run.id}' has a piece of {longest / 1e9:.0f} s, too long for a what-if",
            remedy=f"A what-if takes pieces of up to {LONGEST_NS // 10**9} s.",
        )
    phase = np.full(len(graph), MISSING, np.int8)
    layer, microbatch = np.full(len(graph), MISSING, np.int32), np.full(len(graph), MISSING, np.int32)
    for program, lane in zip(graph.programs, graph.lanes, strict=True):
        work = lane[graph.kind[lane] == Node.WORK]
        segments = graph.segment[work]
        phase[work] = program.activity[segments]
        computes = np.isin(program.activity[segments], COMPUTATION)
        layer[work] = np.where(computes, program.layer[segments], MISSING)
        microbatch[work] = program.microbatch[segments]
    ops = tuple(sorted({m.op for m in graph.matches}))
    op_of = np.array([*(ops.index(m.op) for m in graph.matches), MISSING], np.int8)
    return Replayable(
        run=run,
        step=step,
        mode=mode,
        link_model=link_model,
        graph=graph,
        own_ns=own,
        latency_ns=latency,
        transfer_ns=transfer,
        phase=phase,
        layer=layer,
        call=op_of[graph.match],
        completes=graph.kind == Node.DONE,
        stands=_stands(graph),
        share=_shares(graph, phase, layer, microbatch),
        ops=ops,
    )


def _stands(graph: Graph) -> I64:
    """For each completion the first node of its own thread after the issue of its call."""
    stands = np.full(len(graph), MISSING, np.int64)
    for program, lane in zip(graph.programs, graph.lanes, strict=True):
        nodes, role, call = lane.tolist(), program.role.tolist(), program.call.tolist()
        last: dict[int, int] = {}
        for at, node in enumerate(nodes):
            segment = int(graph.segment[node])
            if segment >= 0 and role[segment] == Role.ISSUE:
                last[call[segment]] = at
        for index, match in enumerate(graph.matches):
            for m in match.members:
                if m.rank == program.rank and last.get(m.call, len(nodes)) + 1 < len(nodes):
                    stands[graph.done[index, m.rank]] = nodes[last[m.call] + 1]
    return stands


def _shares(graph: Graph, phase: I8, layer: I32, microbatch: I32) -> I32:
    """A number for each piece of work that ranks can share evenly."""
    shares = np.full(len(graph), MISSING, np.int32)
    labels = np.stack([layer, microbatch], axis=1)
    count = 0
    for kind in range(len(PHASES)):
        nodes = np.flatnonzero(phase == kind)
        if not len(nodes):
            continue
        distinct, which = np.unique(labels[nodes], axis=0, return_inverse=True)
        which = which.reshape(-1)
        have = [set(which[graph.rank[nodes] == r].tolist()) for r in np.unique(graph.rank[nodes])]
        alike = all(h == have[0] for h in have)
        shares[nodes] = count + (which if alike else 0)
        count += len(distinct) if alike else 1
    return shares


# ---- replay


def replay_what_if(what: Replayable, what_if: WhatIf) -> Schedule:
    """When every node begins and ends under other costs. Raises UserError for what the run has not."""
    return replay(what_if_graph(what, what_if), what_if_durations(what, what_if))


def what_if_timeline(what: Replayable, what_if: WhatIf) -> Timeline:
    """The step under other costs, as a timeline whose mode is "what-if"."""
    schedule = replay_what_if(what, what_if)
    return timeline_of(what.run, what.step, what.graph, schedule, mode=MODE, link_model=what.link_model)


def what_if_durations(what: Replayable, what_if: WhatIf) -> I64:
    """What each node takes, ns. Raises UserError for what the run has not."""
    _check(what, what_if)
    return _own(what, what_if) + _calls(what, what_if)


def what_if_graph(what: Replayable, what_if: WhatIf) -> Graph:
    """The graph without what an asynchronous call need not wait for, and with what a blocking one must.

    Raises UserError where ranks then wait for each other in a circle.
    """
    graph = what.graph
    if not what_if.asynchronous and not what_if.blocking:
        return graph
    first, predecessors = graph.first.tolist(), graph.predecessors.tolist()
    before: list[list[int]] = [predecessors[a:b] for a, b in pairwise(first)]
    for wait in np.flatnonzero(_of_ops(what, what_if.asynchronous) & (graph.kind == Node.WAIT)).tolist():
        before[wait] = [p for p in before[wait] if not what.completes[p]]
    for done in np.flatnonzero(_of_ops(what, what_if.blocking) & (what.stands >= 0)).tolist():
        before[int(what.stands[done])].append(done)
    try:
        order = topological_order(before, graph.rank.tolist())
    except UserError as error:
        raise UserError(
            f"with {' and '.join(sorted(what_if.blocking))} blocking, {error.what}",
            remedy="On a cluster this step would hang; let other operations block.",
        ) from error
    return replace(
        graph,
        first=np.cumsum([0, *(len(b) for b in before)], dtype=np.int64),
        predecessors=np.array([p for b in before for p in b], np.int64),
        order=order,
    )


def _own(what: Replayable, what_if: WhatIf) -> I64:
    own = _balanced(what) if what_if.balance else what.own_ns.copy()
    for chosen, per_mille in _factors(what, what_if):
        own[chosen] = np.minimum(LONGEST_NS, (own[chosen] * per_mille + 500) // 1000)
    own[_of_ops(what, what_if.asynchronous) & (what.graph.kind == Node.WAIT)] = 0
    return own


def _factors(what: Replayable, what_if: WhatIf) -> Iterator[tuple[npt.NDArray[np.bool_], int]]:
    """Work nodes and a factor, in the order in which factors are applied to one node."""
    work = what.phase >= 0
    for rank, per_mille in what_if.ranks.items():
        yield work & (what.graph.rank == rank), per_mille
    if "backward" in what_if.phases:
        yield np.isin(what.phase, _PARTS_OF_BACKWARD), what_if.phases["backward"]
    for phase, per_mille in what_if.phases.items():
        if phase != "backward":
            yield what.phase == PHASES.index(phase), per_mille
    for layer, per_mille in what_if.layers.items():
        yield what.layer == layer, per_mille


def _calls(what: Replayable, what_if: WhatIf) -> I64:
    latency = (what.latency_ns * what_if.latency + 500) // 1000
    transfer = (what.transfer_ns * 1000 + what_if.bandwidth // 2) // what_if.bandwidth
    cost: I64 = np.minimum(LONGEST_NS, latency + transfer)
    cost[_of_ops(what, frozenset(what.ops) if what_if.free else what_if.free_ops)] = 0
    return cost


def _of_ops(what: Replayable, ops: frozenset[str]) -> npt.NDArray[np.bool_]:
    return np.isin(what.call, [i for i, op in enumerate(what.ops) if op in ops])


def _balanced(what: Replayable) -> I64:
    """Own times with every piece of work as long as it is in the mean over the ranks that have it."""
    pieces: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for node in np.flatnonzero((what.share >= 0) & (what.own_ns > 0)).tolist():
        pieces[int(what.share[node])][int(what.graph.rank[node])].append(node)
    own = what.own_ns.copy()
    for of_rank in pieces.values():
        whole = sum(int(what.own_ns[nodes].sum()) for nodes in of_rank.values())
        mean = (2 * whole + len(of_rank)) // (2 * len(of_rank))
        for nodes in of_rank.values():
            stretch(own, nodes, mean)
    return own


def stretch(durations: I64, nodes: list[int], whole_ns: int) -> None:
    """Let nodes, in order, take `whole_ns` together, each in proportion to what it took; in place."""
    taken = [int(durations[node]) for node in nodes]
    total, gone = sum(taken), 0
    for node, ns in zip(nodes, taken, strict=True):
        before, gone = gone, gone + ns
        durations[node] = gone * whole_ns // total - before * whole_ns // total


# ---- what a run has not


def _check(what: Replayable, what_if: WhatIf) -> None:
    ranks = {str(r) for r in np.unique(what.graph.rank).tolist()}
    layers = {str(n) for n in np.unique(what.layer[what.layer >= 0]).tolist()}
    phases = {PHASES[n] for n in np.unique(what.phase).tolist() if 0 <= n < len(PHASES)}
    if phases & {"backward_input", "backward_weight"}:
        phases.add("backward")
    named = what_if.free_ops | what_if.asynchronous | what_if.blocking
    for kind, asked, known in (
        ("rank", {str(r) for r in what_if.ranks}, ranks),
        ("phase", set(what_if.phases), phases),
        ("layer", {str(n) for n in what_if.layers}, layers),
        ("operation", named, set(what.ops)),
    ):
        for name in sorted(asked - known):
            raise UserError(
                f"the run '{what.run.id}' has no {kind} {name}", remedy=_nearest(kind, name, known)
            )


def _nearest(kind: str, name: str, known: set[str]) -> str:
    if not known:
        return f"It has no {kind} at all."
    if name.isdecimal():
        nearest = min(known, key=lambda k: (abs(int(k) - int(name)), int(k)))
        return f"The nearest is {nearest}."
    return did_you_mean(name, known)
