"""What a pick is worth. The cases are those that the browser's grading is held to as well."""

from __future__ import annotations

import json
from typing import Any

import pytest

from generator.lessons.picking import judge, marks_of, overlap, picks
from generator.lessons.predicates import GAPS
from generator.lessons.selections import parse_selection, select
from tests.lessons.small import DATA, ddp

FIXTURE = json.loads((DATA / "picks.json").read_text("utf-8"))


@pytest.mark.parametrize("case", FIXTURE["cases"], ids=[c["title"] for c in FIXTURE["cases"]])
def test_a_pick_is_judged(case: dict[str, Any]) -> None:
    found = judge(FIXTURE["keys"][case["key"]], case["picked"])
    assert (found.state, found.title, list(found.html)) == (case["state"], case["says"], case["html"])


def test_marks_are_rows_of_a_rank_and_times_of_a_gap() -> None:
    events = select(parse_selection("phase == 'optimizer' or op == 'all_reduce' and rank == 1"), ddp())
    assert marks_of("event", events) == ((0, 4), (1, 4, 100, 101, 102))
    gaps = select(parse_selection("rank == 1", language=GAPS), ddp())
    assert marks_of("gap", gaps) == ((1, 70_000_000, 90_400_000),)


def test_every_mark_can_be_picked() -> None:
    assert list(picks("event", ((0, 1, 2), (1, 3)))) == [
        {"rank": 0, "rows": [1]},
        {"rank": 0, "rows": [2]},
        {"rank": 1, "rows": [3]},
    ]
    assert list(picks("gap", ((1, 5, 9),), "recorded")) == [
        {"rank": 1, "from": 5, "to": 9, "mode": "recorded"}
    ]
    assert list(picks("rank", ((2,), (3,)))) == [{"rank": 2}, {"rank": 3}]


@pytest.mark.parametrize(
    ("what", "a", "b", "common"),
    [
        ("event", ((0, 1, 2),), ((0, 2, 3),), True),
        ("event", ((0, 1, 2),), ((1, 2, 3),), False),
        ("gap", ((0, 0, 10),), ((0, 4, 20),), True),
        ("gap", ((0, 0, 10),), ((0, 10, 20),), False),
        ("rank", ((0,),), ((0,),), True),
        ("rank", ((0,),), ((1,),), False),
    ],
)
def test_marks_overlap_where_they_share_something(what: str, a: Any, b: Any, common: bool) -> None:
    assert overlap(what, a, b) is common
