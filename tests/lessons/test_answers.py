"""Answers are computed from the runs, and what is asked keeps its identity when runs are recorded anew."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from generator.book import Book
from generator.errors import Problems
from generator.lessons.answers import ResolvedChoice, ResolvedExercise, ResolvedNumber, resolve
from generator.lessons.exercise import Exercise, Prose, TimelineFigure, find_exercises
from generator.lessons.kinds.common import numbers_in
from generator.lessons.kinds.tolerance import read_tolerance
from generator.timeline.spans import Timeline
from tests.lessons.small import DATA, EXERCISE, copy_book, scope, timelines


def exercise(book: Book | None = None) -> Exercise:
    return find_exercises(book or Book(root=DATA / "book", title=""))[0][1]


def parts(
    resolved: ResolvedExercise,
) -> tuple[Prose, TimelineFigure, ResolvedNumber, ResolvedNumber, ResolvedChoice]:
    prose, figure, first, second, third = resolved.blocks
    assert isinstance(prose, Prose)
    assert isinstance(figure, TimelineFigure)
    assert isinstance(first, ResolvedNumber)
    assert isinstance(second, ResolvedNumber)
    assert isinstance(third, ResolvedChoice)
    return prose, figure, first, second, third


def test_a_number_has_its_answer_range_and_misconceptions() -> None:
    _, _, share, _, _ = parts(resolve(exercise(), scope()))
    exact = 20.4 / 100.4 * 100
    assert share.key == "exposed-communication/exposed-share"
    assert share.value == pytest.approx(exact)
    assert (share.low, share.high) == (pytest.approx(0.95 * exact), pytest.approx(1.05 * exact))
    assert share.shown == "20.3\u2009%"
    assert share.label == "reconstructed"
    assert share.expression == "exposed_comm(rank=0) / step_time()"
    first, second = share.misconceptions
    assert first.low < 50.4 / 100.4 * 100 < first.high
    assert first.say.startswith("That is *all* communication (50.4\u2009ms).")
    assert second.shown == "40.5\u2009%"


def test_a_count_is_asked_for_exactly() -> None:
    _, _, _, buckets, _ = parts(resolve(exercise(), scope()))
    assert (buckets.low, buckets.value, buckets.high) == (3, 3, 3)
    assert buckets.shown == "3"
    assert buckets.label == "recorded"


def test_a_choice_knows_its_right_options() -> None:
    *_, choice = parts(resolve(exercise(), scope()))
    assert [o.correct for o in choice.options] == [True, True, False]
    assert choice.many
    assert choice.options[0].why == "100.4\u2009ms against 180\u2009ms."
    assert choice.label == "reconstructed"


def test_texts_have_their_numbers_and_keep_their_markup() -> None:
    resolved = resolve(exercise(), scope())
    prose, figure, share, _, choice = parts(resolved)
    assert "20.4\u2009ms of 50.4\u2009ms is left." in prose.markdown
    assert '{1, 2}, code keeps its braces: `{"a": 1}`, and so does $\\frac{p-1}{m}$.' in prose.markdown
    assert 'sizes = {"bucket": 1}' in prose.markdown
    assert figure.caption == "The step takes 100.4\u2009ms."
    assert share.explain.endswith("20.4\u2009ms of 50.4\u2009ms is left.")
    assert resolved.summary.startswith("3 all-reduces")
    assert "250\u2009MB/s" in resolved.cluster
    assert choice.options[2].text == 'It holds less than <script>alert("{}")</script>'


def test_markup_in_an_option_shows_as_text() -> None:
    *_, choice = parts(resolve(exercise(), scope()))
    html = MarkdownIt("commonmark", {"html": False}).render(choice.options[2].text)
    assert "&lt;script&gt;alert(&quot;{}&quot;)&lt;/script&gt;" in html


def slower(run: str, mode: str) -> Timeline:
    timeline = timelines(run, mode)
    return replace(timeline, step_ns=timeline.step_ns + 7_000_000)


def test_another_recording_keeps_the_identity_of_a_question() -> None:
    before = parts(resolve(exercise(), scope()))[2:]
    after = parts(resolve(exercise(), replace(scope(), timelines=slower)))[2:]
    assert [q.hash for q in after] == [q.hash for q in before]
    assert after[0].value != before[0].value
    assert len({q.hash for q in before}) == 3
    assert all(len(q.hash) == 16 and int(q.hash, 16) >= 0 for q in before)


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("What share of the step", "Which share of the step", [True, False, False]),
        ("answer = \"count(op='all_reduce')\"", 'answer = "count()"', [False, True, False]),
        ('text = "It communicates"', 'text = "It talks"', [False, False, True]),
        ("comm_time() > 0 and", "0 < comm_time() and", [False, False, True]),
        ('tolerance = "5 %"', 'tolerance = "4 %"', [False, False, False]),
        ("Compare the lengths.", "Look at the lengths.", [False, False, False]),
        ("One a bucket.", "One for each bucket.", [False, False, False]),
        ('why = "Every rank holds everything."', 'why = "Each holds everything."', [False, False, False]),
    ],
)
def test_the_hash_is_over_what_is_asked(old: str, new: str, changed: list[bool], tmp_path: Path) -> None:
    before = parts(resolve(exercise(), scope()))[2:]
    book = copy_book(tmp_path)
    path = book.root / EXERCISE
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")
    after = parts(resolve(exercise(book), scope()))[2:]
    assert [a.hash != b.hash for a, b in zip(after, before, strict=True)] == changed


def test_all_that_cannot_be_computed_is_told(tmp_path: Path) -> None:
    book = copy_book(tmp_path)
    path = book.root / EXERCISE
    text = path.read_text("utf-8").replace("count(op=", "cuont(op=")
    path.write_text(text, "utf-8")
    with pytest.raises(Problems) as caught:
        resolve(exercise(book), scope())
    lines = text.splitlines()
    told = [lines[(p.line or 1) - 1] for p in caught.value.problems]
    assert len(told) == 2
    assert all("cuont" in line for line in told)


@pytest.mark.parametrize(
    ("text", "unit", "value", "low", "high"),
    [
        ("5 %", "%", 40.0, 38.0, 42.0),
        ("5%", "ms", 40.0, 38.0, 42.0),
        ("5 pp", "%", 40.0, 35.0, 45.0),
        ("2 ms", "ms", 40.0, 38.0, 42.0),
        ("500 us", "ms", 40.0, 39.5, 40.5),
        ("0.5", "", 40.0, 39.5, 40.5),
        ("0", "", 40.0, 40.0, 40.0),
        ("1 MB", "B", 0.0, -1e6, 1e6),
        ("10 %", "ms", -40.0, -44.0, -36.0),
    ],
)
def test_a_tolerance_is_relative_in_points_or_a_distance(
    text: str, unit: str, value: float, low: float, high: float
) -> None:
    assert read_tolerance(text, unit).around(value) == (pytest.approx(low), pytest.approx(high))


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("about 5 %", "%"),
        ("", "ms"),
        ("-5 %", "%"),
        ("0 %", "ms"),
        ("100 %", "ms"),
        ("5", "ms"),
        ("5 pp", "ms"),
        ("2 ms", "%"),
        ("2 ms", "B"),
        ("2 lightyears", "ms"),
        ("0.01", "%"),
        ("nan", ""),
        ("inf %", ""),
    ],
)
def test_a_tolerance_that_cannot_be_used_is_refused(text: str, unit: str) -> None:
    with pytest.raises(ValueError, match="tolerance"):
        read_tolerance(text, unit)


@given(st.floats(-1e9, 1e9), st.floats(0.1, 99))
def test_a_value_is_always_within_its_own_tolerance(value: float, percent: float) -> None:
    low, high = read_tolerance(f"{percent:.3f} %", "ms").around(value)
    assert low <= value <= high
    assert high - low == pytest.approx(2 * abs(value) * round(percent, 3) / 100, abs=1e-6)


def test_numbers_in_a_text_are_found_however_they_are_written() -> None:
    assert list(numbers_in("1\u2009234 ms, −5, 6.5 and 7 of 12,345")) == ["1234", "-5", "6.5", "7", "12345"]
