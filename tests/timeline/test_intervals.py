"""Interval algebra against a brute force that looks at every nanosecond."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from generator.timeline import intervals

SPAN = 60
pairs = st.lists(st.tuples(st.integers(0, SPAN), st.integers(0, SPAN)), max_size=12)


def covered(raw: list[tuple[int, int]]) -> set[int]:
    return {t for start, end in raw for t in range(start, end)}


def as_set(raw: list[tuple[int, int]]) -> intervals.Intervals:
    return intervals.union([a for a, _ in raw], [b for _, b in raw])


def points(a: intervals.Intervals) -> set[int]:
    return {t for start, end in a.tolist() for t in range(start, end)}


@given(pairs)
def test_union_covers_what_any_interval_covers(raw: list[tuple[int, int]]) -> None:
    result = as_set(raw)
    assert points(result) == covered(raw)
    assert intervals.length(result) == len(covered(raw))


@given(pairs)
def test_union_is_sorted_and_leaves_gaps_between_its_intervals(raw: list[tuple[int, int]]) -> None:
    flat = as_set(raw).ravel()
    assert np.all(np.diff(flat) > 0)


@given(pairs, pairs)
def test_subtract_intersect_and_merge(a: list[tuple[int, int]], b: list[tuple[int, int]]) -> None:
    x, y = as_set(a), as_set(b)
    assert points(intervals.subtract(x, y)) == covered(a) - covered(b)
    assert points(intervals.intersect(x, y)) == covered(a) & covered(b)
    assert points(intervals.merge(x, y)) == covered(a) | covered(b)


@given(pairs, st.integers(0, SPAN), st.integers(0, SPAN))
def test_clip_keeps_what_lies_between_two_times(raw: list[tuple[int, int]], start: int, end: int) -> None:
    assert points(intervals.clip(as_set(raw), start, end)) == covered(raw) & set(range(start, end))
