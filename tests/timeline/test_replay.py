"""Replay against independent simulations and closed forms."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.runs.run import Run
from generator.timeline.graph import Node
from generator.timeline.links import FreeLink
from generator.timeline.metrics import METRICS
from generator.timeline.reconstruct import graph_of, reconstruct, timeline_of
from generator.timeline.replay import isolated_durations, recorded_durations, replay, scale_rank
from tests.properties import examples
from tests.timeline.synthetic import Issue, Script, Wait, Work, end_ns, one_f_one_b, simulate, write_run

RANKS = 3
ns = st.integers(0, 500)


@st.composite
def scripts(draw: st.DrawFn) -> list[Script]:
    """Ranks that compute, issue the same collectives in the same order and wait for them later."""
    calls = draw(st.integers(0, 4))
    costs = [draw(ns) for _ in range(calls)]
    out: list[Script] = []
    for _ in range(RANKS):
        script: list[Work | Issue | Wait] = [Work(draw(st.integers(1, 500)))]
        open_calls: list[str] = []
        for i in range(calls):
            script.append(Issue(f"c{i}", tuple(range(RANKS)), costs[i], ns=draw(st.integers(0, 5))))
            open_calls.append(f"c{i}")
            script.append(Work(draw(st.integers(1, 500)), "backward"))
            if draw(st.booleans()):
                script.append(Wait(open_calls.pop(0), draw(st.integers(0, 9))))
        script += [Wait(key, draw(st.integers(0, 9))) for key in open_calls]
        out.append(script)
    return out


def run_of(all_scripts: list[Script], **more: object) -> Run:
    with TemporaryDirectory() as folder:
        return write_run(Path(folder), all_scripts, **more)  # type: ignore[arg-type]


@examples(60)
@given(scripts(), st.lists(st.integers(0, 50), min_size=RANKS, max_size=RANKS))
def test_replay_with_recorded_durations_gives_back_a_consistent_run(
    all_scripts: list[Script], begin: list[int]
) -> None:
    run = run_of(all_scripts, begin_ns=begin)
    graph = graph_of(run, 0)
    expected = end_ns(simulate(all_scripts, begin)) - min(begin)
    assert replay(graph, recorded_durations(graph)).step_ns == expected
    assert reconstruct(run, mode="recorded").step_ns == expected


@examples(40)
@given(scripts(), st.integers(0, 10_000), st.integers(0, 400))
def test_longer_durations_never_end_earlier(all_scripts: list[Script], pick: int, more: int) -> None:
    graph = graph_of(run_of(all_scripts), 0)
    durations = recorded_durations(graph)
    longer = durations.copy()
    longer[pick % len(longer)] += more
    assert np.all(replay(graph, longer).end_ns >= replay(graph, durations).end_ns)


@examples(40)
@given(scripts())
def test_every_instant_of_a_rank_belongs_to_one_span(all_scripts: list[Script]) -> None:
    timeline = reconstruct(run_of(all_scripts), mode="recorded")
    for rank in timeline.ranks:
        spans = rank.computation
        assert spans.start_ns[0] == 0
        assert spans.end_ns[-1] == timeline.step_ns
        assert np.array_equal(spans.start_ns[1:], spans.end_ns[:-1])


@examples(25)
@given(scripts(), st.integers(0, RANKS - 1), st.integers(1000, 3000))
def test_a_slower_rank_shifts_replay_as_the_simulation_says(
    all_scripts: list[Script], rank: int, per_mille: int
) -> None:
    run = run_of(all_scripts)
    graph = graph_of(run, 0)
    slower = [list(s) for s in all_scripts]
    slower[rank] = [_scaled(item, per_mille) for item in all_scripts[rank]]
    durations = scale_rank(graph, recorded_durations(graph), rank, per_mille)
    assert replay(graph, durations).step_ns == end_ns(simulate(slower))


def _scaled(item: Work | Issue | Wait, per_mille: int) -> Work | Issue | Wait:
    if isinstance(item, Work):
        return Work((item.ns * per_mille + 500) // 1000, item.phase)
    if isinstance(item, Issue):
        scaled = (item.ns * per_mille + 500) // 1000
        return Issue(item.key, item.ranks, item.cost_ns, ns=scaled)
    return item


@pytest.mark.parametrize(("p", "m"), [(2, 2), (4, 8), (4, 16), (3, 7)])
def test_one_f_one_b_with_unit_costs_has_the_bubble_of_the_closed_form(
    tmp_path: Path, p: int, m: int
) -> None:
    run = write_run(tmp_path, one_f_one_b(p, m, [1000] * p, [2000] * p), stages=p, microbatches=m)
    timeline = reconstruct(run, mode="recorded")
    assert METRICS["bubble_fraction"](timeline) == pytest.approx((p - 1) / (m + p - 1), rel=1e-12)
    assert METRICS["bubble_overhead"](timeline) == pytest.approx((p - 1) / m, rel=1e-12)


def test_unequal_stages_as_the_simulation_says(tmp_path: Path) -> None:
    forward, backward = [10, 13, 9, 20], [21, 25, 18, 41]
    scripts_ = one_f_one_b(4, 6, forward, backward, send_ns=3)
    run = write_run(tmp_path, scripts_, stages=4, microbatches=6)
    assert reconstruct(run, mode="recorded").step_ns == end_ns(simulate(scripts_))


def test_isolated_mode_takes_the_threads_own_time(tmp_path: Path) -> None:
    both = (0, 1)
    scripts_ = [
        [Work(100, cpu_ns=60), Issue("a", both, 50), Wait("a", 7)],
        [Work(300, cpu_ns=90), Issue("a", both, 50), Wait("a", 0)],
    ]
    graph = graph_of(write_run(tmp_path, scripts_), 0, eager=True)
    assert replay(graph, isolated_durations(graph, FreeLink())).step_ns == 90


def test_a_late_rank_waits_least(tmp_path: Path) -> None:
    both = (0, 1)
    scripts_ = [[Work(100), Issue("a", both, 50), Wait("a")], [Work(300), Issue("a", both, 50), Wait("a")]]
    timeline = reconstruct(write_run(tmp_path, scripts_), mode="recorded")
    wait, transfer = METRICS["wait"], METRICS["transfer"]
    assert [wait(timeline, rank=r) for r in both] == [200, 0]
    assert [transfer(timeline, rank=r) for r in both] == [50, 50]
    assert METRICS["blocked"](timeline, rank=0) == 250


def test_without_edges_between_ranks_nobody_waits_for_a_late_one(tmp_path: Path) -> None:
    both = (0, 1)
    scripts_ = [
        [Work(100), Issue("a", both, 50), Wait("a"), Work(500)],
        [Work(300), Issue("a", both, 50), Wait("a")],
    ]
    run = write_run(tmp_path, scripts_)
    joined, apart = graph_of(run, 0), graph_of(run, 0, cross_rank=False)
    durations = recorded_durations(joined)
    assert replay(joined, durations).step_ns == 850
    assert replay(apart, durations).step_ns == 650


def test_a_wakeup_after_the_end_is_host_time_of_that_rank(tmp_path: Path) -> None:
    both = (0, 1)
    scripts_ = [
        [Work(100), Issue("a", both, 50), Wait("a", 30)],
        [Work(100), Issue("a", both, 50), Wait("a")],
    ]
    timeline = reconstruct(write_run(tmp_path, scripts_), mode="recorded")
    assert METRICS["blocked"](timeline, rank=0) == 50
    assert timeline.step_ns == 180


def test_the_graph_has_one_arrival_and_one_completion_a_member(tmp_path: Path) -> None:
    run = write_run(tmp_path, one_f_one_b(3, 4, [5] * 3, [9] * 3, send_ns=1), stages=3, microbatches=4)
    graph = graph_of(run, 0)
    members = sum(len(m.members) for m in graph.matches)
    assert np.count_nonzero(graph.kind == Node.ARRIVE) == members
    assert np.count_nonzero(graph.kind == Node.DONE) == members
    schedule = replay(graph, recorded_durations(graph))
    timeline = timeline_of(run, 0, graph, schedule, mode="recorded", link_model="")
    assert len(timeline.calls) == 2 * 2 * 4
