"""Which events of a timeline a selection means."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from generator.errors import UserError
from generator.lessons import events
from generator.lessons.predicates import EVENTS, GAPS, Language
from generator.lessons.selections import Selection, candidates, parse_selection, select
from generator.timeline.spans import Activity, Timeline
from tests.lessons.small import MS, ddp, lane

F, B, HOST, BLOCKED, OPT = (
    Activity.FORWARD, Activity.BACKWARD, Activity.HOST, Activity.BLOCKED, Activity.OPTIMIZER,
)  # fmt: skip


def meant(text: str, timeline: Timeline | None = None, language: Language = EVENTS) -> list[tuple[int, ...]]:
    """Rank and rows of what a selection means."""
    found = select(parse_selection(text, language=language), timeline or ddp())
    return [(e.rank, *e.rows) for e in found]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("phase == 'backward' and rank == 0", [(0, 1, 2)]),
        ("activity == 'backward' and rank == 0", [(0, 1, 2)]),
        ("phase == 'backward' and layer == 3", [(0, 2), (1, 2)]),
        ("activity == 'blocked'", [(0, 3), (1, 3)]),
        ("op == 'all_reduce' and rank == 1", [(1, 100), (1, 101), (1, 102)]),
        ("op == 'all_reduce' and layer <= 5 and rank == 1", [(1, 102)]),
        ("exposed > 0.5", [(0, 102), (1, 102)]),
        ("op == 'send'", []),
        ("first(op == 'all_reduce')", [(0, 100), (1, 100)]),
        ("last(op == 'all_reduce' and rank == 0)", [(0, 102)]),
        ("rest(op == 'all_reduce' and rank == 0)", [(0, 101), (0, 102)]),
        ("longest(op == 'all_reduce' and rank == 0)", [(0, 102)]),
        ("first(op == 'all_reduce' and exposed > 0.5)", [(0, 102), (1, 102)]),
        ("first(phase == 'backward' and layer > 2 and rank == 0)", [(0, 1)]),
        ("longest(rank == 0)", [(0, 1, 2)]),
        ("shortest(rank == 0)", [(0, 4)]),
        ("first()", [(0, 0), (1, 0)]),
        ("phase == 'optimizer' or exposed == 1", [(0, 102), (0, 4), (1, 102), (1, 4)]),
        ("", []),
    ],
)
def test_a_selection_means_events(text: str, found: list[tuple[int, ...]]) -> None:
    assert meant(text) == found


def test_a_layer_that_is_cut_by_waits_is_one_event() -> None:
    spans = [
        (F, 0.0, 10.0, 0, -1),
        (F, 10.0, 20.0, 1, -1),
        (BLOCKED, 20.0, 25.0, -1, -1),
        (F, 25.0, 30.0, 1, -1),
    ]
    only = lane(0, [*spans, (B, 30.0, 44.0, 1, -1)])
    only.computation.row[3] = 1  # the same layer goes on
    timeline = Timeline("one", "isolated", "", 2, 44 * MS, (only,), (), 1, 1)
    assert meant("layer == 1 and phase == 'forward'", timeline) == [(0, 1)]
    [longest] = select(parse_selection("longest(layer >= 0)"), timeline)
    assert (longest.rows, longest.begin_ns, longest.end_ns) == ((1,), 10 * MS, 30 * MS)


def test_embedding_and_head_can_be_pointed_to() -> None:
    timeline = ddp()
    timeline.ranks[0].computation.module[:] = [0, 2, 1, -1, -1]
    assert meant("module in ('embedding', 'head')", timeline) == [(0, 0), (0, 1)]


def test_how_much_of_a_call_is_exposed() -> None:
    found = [(e.rank, e.call, e.labels["exposed"]) for e in events.calls(ddp())]
    assert found == [(r, *call) for r in (0, 1) for call in ((0, 0.0), (1, 0.0), (2, 1.0))]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("rank == 0", [(0, 70.0, 90.4)]),
        ("after == 'backward' and before == 'optimizer'", [(0, 70.0, 90.4), (1, 70.0, 90.4)]),
        ("after == 'forward'", []),
        ("longest(rank == 1)", [(1, 70.0, 90.4)]),
    ],
)
def test_a_gap_is_where_a_rank_computes_nothing(text: str, found: list[tuple[int, float, float]]) -> None:
    gaps = select(parse_selection(text, language=GAPS), ddp())
    assert [(g.rank, g.begin_ns / MS, g.end_ns / MS) for g in gaps] == found
    assert all(not g.rows for g in gaps)


def test_gaps_at_the_edges_have_one_neighbour_and_host_work_fills_none() -> None:
    only = lane(
        0,
        [
            (BLOCKED, 0.0, 10.0, -1, -1), (F, 10.0, 20.0, 0, -1), (BLOCKED, 20.0, 24.0, -1, -1),
            (HOST, 24.0, 24.5, -1, -1), (BLOCKED, 24.5, 30.0, -1, -1), (B, 30.0, 40.0, 0, -1),
            (HOST, 40.0, 40.02, -1, -1), (OPT, 40.02, 44.0, -1, -1), (Activity.IDLE, 44.0, 50.0, -1, -1),
        ],
    )  # fmt: skip
    timeline = Timeline("one", "isolated", "", 2, 50 * MS, (only,), (), 1, 1)
    found = [
        (g.begin_ns / MS, g.end_ns / MS, g.labels["after"], g.labels["before"]) for g in events.gaps(timeline)
    ]
    assert found == [(0, 10, None, "forward"), (20, 30, "forward", "backward"), (44, 50, "optimizer", None)]


def test_an_order_is_over_what_its_labels_are_of() -> None:
    def kinds(text: str) -> tuple[int, set[int]]:
        found = candidates(parse_selection(text), ddp())
        return len(found), {len(e.rows) for e in found}

    assert kinds("first(phase == 'backward')") == (6, {1, 2})  # blocks: of each rank three
    assert kinds("first(layer >= 0)") == (8, {1})  # pieces of layers, and the optimizer
    assert kinds("first(op == 'all_reduce')") == (12, {1, 2})  # blocks and calls


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("frist(layer == 3)", "unknown function 'frist'"),
        ("frist(layer == 3)", "Did you mean 'first'?"),
        ("first(last(layer == 3))", "a function stands inside a predicate"),
        ("layer == 3 and first(rank == 0)", "a function stands inside a predicate"),
        ("first(layer == 3, 2)", "'first' takes one predicate"),
        ("first(layer=3)", "'first' takes one predicate"),
        ("first(layers == 3)", "Did you mean 'layer'?"),
        ("first.last(layer == 3)", "is not part of the language"),
        ("__import__('os')", "unknown function '__import__'"),
        ("(lambda: 1)()", "is not part of the language"),
    ],
)
def test_a_selection_that_means_nothing_is_refused_with_its_place(text: str, says: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_selection(text, path=Path("ex.md"), line=7)
    assert str(caught.value).startswith("ex.md:7: ")
    assert says in str(caught.value)


def test_an_empty_selection_is_false() -> None:
    assert not parse_selection(" ")
    assert isinstance(parse_selection("rank == 0"), Selection)
    assert parse_selection("rank == 0")
    assert select(parse_selection(""), ddp()) == ()
    assert np.shape(candidates(parse_selection("rank == 0", language=GAPS), ddp())) == (2,)
