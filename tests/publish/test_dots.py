"""Dot plots: marks lie where their numbers are, and no word lies on a mark."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.publish.figures import dots
from generator.publish.figures.dots import Axis, Dot, linear, logarithmic, strip
from generator.publish.show import number
from tests.publish.html_pages import Parsed

numbers = st.floats(-1000, 1000, allow_nan=False)


def marks(svg: str) -> list[tuple[float, float]]:
    """Where marks are: per cent of the width, px from above."""
    found = [a for tag, a in Parsed(svg).elements if tag == "use"]
    return [(float(a["x"].rstrip("%")), float(a["y"])) for a in found]


def words(svg: str) -> dict[str, float]:
    """Words and where they begin or end, per cent."""
    texts = re.findall(r'<text x="([\d.]+)%"[^>]*>([^<]*)</text>', svg)
    return {text: float(x) for x, text in texts}


@given(st.lists(numbers, min_size=1, max_size=20))
def test_an_axis_has_round_ticks_around_all_numbers(values: list[float]) -> None:
    axis = linear(values, str)
    # What is beyond by less than anybody sees needs no further tick.
    hair = 1e-8 * (axis.high - axis.low)
    assert axis.low <= min(values) + hair
    assert axis.high >= max(values) - hair
    assert 2 <= len(axis.ticks) <= 7
    steps = {round(b - a, 9) for (a, _), (b, _) in zip(axis.ticks, axis.ticks[1:], strict=False)}
    assert len(steps) == 1
    assert all(0 <= axis.part(v) <= 1 for v in values)


def test_zero_is_a_tick_where_the_axis_has_it() -> None:
    axis = linear([-0.31, 0.05], lambda v: number(v, 1))
    assert (axis.low, axis.high) == pytest.approx((-0.4, 0.1))
    assert 0.0 in [tick for tick, _ in axis.ticks]


def test_powers_of_ten_are_equally_far_apart_and_what_is_below_lies_at_the_edge() -> None:
    axis = logarithmic(-8, -5, str)
    parts = [axis.part(10.0**k) for k in range(-8, -4)]
    assert parts == pytest.approx([0, 1 / 3, 2 / 3, 1])
    assert axis.part(0.0) == 0


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60))
def test_every_dot_is_drawn_at_its_number_and_two_only_touch_when_there_is_no_room(
    values: list[float],
) -> None:
    found = [Dot(v, f"run {i}") for i, v in enumerate(values)]
    svg = strip(Axis(0.0, 1.0, ((0.0, "0"), (1.0, "1"))), found, "A strip")
    placed = marks(svg)
    assert sorted(x for x, _ in placed) == pytest.approx(sorted(100 * v for v in values), abs=0.006)
    over = [x for x, y in placed for other, at in placed
            if at == y and 0 < 3 * (x - other) < 8 - 0.05]  # fmt: skip
    for x in over:
        # Each of the five levels had a mark too near already.
        assert sum(0 <= 3 * (x - other) < 8 + 0.05 for other, _ in placed) > 5


def test_dots_over_each_other_are_counted() -> None:
    axis = Axis(-1.0, 1.0, ((0.0, "0"),))
    svg = strip(axis, [Dot(0.0, f"run {i}") for i in range(42)], "All at zero")
    assert words(svg) == {"42 runs": 50.0}
    assert len(marks(svg)) == 42
    few = strip(axis, [Dot(0.0, f"run {i}") for i in range(3)], "Three")
    assert words(few) == {}


def test_the_outermost_dots_are_named_where_there_is_room() -> None:
    axis = Axis(-1.0, 1.0, ((0.0, "0"),))
    found = [Dot(0.0, "middle"), Dot(-0.9, "left"), Dot(0.95, "right"), Dot(0.94, "beside")]
    named = words(strip(axis, found, "Four", counted=""))
    # The rightmost one's name would lie on the mark beside it.
    assert named.keys() == {"left", "beside"}
    assert 'text-anchor="end"' in strip(axis, [Dot(0.95, "right")], "One")
    assert words(strip(axis, found, "None", named=0)) == {}


@given(st.lists(st.tuples(st.floats(0, 1), st.text("abcdef-", min_size=1, max_size=20)), max_size=30))
def test_no_word_lies_on_a_mark_of_another_number(values: list[tuple[float, str]]) -> None:
    axis = Axis(0.0, 1.0, ((0.0, "0"),))
    svg = strip(axis, [Dot(v, name) for v, name in values], "A strip", named=3)
    for attributes, text in re.findall(r"<text ([^>]*)>([^<]*)</text>", svg):
        given = dict(re.findall(r'([\w-]+)="([^"]*)"', attributes))
        begin, y = float(given["x"].rstrip("%")), given["y"]
        room = 100 * dots.text_width(text, 11) / 300
        low, high = (begin - room, begin) if given["text-anchor"] == "end" else (begin, begin + room)
        beside = [x for x, at in marks(svg) if abs(at - (float(y) - 4)) < 8 and x != begin]
        assert not [x for x in beside if low < x < high]


def test_a_strip_as_a_picture(gold: Callable[[str, str], None]) -> None:
    axis = linear([-0.26, 0.0, 0.05], lambda v: f"{number(100 * v)} %")
    found = [Dot(-0.26, "pp-1f1b", "reconstructed"), *(Dot(-0.001 * i, f"run {i}") for i in range(9))]
    svg = strip(axis, found, "Error of ten runs", band=(-0.05, 0.05)) + dots.axis_picture(axis)
    gold("strip.svg", svg.replace("><", ">\n<") + "\n")


def test_what_is_promised_is_shaded_and_everything_is_named_for_those_who_do_not_see() -> None:
    axis = Axis(-0.1, 0.1, ((0.0, "0"),))
    (band,) = Parsed(strip(axis, [Dot(0.0, "a")], "Error of <all>", band=(-0.05, 0.05))).all("rect")
    assert (band["x"], band["width"]) == ("25%", "50%")
    (svg,) = Parsed(strip(axis, [Dot(0.0, "a")], "Error of <all>")).all("svg")
    assert (svg["role"], svg["aria-label"]) == ("img", "Error of <all>")


def test_a_mark_says_where_its_number_comes_from() -> None:
    axis = Axis(0.0, 10.0, ((0.0, "0"),))
    found = [Dot(1.0, "a"), Dot(2.0, "b", "reconstructed"), Dot(3.0, "c", "formula")]
    drawn = dots.line(axis, found, "Three", span=(0.5, 4.0))
    shapes = {a["id"] for tag, a in Parsed(dots.symbols()).elements if tag == "g"}
    used = [a["href"].lstrip("#") for tag, a in Parsed(drawn).elements if tag == "use"]
    assert used == ["mark-disc", "mark-half", "mark-diamond"]
    assert set(used) <= shapes
    (span, rail) = (a for a in Parsed(drawn).all("line") if a["class"] in ("span", "rail"))
    assert (span["x1"], span["x2"]) == ("5%", "40%")
    assert (rail["x1"], rail["x2"]) == ("10%", "30%")
