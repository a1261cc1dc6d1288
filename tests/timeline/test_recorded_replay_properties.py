"""The replay of recorded durations, on runs whose recordings contradict themselves nowhere: it is exact."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from generator.timeline.graph import Node
from generator.timeline.reconstruct import graph_of, reconstruct
from generator.timeline.replay import recorded_durations, recorded_schedule, replay
from generator.timeline.spans import Activity
from generator.timeline.validation import validate
from tests.properties import examples
from tests.timeline.synthetic import Issue, Script, Wait, Work, end_ns, simulate, write_run

PHASES = ("forward", "backward", "optimizer")
ns = st.integers(1, 900)
lags = st.integers(0, 9)


@st.composite
def scripts(draw: st.DrawFn, *, reported: bool) -> list[Script]:
    """Ranks that issue collectives of any group and messages, in one order, and wait for them when they like.

    With `reported` every call tells when it was complete; else only some do, and messages never.
    """
    ranks = draw(st.integers(2, 4))
    out: list[list[Work | Issue | Wait]] = [[Work(draw(ns))] for _ in range(ranks)]
    waiting: list[list[str]] = [[] for _ in range(ranks)]
    for i in range(draw(st.integers(0, 6))):
        members = draw(st.lists(st.integers(0, ranks - 1), min_size=2, max_size=ranks, unique=True))
        message = draw(st.booleans())
        group = tuple(members[:2]) if message else tuple(sorted(members))
        cost = draw(ns)
        for place, rank in enumerate(group):
            op = ("send", "recv")[place] if message else "all_reduce"
            tells = reported or (not message and draw(st.booleans()))
            name = f"{'p' if message else 'g'}{group}"
            out[rank].append(Issue(f"c{i}", group, cost, op, group=name, reported=tells, ns=draw(lags)))
            waiting[rank].append(f"c{i}")
            out[rank].append(Work(draw(ns), draw(st.sampled_from(PHASES))))
            while waiting[rank] and draw(st.booleans()):
                out[rank].append(Wait(waiting[rank].pop(0), draw(lags)))
    for script, keys in zip(out, waiting, strict=True):
        script += [Wait(key, draw(lags)) for key in keys]
    return list(out)


begins = st.lists(st.integers(0, 400), min_size=4, max_size=4)


@examples(80)
@given(scripts(reported=True), begins)
def test_every_piece_of_a_step_is_replayed_where_it_was_recorded(
    all_scripts: Sequence[Script], begin: list[int]
) -> None:
    with TemporaryDirectory() as folder:
        run = write_run(Path(folder), all_scripts, begin_ns=begin[: len(all_scripts)])
    graph = graph_of(run, 0)
    recorded = recorded_schedule(graph)
    laid = replay(graph, recorded_durations(graph))
    assert np.array_equal(laid.end_ns, recorded.end_ns)
    found = validate(run)
    assert found.replay_error == (0.0,)
    assert found.moved_ns == (0,)
    assert found.matched == found.calls
    assert found.early == 0


@examples(80)
@given(scripts(reported=False), begins)
def test_the_step_is_replayed_where_only_waits_tell_when_calls_were_complete(
    all_scripts: Sequence[Script], begin: list[int]
) -> None:
    begin = begin[: len(all_scripts)]
    with TemporaryDirectory() as folder:
        run = write_run(Path(folder), all_scripts, begin_ns=begin)
    graph = graph_of(run, 0)
    expected = end_ns(simulate(all_scripts, begin)) - min(begin)
    assert replay(graph, recorded_durations(graph)).step_ns == expected


@examples(40)
@given(scripts(reported=True), begins)
def test_a_recorded_timeline_has_the_work_that_was_done(
    all_scripts: Sequence[Script], begin: list[int]
) -> None:
    """Against an independent simulation: each rank's lanes, to the nanosecond."""
    begin = begin[: len(all_scripts)]
    with TemporaryDirectory() as folder:
        run = write_run(Path(folder), all_scripts, begin_ns=begin)
    timeline = reconstruct(run, mode="recorded")
    for laid, lane in zip(simulate(all_scripts, begin), timeline.ranks, strict=True):
        spans = lane.computation
        for phase in PHASES:
            done = sum(end - start for item, start, end in laid.items
                       if isinstance(item, Work) and item.phase == phase)  # fmt: skip
            chosen = spans.activity == Activity[phase.upper()]
            assert int((spans.end_ns - spans.start_ns)[chosen].sum()) == done
        blocked = sum(
            max(0, min(end, laid.done[item.key]) - start)
            for item, start, end in laid.items
            if isinstance(item, Wait)
        )
        chosen = spans.activity == Activity.BLOCKED
        assert int((spans.end_ns - spans.start_ns)[chosen].sum()) == blocked
    graph = graph_of(run, 0)
    assert np.count_nonzero(graph.kind == Node.DONE) == sum(len(c.members) for c in timeline.calls)
