"""The runs that are committed, read once for all tests of a process."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import numpy as np

from generator.runs.manifest import FILE_NAME, Batch, Manifest, Model, read_manifest
from generator.runs.reader import read_run, run_ids
from generator.runs.run import I64, Run
from generator.timeline.graph import Graph, Node
from generator.timeline.reconstruct import graph_of, reconstruct, representative_step, timeline_of
from generator.timeline.replay import replay
from generator.timeline.spans import Activity, Timeline

#: Another folder of recordings, to try them before they are committed.
RUNS = Path(os.environ.get("SHARDBOOK_RUNS") or Path(__file__).parent.parent / "measured_runs")


@cache
def run(run_id: str) -> Run:
    return read_run(RUNS / run_id)


@cache
def manifest(run_id: str) -> Manifest:
    return read_manifest(RUNS / run_id / FILE_NAME)


def model(run_id: str) -> Model:
    """Of a training run."""
    found = manifest(run_id).model
    assert found is not None
    return found


def batch(run_id: str) -> Batch:
    """Of a training run."""
    found = manifest(run_id).batch
    assert found is not None
    return found


def ids_with_steps() -> tuple[str, ...]:
    return tuple(r for r in run_ids(RUNS) if manifest(r).has_steps)


def calibration_of(run_id: str) -> Run | None:
    wanted = run(run_id).manifest.link.calibration
    return run(wanted) if wanted else None


@cache
def timeline(run_id: str, mode: str = "isolated", link_model: str = "ring") -> Timeline:
    return reconstruct(run(run_id), mode=mode, link_model=link_model, calibration=calibration_of(run_id))


#: What a piece of a micro-batch's work takes at unit cost.
UNIT_COST = {
    Activity.FORWARD: 1,
    Activity.BACKWARD: 2,
    Activity.BACKWARD_INPUT: 1,
    Activity.BACKWARD_WEIGHT: 1,
}


def unit_costs(graph: Graph) -> I64:
    """Durations of a pipeline's graph: each part of a micro-batch on a stage by UNIT_COST, all else free."""
    durations = np.zeros(len(graph), np.int64)
    for program, lane in zip(graph.programs, graph.lanes, strict=True):
        seen: set[tuple[int, int, int]] = set()
        for node in lane:
            i = graph.segment[node]
            if graph.kind[node] != Node.WORK or program.activity[i] not in UNIT_COST:
                continue
            key = int(program.activity[i]), int(program.microbatch[i]), int(program.chunk[i])
            if key not in seen:
                seen.add(key)
                durations[node] = UNIT_COST[Activity(key[0])]
    return durations


def at_unit_cost(run_id: str) -> Timeline:
    """The recorded graph with free messages, laid out at unit cost."""
    ours = run(run_id)
    step = representative_step(ours)
    graph = graph_of(ours, step, eager=True)
    laid = replay(graph, unit_costs(graph))
    return timeline_of(ours, step, graph, laid, mode="isolated", link_model="free")
