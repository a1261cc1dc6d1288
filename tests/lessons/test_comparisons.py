"""Closed forms against the committed runs: every comparison that the page of validation shows."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import pytest

from generator.lessons.comparing import CLOSE, EXACT, IDEAL, Compared, Comparison, compare
from generator.lessons.comparisons import COMPARISONS
from generator.lessons.expressions import references
from generator.lessons.scope import Scope
from generator.lessons.vocabulary import default_vocabulary
from tests.committed import at_unit_cost, ids_with_steps, manifest, timeline


def scope() -> Scope:
    manifests = {run_id: manifest(run_id) for run_id in ids_with_steps()}
    return Scope("", manifests, timeline, default_vocabulary())


@cache
def found() -> tuple[Compared, ...]:
    return tuple(compare(COMPARISONS, scope(), lambda run, *_: at_unit_cost(run)))


def test_every_comparison_is_made_for_each_of_its_runs() -> None:
    wanted = [(c.what, run) for c in COMPARISONS for run in c.runs]
    assert [(c.comparison.what, c.run) for c in found()] == wanted
    assert len(set(wanted)) == len(wanted)
    assert all(math.isfinite(c.difference) for c in found())


@pytest.mark.parametrize("kind", [EXACT, CLOSE])
def test_formula_and_run_agree(kind: str) -> None:
    checked = [c for c in found() if c.comparison.kind == kind]
    assert len(checked) >= 10
    apart = [(c.comparison.what, c.run, c.difference) for c in checked if not c.agrees]
    assert apart == []


def test_what_is_called_near_or_an_ideal_says_what_the_formula_leaves_out() -> None:
    for c in COMPARISONS:
        assert (c.kind == EXACT) == (not c.leaves_out), c.what


def test_an_ideal_is_not_reached() -> None:
    """Were they near, they should be held to it."""
    ideal = [c for c in found() if c.comparison.kind == IDEAL]
    assert len(ideal) >= 8
    for each in {c.comparison.what for c in ideal}:
        assert max(abs(c.difference) for c in ideal if c.comparison.what == each) > 0.01, each


def test_one_side_is_a_formula_and_the_other_a_measure() -> None:
    vocabulary = default_vocabulary()
    for c in COMPARISONS:
        assert "metric" not in {r.kind for r in references(c.formula, vocabulary)}, c.what
        assert "formula" in {r.kind for r in references(c.formula, vocabulary)}, c.what
        assert "metric" in {r.kind for r in references(c.measured, vocabulary)}, c.what
        assert "formula" not in {r.kind for r in references(c.measured, vocabulary)}, c.what


def test_a_formula_that_is_off_is_seen() -> None:
    right = Comparison("All-reduces", "tp_all_reduces(layers())", "count(op='all_reduce')", ("tp",))
    wrong = replace(right, formula="tp_all_reduces(layers()) + 1")
    near = replace(wrong, within=0.05)
    look = replace(wrong, within=None)
    results = list(compare((right, wrong, near, look), scope(), lambda run, *_: at_unit_cost(run)))
    assert [c.agrees for c in results] == [True, False, True, None]
    assert results[1].difference == pytest.approx(32 / 33 - 1)


def test_runs_that_a_book_does_not_have_are_left_out() -> None:
    only = replace(scope(), manifests={"tp": manifest("tp")})
    assert {c.run for c in compare(COMPARISONS, only, lambda run, *_: at_unit_cost(run))} == {"tp"}


def test_what_a_run_lacks_is_left_out() -> None:
    """Somebody else's run of the same name may have no pipeline, and one rank sends nothing."""
    bubble = Comparison("Bubble", "pipeline_bubble_fraction(4, 8)", "bubble_fraction()", ("tp", "pp-1f1b"))
    none_sent = "element_size() * ddp_wire_elements(parameters(), 1)"
    nothing = Comparison("Bytes", none_sent, "wire_bytes()", ("tp",))
    found = compare((bubble, nothing), scope(), lambda run, *_: at_unit_cost(run))
    assert [c.run for c in found] == ["pp-1f1b"]
