"""Alignment without numbers, against an exhaustive search on few calls, and on many."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.timeline.alignment import BAND, Fit, align, fit
from generator.timeline.collectives import Arrival, Verdict, match
from tests.timeline.calls import arrival, as_sets, faults, message


def possible(a: Arrival, b: Arrival) -> bool:
    return a.bytes == b.bytes and all(
        one.done_ns is None or one.done_ns >= other.issue_ns for one, other in ((a, b), (b, a))
    )


def apart(a: Arrival, b: Arrival) -> int:
    if a.done_ns is None or b.done_ns is None:
        return abs(a.issue_ns - b.issue_ns)
    return abs(a.done_ns - b.done_ns)


def exhaustive(one: list[Arrival], other: list[Arrival]) -> Fit:
    """The fewest gaps, and of those alignments the least distance, by trying all of them."""

    @cache
    def best(i: int, j: int) -> tuple[int, int]:
        if i == len(one) or j == len(other):
            return (len(one) - i + len(other) - j, 0)
        skips = [best(i + 1, j), best(i, j + 1)]
        options = [(gaps + 1, far) for gaps, far in skips]
        if possible(one[i], other[j]):
            gaps, far = best(i + 1, j + 1)
            options.append((gaps, far + apart(one[i], other[j])))
        return min(options)

    return Fit(*best(0, 0))


@st.composite
def calls_of_a_rank(draw: st.DrawFn, rank: int) -> list[Arrival]:
    issues = sorted(draw(st.lists(st.integers(0, 60), max_size=7)))
    return [
        arrival(
            rank, i, at,
            draw(st.one_of(st.none(), st.integers(at, at + 30))),
            bytes=draw(st.sampled_from((8, 16))),
        )
        for i, at in enumerate(issues)
    ]  # fmt: skip


@given(calls_of_a_rank(0), calls_of_a_rank(1))
def test_two_ranks_are_aligned_as_an_exhaustive_search_does(one: list[Arrival], other: list[Arrival]) -> None:
    assert fit(one, other) == exhaustive(one, other)


@given(calls_of_a_rank(0), calls_of_a_rank(1), calls_of_a_rank(2))
def test_rows_keep_every_call_and_the_order_of_each_rank(
    first: list[Arrival], second: list[Arrival], third: list[Arrival]
) -> None:
    lists = (first, second, third)
    rows = align([calls for calls in lists if calls] or [[]])
    for rank, calls in enumerate(lists):
        assert [a for row in rows for a in row if a.rank == rank] == calls
    for row in rows:
        assert len({a.rank for a in row}) == len(row)
        ends = [a.done_ns for a in row if a.done_ns is not None]
        assert not ends or min(ends) >= max(a.issue_ns for a in row)


def asynchronous(count: int, ranks: int = 2) -> list[Arrival]:
    """Calls of one size, issued at once and completed one after the other: each may be any by causality."""
    return [
        arrival(rank, i, 10 * i + rank, 10**6 + 1000 * i + 13 * rank, ranks=tuple(range(ranks)))
        for rank in range(ranks)
        for i in range(count)
    ]


@pytest.mark.parametrize("gone", [0, 1, 700, BAND, 1999])
def test_among_thousands_of_calls_that_fit_each_other_the_missing_one_is_found(gone: int) -> None:
    calls = asynchronous(2000, ranks=3)
    found = match(a for a in calls if (a.rank, a.call) != (1, gone))
    assert faults(found) == [(Verdict.MEMBER_MISSING, (1,))]
    assert as_sets(found) == {
        frozenset((rank, i) for rank in range(3) if (rank, i) != (1, gone)) for i in range(2000)
    }


def test_thousands_of_messages_whose_receives_were_all_posted_at_the_start() -> None:
    count, gone = 2000, 1234
    sends = [message(0, i, 1000 * i, 0, 1) for i in range(count) if i != gone]
    receives = [message(1, i, i, 0, 1, done_ns=1000 * i + 10**5) for i in range(count)]
    found = match(sends + receives)
    assert faults(found) == [(Verdict.MEMBER_MISSING, (0,))]
    (lonely,) = (m for m in found if m.culprits)
    # Each receive ends a hundred sends later: that one is missing is certain, and which is not.
    assert lonely.inferred


def test_the_receive_that_is_missing_is_found_by_when_the_others_end() -> None:
    """All were posted at the start, so when they were issued says nothing."""
    sends = [message(0, i, 1000 * i, 0, 1) for i in range(10)]
    receives = [message(1, i, i, 0, 1, done_ns=1000 * i + 30) for i in range(10) if i != 3]
    found = match(sends + receives)
    assert faults(found) == [(Verdict.MEMBER_MISSING, (1,))]
    assert frozenset({(0, 3)}) in as_sets(found)


def test_the_root_of_a_broadcast_may_be_through_before_the_others_come() -> None:
    root = [arrival(0, i, 100 * i, 100 * i + 30, op="broadcast") for i in range(6)]
    others = [arrival(1, i, 100 * i + 50, 100 * i + 60, op="broadcast") for i in range(6) if i != 2]
    found = match(root + others)
    assert faults(found) == [(Verdict.MEMBER_MISSING, (1,))]
    assert as_sets(found) == {frozenset({(0, i)} if i == 2 else {(0, i), (1, i)}) for i in range(6)}


def test_calls_issued_at_one_instant_are_in_the_order_of_their_ids() -> None:
    calls = [arrival(rank, i, 50, bytes=8 + i) for rank in (0, 1) for i in range(4)]
    found = match([*calls[:4], *reversed(calls[4:])])
    assert faults(found) == []
    assert as_sets(found) == {frozenset({(0, i), (1, i)}) for i in range(4)}


def test_a_call_of_another_kind_in_the_same_place_is_a_mismatch_and_no_gap() -> None:
    calls = asynchronous(50, ranks=3)
    odd = [replace(a, bytes=8) if (a.rank, a.call) in {(0, 20), (2, 30)} else a for a in calls]
    assert faults(match(odd)) == [(Verdict.SIZE_MISMATCH, (0,)), (Verdict.SIZE_MISMATCH, (2,))]


def test_calls_of_another_kind_next_to_each_other_pair_up_in_order() -> None:
    calls = asynchronous(10)
    odd = [replace(a, bytes=8) if a.rank == 1 and 4 <= a.call < 7 else a for a in calls]
    matches = match(odd)
    assert {m.verdict for m in matches if 4 <= m.members[0].call < 7} == {Verdict.SIZE_MISMATCH}
    assert as_sets(matches) == {frozenset({(0, i), (1, i)}) for i in range(10)}


def test_numbers_where_some_calls_have_them_hold_the_others_in_their_place() -> None:
    calls = [
        arrival(rank, i, 100 * i + rank, None, seq=i if i % 3 == 0 else -1)
        for rank in (0, 1)
        for i in range(9)
    ]
    found = match(a for a in calls if (a.rank, a.call) != (1, 3))
    assert faults(found) == [(Verdict.MEMBER_MISSING, (1,))]
    assert frozenset({(0, 3)}) in as_sets(found)


def test_calls_of_unlike_numbers_are_not_one_though_both_lack_their_partner() -> None:
    calls = [
        arrival(rank, i, 100 * i + rank, None, seq=-1 if i == 0 else i) for rank in (0, 1) for i in range(6)
    ]
    found = match(a for a in calls if (a.rank, a.call) not in {(0, 4), (1, 3)})
    assert faults(found) == [(Verdict.MEMBER_MISSING, (1,)), (Verdict.MEMBER_MISSING, (0,))]
    assert {frozenset({(0, 3)}), frozenset({(1, 4)})} <= as_sets(found)
