"""The language of `focus`: which events are meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from generator.errors import UserError
from generator.lessons.predicates import match_calls, match_spans, matches, parse_predicate
from tests.lessons.small import ddp


@pytest.mark.parametrize(
    ("text", "labels", "meant"),
    [
        ("phase == 'backward' and layer == 3", {"phase": "backward", "layer": 3}, True),
        ("phase == 'backward' and layer == 3", {"phase": "backward", "layer": 4}, False),
        ("phase == 'backward' or op == 'send'", {"op": "send"}, True),
        ("not phase == 'forward'", {"phase": "backward"}, True),
        ("layer in (0, 7)", {"layer": 7}, True),
        ("phase == 'backward'", {"phase": "backward_weight"}, True),
        ("phase != 'backward'", {"phase": "backward_input"}, False),
        ("phase in ('forward', 'backward')", {"phase": "backward_input"}, True),
        ("phase == 'backward_input'", {"phase": "backward_weight"}, False),
        ("phase == 'backward_input'", {"phase": "backward_input"}, True),
        ("phase == 'backward_input'", {"phase": "backward"}, False),
        ("'backward' == phase", {"phase": "backward_input"}, True),
        ("'backward_input' == phase", {"phase": "backward"}, False),
        ("module == 'head'", {"module": "head"}, True),
        ("module == 'head'", {"layer": 3}, False),
        ("layer not in (0, 7)", {"layer": 7}, False),
        ("2 <= layer < 4", {"layer": 3}, True),
        ("2 <= layer < 4", {"layer": 4}, False),
        ("group == 'stage 0 to 1'", {"group": "stage 0 to 1"}, True),
        ("layer < 3", {"layer": -1}, False),
        ("layer < 3", {"layer": None}, False),
        ("layer == 3", {}, False),
        ("layer != 3", {}, True),
        ("", {"phase": "forward"}, False),
    ],
)
def test_a_predicate_means_the_events_that_it_describes(
    text: str, labels: dict[str, str | int | None], meant: bool
) -> None:
    assert matches(parse_predicate(text), **labels) is meant


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "phas == 'backward'",
            "unknown label 'phas' in \"phas == 'backward'\" (character 1). Did you mean 'phase'?",
        ),
        ("layer == 1 and phase == 'backwards'", "unknown phase 'backwards'"),
        ("op == 'all-reduce'", "Did you mean 'all_reduce'?"),
        ("activity == 'block'", "Did you mean 'blocked'?"),
        ("module == 'heads'", "Did you mean 'head'?"),
        ("layer == 'three'", "'layer' is a whole number"),
        ("phase == 3", "'phase' is text"),
        ("phase < 'forward'", "'phase' is text and has no order"),
        ("layer in 3", "'in' needs a list"),
        ("layer == (1, 2)", "a list is compared"),
        ("layer", "a label is not compared"),
        ("1 == 1", "a comparison needs one label"),
        ("layer == rank", "a comparison needs one label"),
        ("step_time() == 3", "is not part of the language"),
        ("phase.upper() == 'A'", "is not part of the language"),
        ("phase ==", "cannot be read"),
    ],
)
def test_a_predicate_that_means_nothing_is_refused_with_its_place(text: str, says: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_predicate(text, path=Path("ex.md"), line=7)
    assert str(caught.value).startswith("ex.md:7: ")
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("phase == 'backward'", [False, True, True, True, False]),
        ("activity == 'backward'", [False, True, True, False, False]),
        ("phase == 'backward' and layer == 3", [False, False, True, False, False]),
        ("op == 'all_reduce'", [False, False, False, True, False]),
        ("rank == 1", [False] * 5),
        ("rank == 0", [True] * 5),
    ],
)
def test_spans_of_a_lane_are_matched(text: str, spans: list[bool]) -> None:
    timeline = ddp()
    assert match_spans(parse_predicate(text), timeline, timeline.ranks[0]).tolist() == spans


def test_embedding_and_head_can_be_pointed_to() -> None:
    timeline = ddp()
    spans = timeline.ranks[0].computation
    spans.module[:] = [0, 2, 1, -1, -1]
    marked = match_spans(parse_predicate("module in ('embedding', 'head')"), timeline, timeline.ranks[0])
    assert marked.tolist() == [True, True, False, False, False]


def test_calls_are_matched_for_a_rank_that_takes_part() -> None:
    timeline = ddp()
    last = parse_predicate("op == 'all_reduce' and layer <= 5 and rank == 1")
    assert match_calls(last, timeline, 1).tolist() == [False, False, True]
    assert match_calls(last, timeline, 0).tolist() == [False, False, False]
    assert match_calls(parse_predicate("op == 'all_reduce'"), timeline, 9).tolist() == [False] * 3
