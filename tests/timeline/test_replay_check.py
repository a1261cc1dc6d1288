"""What the replay of recorded durations can show of a graph, and what it cannot."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from generator.timeline.collectives import Match
from generator.timeline.graph import Graph, build
from generator.timeline.reconstruct import graph_of, representative_step, step_wall_ns
from generator.timeline.replay import recorded_durations, replay
from generator.timeline.validation import REPLAY_TOLERANCE, apart
from tests.committed import ids_with_steps, run

SYNCHRONISED = ("tp", "pp-1f1b", "cp-ring", "hsdp", "late-rank")


def error(run_id: str, graph: Graph) -> float:
    """Of the step that a graph gives back with the durations it finds in the recording."""
    ours = run(run_id)
    wall = step_wall_ns(ours, representative_step(ours))
    return replay(graph, recorded_durations(graph)).step_ns / wall - 1


def tied_to_the_next(matches: Sequence[Match], rank: int) -> tuple[Match, ...]:
    """Calls with one rank's part exchanged for its part in the next call of the group; the last is gone."""
    queues: dict[tuple[str, tuple[int, ...]], list[int]] = defaultdict(list)
    for index, match in enumerate(matches):
        if rank in match.expected:
            queues[match.group, match.expected].append(index)
    changed = dict(enumerate(matches))
    for queue in queues.values():
        for index, after in pairwise(queue):
            (part,) = (m for m in matches[after].members if m.rank == rank)
            members = tuple(part if m.rank == rank else m for m in matches[index].members)
            changed[index] = replace(matches[index], members=members)
        del changed[queue[-1]]
    return tuple(changed[index] for index in sorted(changed))


@pytest.mark.parametrize("run_id", SYNCHRONISED)
def test_calls_tied_to_the_wrong_ones_do_not_give_back_the_step(run_id: str) -> None:
    graph = graph_of(run(run_id), representative_step(run(run_id)))
    assert abs(error(run_id, graph)) < 1e-6
    wrong = build(graph.programs, tied_to_the_next(graph.matches, rank=2))
    assert error(run_id, wrong) > REPLAY_TOLERANCE


@pytest.mark.parametrize("run_id", ["single", "zero1-library", *SYNCHRONISED])
def test_edges_between_ranks_are_taken_out_as_if_they_had_never_been(run_id: str) -> None:
    step = representative_step(run(run_id))
    taken_out, built = apart(graph_of(run(run_id), step)), graph_of(run(run_id), step, cross_rank=False)
    assert np.array_equal(taken_out.first, built.first)
    assert np.array_equal(taken_out.predecessors, built.predecessors)


@pytest.mark.parametrize("run_id", [r for r in ids_with_steps() if len(run(r).ranks) > 1])
def test_a_missing_edge_is_not_seen_where_durations_are_found_without_it(run_id: str) -> None:
    """A call then takes all the time from its own rank's arrival. So the site shows another error beside."""
    apart = graph_of(run(run_id), representative_step(run(run_id)), cross_rank=False)
    assert abs(error(run_id, apart)) < 1e-6
