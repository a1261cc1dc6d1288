"""The critical path: that it is a path, that it is as long as the step, and what follows from that."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from generator.timeline.critical import CriticalPath, critical_path
from generator.timeline.replay import recorded_schedule
from generator.timeline.whatif import (
    NOTHING,
    PHASES,
    Replayable,
    WhatIf,
    replay_what_if,
    replayable,
    what_if_graph,
)
from tests.committed import calibration_of, ids_with_steps, run
from tests.properties import examples
from tests.timeline.synthetic import Issue, Script, Wait, Work, one_f_one_b, write_run
from tests.timeline.test_whatif import known, made, scripts, what_ifs


def path_of(what: Replayable, what_if: WhatIf = NOTHING) -> CriticalPath:
    return critical_path(what_if_graph(what, what_if), replay_what_if(what, what_if))


def tiles(path: CriticalPath) -> bool:
    """Whether its pieces cover the step, each instant once, and its sums are the step."""
    edges = [0, *(p.end_ns for p in path.pieces)]
    return (
        [p.start_ns for p in path.pieces] == edges[:-1]
        and edges[-1] == path.step_ns
        and all(p.ns > 0 for p in path.pieces)
        and sum(path.composition().values()) == sum(path.by_rank().values()) == path.step_ns
    )


@examples(60)
@given(scripts(), what_ifs())
def test_the_pieces_tile_the_step_under_any_what_if(all_scripts: list[Script], asked: WhatIf) -> None:
    what = made(all_scripts, "isolated")
    what_if = known(asked, what)
    path = path_of(what, what_if)
    assert tiles(path)
    assert path.step_ns == replay_what_if(what, what_if).step_ns
    assert path_of(what, what_if) == path


@examples(40)
@given(scripts())
def test_what_is_not_on_the_path_wins_nothing_and_what_is_on_it_costs_twice_when_doubled(
    all_scripts: list[Script],
) -> None:
    what = made(all_scripts)
    path = path_of(what)
    found = path.composition()
    away = frozenset(what.ops) - found.keys()
    assert replay_what_if(what, WhatIf(free_ops=away)).step_ns == path.step_ns
    for phase in {PHASES[n] for n in np.unique(what.phase) if n >= 0} - found.keys():
        assert replay_what_if(what, WhatIf(phases={phase: 0})).step_ns == path.step_ns
    for phase in PHASES:
        if phase in found and phase not in ("backward", "host"):
            doubled = replay_what_if(what, WhatIf(phases={phase: 2000})).step_ns
            assert doubled >= path.step_ns + found[phase]


def test_the_path_goes_along_the_late_rank_and_a_wait_is_no_piece(tmp_path: Path) -> None:
    both = (0, 1)
    all_scripts = [
        [Work(100), Issue("a", both, 50), Wait("a", 3), Work(20, "optimizer")],
        [Work(300, layer=2), Issue("a", both, 50), Wait("a"), Work(10, "optimizer")],
    ]
    path = path_of(replayable(write_run(tmp_path, all_scripts), mode="recorded"))
    assert [(p.rank, p.start_ns, p.end_ns, p.label) for p in path.pieces] == [
        (1, 0, 300, "forward"),
        (0, 300, 350, "all_reduce"),
        (0, 350, 353, "host"),
        (0, 353, 373, "optimizer"),
    ]
    assert path.pieces[0].layer == 2
    assert path.pieces[1].call == 0
    assert path.composition() == {"forward": 300, "all_reduce": 50, "optimizer": 20, "host": 3}
    assert path.by_rank() == {1: 300, 0: 73}
    assert path.hops == 1


def test_a_pipelines_path_goes_down_the_stages_and_back(tmp_path: Path) -> None:
    p, m = 4, 6
    ours = write_run(tmp_path, one_f_one_b(p, m, [10] * p, [20] * p), stages=p, microbatches=m)
    path = path_of(replayable(ours, mode="recorded"))
    # Down with the first micro-batch, all of the last stage, and up again with the last one.
    assert path.by_rank() == {3: m * 30, 0: 30, 1: 30, 2: 30}
    assert path.composition() == {"backward": (m + p - 1) * 20, "forward": (m + p - 1) * 10}
    assert path.hops == 2 * (p - 1)


def test_a_rank_that_begins_late_is_idle_before(tmp_path: Path) -> None:
    ours = write_run(tmp_path, [[Work(10)], [Work(10)]], begin_ns=[0, 30])
    path = path_of(replayable(ours, mode="recorded"))
    assert [(p.rank, p.ns, p.label) for p in path.pieces] == [(1, 30, "idle"), (1, 10, "forward")]


def test_of_equal_paths_the_lowest_ranks_own_work_is_taken(tmp_path: Path) -> None:
    both = (0, 1)
    script = [Work(100), Issue("a", both, 50), Work(50, "backward"), Wait("a"), Work(5)]
    path = path_of(replayable(write_run(tmp_path, [script, script]), mode="recorded"))
    assert [(p.rank, p.label) for p in path.pieces] == [(0, "forward"), (0, "backward"), (0, "forward")]


@pytest.mark.parametrize("run_id", ids_with_steps())
def test_it_tiles_the_step_of_every_committed_run(run_id: str) -> None:
    ours, calibrated = run(run_id), calibration_of(run_id)
    for mode in ("recorded", "isolated"):
        what = replayable(ours, mode=mode, calibration=calibrated)
        path = path_of(what)
        assert tiles(path)
        # Where it goes over to another rank, a call that both take part in is under way.
        for before, after in pairwise(path.pieces):
            if before.rank != after.rank:
                assert after.call >= 0 or before.call >= 0
    assert tiles(critical_path(what.graph, recorded_schedule(what.graph)))
