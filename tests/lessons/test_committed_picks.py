"""The picks of this book's exercises mean what their texts say, on the runs as they are committed.

What an answer has to be is worked out here from columns and members, without the language of selections.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from generator.book import read_book
from generator.lessons.exercise import Exercise, find_exercises
from generator.lessons.kinds.pick import LANGUAGES, PickQuestion
from generator.lessons.selections import parse_selection, select
from generator.timeline.spans import COMPUTATION, Activity, RankTimeline
from tests.committed import timeline


@pytest.fixture(scope="module")
def exercises(repository: Path) -> dict[str, Exercise]:
    return {e.slug: e for e in find_exercises(read_book(repository))[0]}


def picks(exercise: Exercise, name: str) -> dict[int, list[int]]:
    """Rows that are right, by rank; of gaps, their begin and end."""
    [question] = [q for q in exercise.questions if q.id == name]
    assert isinstance(question, PickQuestion)
    selection = parse_selection(question.answer, language=LANGUAGES[question.what])
    found: dict[int, list[int]] = {}
    for event in select(selection, timeline(exercise.runs[0])):
        where = list(event.rows) or [event.begin_ns, event.end_ns]
        found[event.rank] = found.get(event.rank, []) + where
    return found


def blocks(lane: RankTimeline) -> list[tuple[Activity, int, int, int]]:
    """What a rank computes, in order: activity, micro-batch, begin, end, pieces of one block joined."""
    spans, found = lane.computation, list[tuple[Activity, int, int, int]]()
    for i in np.flatnonzero(np.isin(spans.activity, COMPUTATION)):
        activity, batch = Activity(spans.activity[i]), int(spans.microbatch[i])
        begin, end = int(spans.start_ns[i]), int(spans.end_ns[i])
        if found and found[-1][:2] == (activity, batch):
            begin = found.pop()[2]
        found.append((activity, batch, begin, end))
    return found


def test_the_first_exposed_all_reduce_is_one_call_and_the_first_after_backward(
    exercises: dict[str, Exercise],
) -> None:
    found = picks(exercises["ddp-exposed-communication"], "first-exposed")
    step = timeline("ddp")
    [call] = [i for i, c in enumerate(step.calls) if {m.rank: [m.row] for m in c.members} == found]
    for lane in step.ranks:
        spans = lane.computation
        busy = np.isin(spans.activity, COMPUTATION)
        ends = [next(m.end_ns for m in c.members if m.rank == lane.rank) for c in step.calls]
        begins = [step.calls[0].members[lane.rank].begin_ns, *ends]  # one behind the other
        covered = [
            np.maximum(0, np.minimum(spans.end_ns, end) - np.maximum(spans.start_ns, begin))[busy].sum()
            / (end - begin)
            for begin, end in zip(begins, ends, strict=False)
        ]
        assert min(covered[:call]) > 0.9
        assert 0 < covered[call] < 0.5


def test_the_longest_gap_lies_between_the_last_forward_of_the_warm_up_and_the_first_backward(
    exercises: dict[str, Exercise],
) -> None:
    [(rank, where)] = picks(exercises["one-f-one-b"], "longest-gap").items()
    step = timeline("pp-1f1b")
    assert rank == 0
    order = blocks(step.ranks[0])
    at = next(i for i, block in enumerate(order) if block[0] is Activity.BACKWARD)
    assert [b[0] for b in order[:at]] == [Activity.FORWARD] * step.stages
    assert where == [order[at - 1][3], order[at][2]]
    others = [b[2] - a[3] for a, b in pairwise(order[at:])]
    assert where[1] - where[0] > 2 * max(others)


def test_the_first_gradient_is_that_of_the_last_layer(exercises: dict[str, Exercise]) -> None:
    [(rank, rows)] = picks(exercises["read-a-step"], "first-gradient").items()
    spans = timeline("single").ranks[rank].computation
    backward = (spans.activity == Activity.BACKWARD) & (spans.layer >= 0)
    assert set(spans.layer[np.isin(spans.row, rows)].tolist()) == {int(spans.layer.max())}
    assert int(spans.row[np.flatnonzero(backward)[0]]) in rows
