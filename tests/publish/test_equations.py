"""Equations that are read off the code."""

from __future__ import annotations

import math

import pytest

from generator.publish.equations import equation, symbol
from generator.publish.mathml import math as mathml
from generator.timeline.formulas import FORMULAS


def fraction(p: int, m: int) -> float:
    return (p - 1) / (m + p - 1)


def powers(b: int, s: int, h: int) -> int:
    """A docstring is not part of it."""
    return 24 * b * s * h * h + 4 * b * s**2 * h


def differences(n: int, m: int) -> int:
    return n - (m - 1) - 2 * (n + m)


def products(t: int, size: float, rate: float) -> float:
    return 2 * (t - 1) / t * size / rate


def root(forward: float, latency: float) -> float:
    return max(forward / latency, math.sqrt(forward / latency))


def named(s: int, n: int) -> float:
    c = s / n
    return c * (c + 1) / 2


def chosen(h: int, kept: int) -> float:
    return 8 * h if kept else 10 * h


def loop(n: int) -> int:
    total = 0
    for i in range(n):
        total += i
    return total


@pytest.mark.parametrize(
    ("function", "tex"),
    [
        (fraction, r"\frac{p - 1}{m + p - 1}"),
        (powers, r"24 \, b \, s \, h^{2} + 4 \, b \, s^{2} \, h"),
        (differences, r"n - (m - 1) - 2 \, (n + m)"),
        (products, r"\frac{2 \, (t - 1) \, S}{t \, \beta}"),
        (root, r"\max(\frac{F}{\alpha},\; \sqrt{\frac{F}{\alpha}})"),
        (named, r"c \frac{c + 1}{2},\quad c = \frac{s}{n}"),
        (chosen, r"\begin{cases} 8 \, h & \text{if kept} \\ 10 \, h & \text{otherwise} \end{cases}"),
        (loop, ""),
    ],
)
def test_code_is_written_as_an_equation(function: object, tex: str) -> None:
    assert equation(function) == tex  # type: ignore[arg-type]


def test_a_parameter_that_is_a_letter_is_its_own_symbol() -> None:
    assert symbol("p") == "p"
    assert symbol("parameters") == r"\Psi"


@pytest.mark.parametrize("name", FORMULAS)
def test_every_equation_of_the_book_can_be_shown(name: str) -> None:
    tex = equation(FORMULAS[name].function)
    if tex:
        assert str(mathml(tex, display=True)).startswith("<math")


def test_most_formulas_have_an_equation() -> None:
    assert {name for name in FORMULAS if not equation(FORMULAS[name].function)} == {
        "zero_state_bytes",
        "uniform_router_imbalance",
        "expected_slowest",
    }
