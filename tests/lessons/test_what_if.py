"""What-ifs in expressions: any metric of a step with something changed in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from generator.book import read_book
from generator.errors import UserError
from generator.lessons.expressions import Value, evaluate
from generator.lessons.scope import Scope
from generator.lessons.vocabulary import default_vocabulary
from generator.publish.library import Library
from generator.units import magnitude

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def library() -> Library:
    return Library(read_book(ROOT), lambda _: None)


def ask(expression: str, run_id: str, library: Library) -> Value:
    scope = Scope(run_id, library.manifests, library.timeline, default_vocabulary())
    return evaluate(expression, scope, path=Path("page.md"), line=1)


TRUE = [
    ("ddp", "step_time(what_if='free') < step_time()"),
    ("ddp", "exposed_transfer(what_if='free') == 0"),
    ("ddp", "step_time(what_if='bandwidth=2000') < step_time()"),
    ("ddp", "count(op='all_reduce', what_if='free') == count(op='all_reduce')"),
    ("ddp", "busy(rank=2, what_if='rank2=2000') / busy(rank=2) > 1.99"),
    # The one rank that is late sets the pace: as long as the others, the step is a third shorter.
    ("late-rank", "step_time(what_if='balance') < 0.9 * step_time()"),
    ("tp", "step_time(what_if='async=all_reduce', step=3) < step_time(step=3)"),
    ("tp", "step_time(mode='recorded', what_if='rank0=1000,forward=1500') > step_time(mode='recorded')"),
    ("pp-gpipe", "bubble_fraction(what_if='latency=0') > 0.2"),
]


@pytest.mark.parametrize(("run_id", "statement"), TRUE)
def test_a_metric_of_what_would_be(run_id: str, statement: str, library: Library) -> None:
    assert ask(statement, run_id, library).result is True


@pytest.mark.parametrize(
    ("expression", "label"),
    [
        ("step_time(what_if='free')", "what-if"),
        ("step_time(what_if='free') / step_time()", "what-if"),
        ("wire_bytes(what_if='free')", "formula"),
        ("step_time()", "reconstructed"),
    ],
)
def test_its_label_says_so(expression: str, label: str, library: Library) -> None:
    assert ask(expression, "ddp", library).label == label


def test_the_step_as_it_is_is_not_touched(library: Library) -> None:
    def ns(expression: str) -> float:
        result: Any = ask(expression, "ddp", library).result
        return magnitude(result, "ns")

    before = ns("step_time()")
    assert ns("step_time(what_if='rank1=1500')") > before
    assert ns("step_time()") == before


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("step_time(what_if='fre')", "page.md:1"),
        ("step_time(what_if='rank9=1200')", "rank"),
        ("step_time(what_if='free=all_gather')", "all_gather"),
        ("step_time(what_if='rank1=1000')", "this what-if changes nothing"),
        ("step_time(what_if='')", "this what-if changes nothing"),
        ("step_time(what_if=2)", "'what_if' must be text"),
        ("step_time(what_if='rank1=999999999')", "999999999"),
    ],
)
def test_a_what_if_that_cannot_be_is_one_clear_line(expression: str, message: str, library: Library) -> None:
    with pytest.raises(UserError) as caught:
        ask(expression, "ddp", library)
    assert message in str(caught.value)
    assert str(caught.value).startswith("page.md:1")
    assert caught.value.remedy
    assert ask("step_time() > 0 * ms", "ddp", library).result is True
