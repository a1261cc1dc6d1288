"""Committed recordings with something taken away or changed, held against independent computations."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

import pytest

from generator.runs.run import MISSING
from generator.timeline.collectives import Arrival, Match, Verdict, arrivals, match
from generator.timeline.graph import Graph, build
from generator.timeline.links import FreeLink, LinkModel, ring_link
from generator.timeline.program import Role
from generator.timeline.reconstruct import graph_of, representative_step
from generator.timeline.replay import isolated_durations, replay, scale_rank
from generator.timeline.validation import validate
from tests.committed import calibration_of, run
from tests.timeline.synthetic import Issue, Script, Wait, Work, end_ns, simulate

PARALLEL = ("ddp", "fsdp", "pp-1f1b", "tp")

# ---- a call that is missing


def as_sets(matches: tuple[Match, ...]) -> set[frozenset[tuple[int, int]]]:
    return {frozenset((a.rank, a.call) for a in m.members) for m in matches}


@pytest.mark.parametrize("numbered", [True, False])
@pytest.mark.parametrize("run_id", PARALLEL)
def test_without_one_members_call_the_verdict_names_it_and_nothing_shifts(
    run_id: str, numbered: bool
) -> None:
    ours = run(run_id)
    step = representative_step(ours)
    calls = list(chain.from_iterable(arrivals(trace, step) for trace in ours.ranks))
    if not numbered:
        calls = [replace(a, seq=MISSING) for a in calls]
    whole = as_sets(match(calls))
    of_rank_2 = [a for a in calls if a.rank == 2 and (numbered or stands_apart(a, calls))]
    assert len(of_rank_2) >= 6
    for gone in of_rank_2[:: len(of_rank_2) // 6]:
        matches = match(a for a in calls if a is not gone)
        wrong = [m for m in matches if m.verdict is not Verdict.MATCHED]
        assert [(m.verdict, m.culprits) for m in wrong] == [(Verdict.MEMBER_MISSING, (2,))]
        expected = {members - {(2, gone.call)} for members in whole}
        assert as_sets(matches) == expected


def stands_apart(call: Arrival, calls: list[Arrival]) -> bool:
    """Whether a call can be told from its likes without a number: by when it ended, to 5 ms."""
    alike = [a for a in calls if lane(a) == lane(call)]
    ends = [abs((a.done_ns or 0) - (call.done_ns or 0)) for a in alike if a is not call]
    return min(ends, default=10**9) > 5_000_000


def lane(call: Arrival) -> tuple[object, ...]:
    return (call.rank, call.group, call.src, call.dst, call.signature)


# ---- other durations, other edges


def test_the_edges_between_ranks_carry_a_pipelines_replay() -> None:
    found = validate(run("pp-1f1b"))
    assert abs(found.median_replay_error_alone) > 0.10


@pytest.mark.parametrize("run_id", PARALLEL)
@pytest.mark.parametrize("rank", [0, 2])
def test_a_rank_twenty_per_cent_slower_shifts_replay_as_an_independent_simulation_says(
    run_id: str, rank: int
) -> None:
    ours = run(run_id)
    calibration = calibration_of(run_id)
    assert calibration is not None
    link = ring_link(calibration)
    graph = graph_of(ours, representative_step(ours))
    durations = isolated_durations(graph, link)
    healthy, slow = replay(graph, durations), replay(graph, scale_rank(graph, durations, rank, 1200))
    assert healthy.step_ns == end_ns(simulate(scripts_of(graph, link)))
    assert slow.step_ns == end_ns(simulate(scripts_of(graph, link, slow=rank)))
    assert slow.step_ns > healthy.step_ns


def scripts_of(graph: Graph, link: LinkModel, slow: int = -1) -> list[Script]:
    """A step as scripts for the simulation of the tests: thread-CPU times, calls priced by a link."""
    keys = {(m.rank, m.call): (i, found) for i, found in enumerate(graph.matches) for m in found.members}
    scripts: list[Script] = []
    for program in graph.programs:
        script: list[Work | Issue | Wait] = []
        for i in range(len(program)):
            ns = int(program.cpu_ns[i])
            if program.rank == slow:
                ns = (ns * 1200 + 500) // 1000
            index, found = keys.get((program.rank, int(program.call[i])), (-1, None))
            if found is None or program.role[i] == Role.WORK:
                script.append(Work(ns))
            elif program.role[i] == Role.WAIT:
                script.append(Wait(str(index)))
            else:
                cost = link.duration_ns(found.op, found.members[0].bytes, len(found.expected))
                script.append(Issue(str(index), found.expected, cost, group=found.group, ns=ns))
        scripts.append(script)
    return scripts


def test_free_communication_leaves_the_work_of_the_busiest_rank() -> None:
    ours = run("ddp")
    graph = graph_of(ours, representative_step(ours), eager=True)
    step = replay(graph, isolated_durations(graph, FreeLink())).step_ns
    own = [int(p.cpu_ns[p.role != Role.WAIT].sum()) for p in graph.programs]
    assert step >= max(own)
    apart = build(graph.programs, graph.matches, cross_rank=False)
    assert replay(apart, isolated_durations(apart, FreeLink())).step_ns == max(own)
