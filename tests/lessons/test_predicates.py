"""The language of `focus`: which events are meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from generator.errors import UserError
from generator.lessons.predicates import GAPS, matches, parse_predicate


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
    ("text", "labels", "meant"),
    [
        ("exposed > 0.5", {"exposed": 0.6}, True),
        ("exposed > 0.5", {"exposed": 0.5}, False),
        ("exposed == 0", {"exposed": 0.0}, True),
        ("exposed < 1", {}, False),
    ],
)
def test_a_call_has_a_share_that_is_exposed(
    text: str, labels: dict[str, str | int | float | None], meant: bool
) -> None:
    assert matches(parse_predicate(text), **labels) is meant


@pytest.mark.parametrize("text", ["exposed > 2", "exposed > '50 %'", "exposed == true", "exposed > -1"])
def test_a_share_lies_between_0_and_1(text: str) -> None:
    with pytest.raises(UserError):
        parse_predicate(text)


def test_a_gap_has_the_labels_of_its_edges_only() -> None:
    gap = parse_predicate("after == 'forward' and rank == 0", language=GAPS)
    assert matches(gap, rank=0, after="forward", before="backward")
    assert not matches(gap, rank=0, after=None, before="forward")
    with pytest.raises(UserError, match="unknown label 'layer'"):
        parse_predicate("layer == 3", language=GAPS)
