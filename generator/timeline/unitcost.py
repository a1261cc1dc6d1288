"""A pipeline's recorded order of work at unit cost: the schedule alone, without what a machine adds.

Each part of a micro-batch's work on a stage takes the same time on every stage, messages are free and
so is all else. What is left is what closed forms of schedules speak of.
"""

from __future__ import annotations

import numpy as np

from generator.runs.run import I64, Run
from generator.timeline.graph import Graph, Node
from generator.timeline.reconstruct import graph_of, representative_step, timeline_of
from generator.timeline.replay import replay
from generator.timeline.spans import Activity, Timeline

#: What a part takes, in units of a forward: F = I = W = 1.
UNIT_COST = {
    Activity.FORWARD: 1,
    Activity.BACKWARD: 2,
    Activity.BACKWARD_INPUT: 1,
    Activity.BACKWARD_WEIGHT: 1,
}


def unit_costs(graph: Graph) -> I64:
    """Durations of a graph's nodes: each part of a micro-batch on a stage by UNIT_COST, all else 0."""
    durations = np.zeros(len(graph), np.int64)
    for program, lane in zip(graph.programs, graph.lanes, strict=True):
        seen: set[tuple[int, int, int]] = set()
        for node in lane.tolist():
            i = int(graph.segment[node])
            activity = int(program.activity[i])
            if graph.kind[node] != Node.WORK or activity not in UNIT_COST:
                continue
            part = activity, int(program.microbatch[i]), int(program.chunk[i])
            if part not in seen:
                # The whole of it at its first piece: in between there are only calls, which are free.
                seen.add(part)
                durations[node] = UNIT_COST[Activity(activity)]
    return durations


def at_unit_cost(run: Run) -> Timeline:
    """The representative step of a pipeline, laid out at unit cost with free messages; "ns" are units."""
    step = representative_step(run)
    graph = graph_of(run, step, eager=True)
    laid = replay(graph, unit_costs(graph))
    return timeline_of(run, step, graph, laid, mode="isolated", link_model="free")
