"""Groups whose ranks call them differently, and groups of which little is told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from generator.timeline.collectives import Arrival, Naming, Verdict, match
from tests.timeline.calls import arrival, as_sets, faults, message, without_numbers

ALL = (0, 1, 2)


def calls_of(
    group: str, bytes_: int, start: int, *, ranks: tuple[int, ...] = ALL, every: int = 1000
) -> list[Arrival]:
    """Four all-reduces of one size on each rank, blocking."""
    return [
        arrival(
            rank, start + i, every * i + 7 * rank + start, every * i + 100 + start,
            group=group, ranks=ranks, bytes=bytes_, seq=i,
        )
        for rank in ranks
        for i in range(4)
    ]  # fmt: skip


def renamed(calls: list[Arrival], names: dict[int, str]) -> list[Arrival]:
    return [replace(a, group=names.get(a.rank, a.group)) for a in calls]


@pytest.mark.parametrize("numbered", [True, False])
def test_one_group_under_a_name_a_rank_matches(numbered: bool) -> None:
    calls = renamed(calls_of("0", 64, 0), {1: "mesh_dp", 2: "8f14e45f"})
    found = match(calls if numbered else without_numbers(calls))
    assert faults(found) == []
    assert {m.naming for m in found} == {Naming.MEMBERS}
    # One name for all of them, so that they are one queue: that of the lowest rank.
    assert {m.group for m in found} == {"0"}
    assert as_sets(found) == {frozenset((rank, i) for rank in ALL) for i in range(4)}


def test_under_two_names_a_missing_call_is_still_named() -> None:
    calls = renamed(calls_of("0", 64, 0), {2: "dp"})
    found = match(a for a in calls if (a.rank, a.call) != (2, 1))
    assert faults(found) == [(Verdict.MEMBER_MISSING, (2,))]


def test_groups_with_the_same_members_and_names_that_all_use_stay_apart() -> None:
    """As data parallelism and a mesh of one dimension have them. Each has numbers of its own."""
    found = match(calls_of("dp", 64, 0) + calls_of("mesh", 64, 500))
    assert faults(found) == []
    assert {(m.group, m.naming) for m in found} == {("dp", Naming.NAME), ("mesh", Naming.NAME)}
    assert len(found) == 8


def test_a_name_that_all_use_leaves_the_other_names_for_the_other_group() -> None:
    found = match(calls_of("dp", 64, 0) + renamed(calls_of("a", 64, 500), {1: "b"}))
    assert faults(found) == []
    assert {(m.group, m.naming) for m in found} == {("dp", Naming.NAME), ("a", Naming.MEMBERS)}


@pytest.mark.parametrize("numbered", [True, False])
def test_two_groups_under_several_names_each_are_told_apart_by_their_calls(numbered: bool) -> None:
    gradients = renamed(calls_of("x0", 64, 0), {1: "x1", 2: "x2"})
    metrics = renamed(calls_of("y0", 4, 500), {1: "y1", 2: "y2"})
    calls = gradients + metrics
    found = match(calls if numbered else without_numbers(calls))
    assert faults(found) == []
    assert {m.naming for m in found} == {Naming.CALLS}
    assert all(m.inferred for m in found)
    assert {(m.group, m.bytes, len(m.members)) for m in found} == {("x0", 64, 3), ("y0", 4, 3)}


def test_two_groups_that_nothing_tells_apart_are_guessed_by_time_and_undecided() -> None:
    """Neither wait for each other: any pairing is possible, and the closest is taken."""
    early = renamed(calls_of("x0", 64, 0), {1: "x1", 2: "x2"})
    late = renamed(calls_of("y0", 64, 20), {1: "y1", 2: "y2"})
    found = match(early + late)
    assert {m.naming for m in found} == {Naming.GUESS}
    assert faults(found) == [(Verdict.UNDECIDED, ())] * 8
    assert as_sets(found) == {frozenset((rank, at + i) for rank in ALL) for at in (0, 20) for i in range(4)}


def test_a_group_that_only_one_of_two_ranks_uses_lacks_the_other() -> None:
    shared, lonely = calls_of("dp", 64, 0), [a for a in calls_of("ep", 64, 500) if a.rank == 0]
    found = match(shared + lonely)
    assert faults(found) == [(Verdict.MEMBER_MISSING, (1, 2))] * 4
    assert {m.group for m in found if m.culprits} == {"ep"}


def test_disjoint_groups_of_one_name_and_several_stay_apart() -> None:
    calls = calls_of("tp", 64, 0, ranks=(0, 1))
    calls += renamed(calls_of("tp", 64, 0, ranks=(2, 3)), {3: "model"})
    found = match(calls)
    assert faults(found) == []
    assert {(m.expected, m.naming) for m in found} == {((0, 1), Naming.NAME), ((2, 3), Naming.MEMBERS)}


def test_one_name_for_other_members_on_each_rank_is_no_group() -> None:
    calls = calls_of("tp", 64, 0, ranks=(0, 1))
    odd = [replace(a, ranks=(1, 2)) if a.rank == 1 else a for a in calls]
    assert set(faults(match(odd))) == {(Verdict.MEMBER_MISSING, (1,)), (Verdict.MEMBER_MISSING, (2,))}


def test_members_in_another_order_are_the_same_members() -> None:
    odd = [replace(a, ranks=(2, 0, 1)) if a.rank == 1 else a for a in calls_of("dp", 64, 0)]
    found = match(odd)
    assert faults(found) == []
    assert {m.expected for m in found} == {ALL}


# ---- messages


def messages(names: dict[int, str], members: dict[int, tuple[int, ...]]) -> list[Arrival]:
    return [
        message(rank, i, 100 * i, 0, 1, done_ns=100 * i + 50, group=names[rank], ranks=members[rank], seq=i)
        for rank in (0, 1)
        for i in range(3)
    ]


def test_messages_of_one_group_under_two_names_meet() -> None:
    found = match(messages({0: "pp", 1: "1"}, {0: ALL, 1: ALL}))
    assert faults(found) == []
    assert {m.naming for m in found} == {Naming.MEMBERS}


def test_messages_of_two_groups_do_not_meet() -> None:
    found = match(messages({0: "world", 1: "pp"}, {0: ALL, 1: (0, 1)}))
    assert set(faults(found)) == {(Verdict.MEMBER_MISSING, (0,)), (Verdict.MEMBER_MISSING, (1,))}


# ---- what is not told


def test_members_that_one_rank_does_not_tell_are_those_that_the_others_tell() -> None:
    found = match(replace(a, ranks=()) if a.rank == 2 else a for a in calls_of("dp", 64, 0))
    assert faults(found) == []
    assert {m.naming for m in found} == {Naming.NAME}


def test_of_a_group_whose_members_nobody_tells_all_who_call_are_members() -> None:
    calls = [replace(a, ranks=()) for a in calls_of("", 64, 0)]
    assert faults(match(calls)) == []
    assert {m.naming for m in match(calls)} == {Naming.UNTOLD}
    short = match(a for a in without_numbers(calls) if (a.rank, a.call) != (1, 2))
    assert faults(short) == [(Verdict.MEMBER_MISSING, (1,))]
