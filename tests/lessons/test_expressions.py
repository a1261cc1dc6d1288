"""The language of answers: what it computes, what it refuses, and where its numbers come from."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.errors import UserError
from generator.lessons.expressions import evaluate, references
from generator.units import magnitude, show
from tests.lessons.small import VOCABULARY, scope
from tests.properties import examples


def number(text: str, unit: str = "") -> float:
    result = evaluate(text, scope()).result
    assert not isinstance(result, bool)
    return magnitude(result, unit)


def refusal(text: str) -> str:
    with pytest.raises(UserError) as caught:
        evaluate(text, scope(), path=Path("ex.md"), line=7)
    assert caught.value.remedy
    told = str(caught.value)
    assert told.startswith("ex.md:7: ")
    return told


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("count()", 3),
        ("count(op='all_reduce') * 2 // 4", 1),
        ("exposed_comm(rank=0) / comm_time(rank=0)", 20.4 / 50.4),
        ("step_time(run='single') / step_time()", 180 / 100.4),
        ("step_time(mode='recorded') / (1 * ms)", 150),
        ("pipeline_bubble_fraction(4, 8)", 3 / 11),
        ("pipeline_bubble_fraction(p=world_size(), m=layers())", 1 / 9),
        ("max(parameters(rank='each')) - min(parameters(rank='each'))", 200),
        ("sum(parameters(rank='each')) - parameters()", 0),
        ("mean(busy(rank='each')) / busy()", 1),
        ("round(10 / 4)", 2),
        ("abs(2 - 5)", 3),
        ("2 ** 10", 1024),
        ("-count() + 5", 2),
        ("(busy(phase='backward') + busy(phase='forward')) / (1 * ms)", 70),
    ],
)
def test_an_expression_comes_to_its_value(text: str, value: float) -> None:
    assert number(text) == pytest.approx(value, rel=1e-12)


def test_a_count_stays_a_whole_number() -> None:
    assert isinstance(number("count() * layers()"), int)


def test_values_carry_their_units() -> None:
    assert number("ring_bytes(world_size(), payload_bytes())", "B") == 3000
    assert number("payload_bytes() / link_rate()", "us") == pytest.approx(12)
    assert show(evaluate("comm_time(rank=0)", scope()).result) == "50.4\u2009ms"


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("step_time() > 100 * ms", True),
        ("step_time() > 101 * ms", False),
        ("count() == 3 and layers() == 8", True),
        ("count() == 4 or not true", False),
        ("1 < count() <= 3", True),
        ("comm_time(run='single') == 0", True),
        ("0 < comm_time()", True),
        ("false", False),
    ],
)
def test_a_comparison_is_true_or_false(text: str, truth: bool) -> None:
    assert evaluate(text, scope()).result is truth


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("pipeline_bubble_fraction(4, 8) * layers()", "formula"),
        ("2 + 2", "formula"),
        ("count() / layers()", "recorded"),
        ("count() + pipeline_bubble_fraction(4, 8)", "recorded"),
        ("step_time(mode='recorded')", "recorded"),
        ("payload_bytes()", "recorded"),
        ("step_time()", "reconstructed"),
        ("step_time() / step_time(mode='recorded')", "reconstructed"),
        ("exposed_comm() > 0 and count() == 3", "reconstructed"),
    ],
)
def test_a_value_knows_where_it_comes_from(text: str, label: str) -> None:
    assert evaluate(text, scope()).label == label


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "step_tim()",
            "unknown metric 'step_tim' in \"step_tim()\" (character 1). Did you mean 'step_time'?",
        ),
        ("1 + step_tim()", "(character 5)"),
        ("step_time", "'step_time' is not called"),
        (
            "comm_time(rnk=0)",
            "comm_time takes no 'rnk' in \"comm_time(rnk=0)\" (character 11). Did you mean 'rank'?",
        ),
        ("comm_time(0)", "comm_time takes named arguments only"),
        ("comm_time(op='allreduce')", "unknown op 'allreduce'"),
        ("comm_time(op=3)", "'op' must be text"),
        ("busy(phase='forwrad')", "Did you mean 'forward'?"),
        ("step_time(mode='recoded')", "unknown mode 'recoded'"),
        ("step_time(run='singel')", "unknown run 'singel'"),
        ("step_time(run='link')", "the run 'link' is a calibration and has no steps"),
        ("comm_time(rank=5)", "there is no rank 5 in the run 'ddp'"),
        ("parameters(rank=2)", "there is no rank 2 in the run 'ddp'"),
        ("comm_time(rank=-1)", "'rank' must be a whole number or 'each'"),
        ("comm_time(rank=count())", "'rank' must be a whole number or 'each'"),
        ("comm_time(rank='all')", "'rank' must be a whole number or 'each'"),
        ("comm_time(rank='each')", "has one value a rank"),
        ("comm_time(rank='each') / step_time()", "has one value a rank"),
        ("layers(mode='recorded')", "layers takes no 'mode'"),
        ("step_time() + count()", "a time and a pure number are mixed"),
        ("step_time() == count()", "a time and a pure number are mixed"),
        ("max(step_time(), count())", "are mixed"),
        ("count() / (count() - 3)", "divides by zero"),
        ("count() / comm_time(run='single')", "divides by zero"),
        ("strange()", "does not come to a finite number"),
        ("1e999", "does not come to a finite number"),
        ("10**9**64", "a power is too large"),
        ("count() ** step_time()", "an exponent has a unit"),
        ("(0 - 8) ** 0.5", "the root of a negative number"),
        ("round(step_time())", "rounds a value with a unit"),
        ("count() and true", "a number stands where true or false is needed"),
        ("true + 1", "calculates with true or false"),
        ("True", "'True' is not a word of the language"),
        ("pipeline_bubble_fraction(4)", "needs 2 values"),
        ("pipeline_bubble_fraction(0, 1 - 0)", "divides by zero"),
        ("pipeline_bubble_fraction(p='4', m=8)", "calculates with text"),
        ("abs()", "abs needs a value"),
        ("round(1.5, 1)", "round takes one value"),
        ("'text'", "text stands alone"),
        ("1 +", "cannot be read"),
        ("", "there is nothing to compute"),
        ("1j", "neither a number nor text"),
        ("max(count(run='µ€'), step_tim())", "(character 22)"),
    ],
)
def test_what_cannot_be_computed_is_refused_with_its_place(text: str, says: str) -> None:
    assert says in refusal(text)


@pytest.mark.parametrize(
    "text",
    [
        "(1).__class__",
        "step_time().magnitude",
        "step_time.__globals__",
        "().__class__.__bases__[0].__subclasses__()",
        "__import__('os').system('true')",
        "eval('1')",
        "getattr(1, 'real')",
        "[x for x in range(10)]",
        "sum(x for x in range(10**9))",
        "{1: 2}",
        "[1][0]",
        "(lambda: 1)()",
        "(x := 5)",
        "f'{step_time()}'",
        "'a' * 10**9",
        "9**9**9",
        "2**10000",
        "1 << 100000",
        "1 if true else 2",
        "1 is 1",
        "max(*step_time())",
        "step_time(**layers())",
        "1; 2",
        "count()\n\nimport os",
        "(" * 300 + "1" + ")" * 300,
        "1" + "+1" * 200,
        "1" + "+1" * 1000,
        "-" * 500 + "1",
        "9" * 5000,
    ],
)
def test_nothing_but_the_language_is_evaluated(text: str) -> None:
    assert "ex.md:7: " in refusal(text)


@examples(200)
@given(st.text(alphabet="abcsort_time()[]{}'\".,*+-/<>=!: \n0123456789@\\µ…", max_size=40))
def test_any_text_gives_a_value_or_one_clear_line(text: str) -> None:
    try:
        evaluate(text, scope(), path=Path("ex.md"), line=7)
    except UserError as error:
        told = str(error)
    else:
        told = "ex.md:7: none"
    assert told.startswith("ex.md:7: ")
    assert "\n" not in told


@given(
    st.recursive(
        st.integers(0, 50).map(str),
        lambda inner: st.tuples(inner, st.sampled_from("+-*"), inner).map(
            lambda t: f"({t[0]} {t[1]} {t[2]})"
        ),
        max_leaves=12,
    )
)
def test_arithmetic_is_that_of_whole_numbers(text: str) -> None:
    def compute(node: ast.expr) -> int:
        if isinstance(node, ast.Constant):
            assert isinstance(node.value, int)
            return node.value
        assert isinstance(node, ast.BinOp)
        a, b = compute(node.left), compute(node.right)
        return a + b if isinstance(node.op, ast.Add) else a - b if isinstance(node.op, ast.Sub) else a * b

    assert number(text) == compute(ast.parse(text, mode="eval").body)


def test_references_are_found_without_computing() -> None:
    found = references("count(run='single') / layers() + pipeline_bubble_fraction(4, 8)", VOCABULARY)
    assert {(r.name, r.kind, r.run) for r in found} == {
        ("count", "metric", "single"),
        ("layers", "fact", ""),
        ("pipeline_bubble_fraction", "formula", ""),
    }
