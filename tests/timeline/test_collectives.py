"""Matching: a call that is missing leaves a gap and shifts nothing."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any

import pytest

from generator.runs.run import MISSING
from generator.timeline.collectives import Arrival, Verdict, arrivals, match
from tests.timeline.calls import arrival, as_sets, faults, message, trace_of, without_numbers
from tests.timeline.synthetic import Issue, Script, Wait, Work, one_f_one_b, write_run

ALL = (0, 1, 2)


def alike_calls(count: int = 6) -> list[Script]:
    """Collectives of one size, one after the other, as tensor parallelism has them."""
    scripts: list[Script] = []
    for rank in ALL:
        script: list[Work | Issue | Wait] = []
        for i in range(count):
            script += [Work(100 + 7 * rank + i), Issue(f"c{i}", ALL, 40), Wait(f"c{i}", rank)]
        scripts.append(script)
    return scripts


def calls_of(folder: Path, scripts: list[Script], *, seq: bool) -> list[Arrival]:
    run = write_run(folder, scripts, seq=seq)
    return list(chain.from_iterable(arrivals(trace, 0) for trace in run.ranks))


@pytest.mark.parametrize("seq", [True, False])
@pytest.mark.parametrize("gone", range(6))
@pytest.mark.parametrize("rank", ALL)
def test_a_missing_member_is_named_and_shifts_nothing(
    tmp_path: Path, seq: bool, gone: int, rank: int
) -> None:
    calls = calls_of(tmp_path, alike_calls(), seq=seq)
    matches = match(a for a in calls if (a.rank, a.call) != (rank, gone))
    incomplete = [m for m in matches if m.verdict is not Verdict.MATCHED]
    assert [(m.verdict, m.culprits) for m in incomplete] == [(Verdict.MEMBER_MISSING, (rank,))]
    others = {frozenset((r, i) for r in ALL if (r, i) != (rank, gone)) for i in range(6)}
    assert as_sets(matches) == others


@pytest.mark.parametrize("seq", [True, False])
def test_matching_does_not_depend_on_the_order_of_ranks_and_events(tmp_path: Path, seq: bool) -> None:
    calls = calls_of(tmp_path, alike_calls(), seq=seq)
    expected = as_sets(match(calls))
    for seed in range(5):
        shuffled = list(calls)
        Random(seed).shuffle(shuffled)
        assert as_sets(match(shuffled)) == expected


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({"op": "broadcast"}, Verdict.TYPE_MISMATCH),
        ({"bytes": 8}, Verdict.SIZE_MISMATCH),
        ({"dtype": "bfloat16"}, Verdict.DTYPE_MISMATCH),
    ],
)
def test_the_rank_that_differs_is_named(
    tmp_path: Path, change: dict[str, str | int], verdict: Verdict
) -> None:
    calls = calls_of(tmp_path, alike_calls(), seq=True)
    odd = [replace(a, **change) if (a.rank, a.call) == (1, 3) else a for a in calls]  # type: ignore[arg-type]
    wrong = [m for m in match(odd) if m.verdict is not Verdict.MATCHED]
    assert [(m.verdict, m.culprits) for m in wrong] == [(verdict, (1,))]


@pytest.mark.parametrize("seq", [True, False])
def test_a_send_without_its_receive_is_named(tmp_path: Path, seq: bool) -> None:
    calls = calls_of(tmp_path, one_f_one_b(3, 4, [50] * 3, [90] * 3, send_ns=5), seq=seq)
    assert all(m.verdict is Verdict.MATCHED for m in match(calls))
    receives = [a for a in calls if a.op == "recv" and a.src == 0]
    gone = receives[1]
    wrong = [m for m in match(a for a in calls if a is not gone) if m.verdict is not Verdict.MATCHED]
    assert [(m.verdict, m.culprits, m.expected) for m in wrong] == [(Verdict.MEMBER_MISSING, (1,), (0, 1))]


def test_disjoint_groups_of_one_name_stay_apart(tmp_path: Path) -> None:
    scripts: list[Script] = [
        [Work(10), Issue(f"{pair}", pair, 5, group="tp"), Wait(f"{pair}")]
        for pair in ((0, 1), (0, 1), (2, 3), (2, 3))
    ]
    matches = match(calls_of(tmp_path, scripts, seq=True))
    assert sorted(m.expected for m in matches) == [(0, 1), (2, 3)]
    assert all(m.verdict is Verdict.MATCHED for m in matches)


def test_without_numbers_the_fast_way_is_checked_against_causality(tmp_path: Path) -> None:
    """Equal lengths do not prove that calls pair up: each rank lacks another one."""
    calls = calls_of(tmp_path, alike_calls(), seq=False)
    kept = [a for a in calls if (a.rank, a.call) not in {(0, 1), (1, 4), (2, 2)}]
    wrong = {m.culprits: m for m in match(kept) if m.verdict is not Verdict.MATCHED}
    assert sorted(wrong) == [(0,), (1,), (2,)]
    assert all(a.seq == MISSING for a in kept)


def all_to_alls(folder: Path, sizes: tuple[int, ...], sent: tuple[int, ...]) -> list[Arrival]:
    """One all-to-all of three ranks: the payload of each, and what each sends to the others."""
    scripts: list[Script] = [[Work(10), Issue("a2a", ALL, 5), Wait("a2a")] for _ in ALL]
    calls = calls_of(folder, scripts, seq=True)
    return [replace(a, op="all_to_all", bytes=sizes[a.rank], sent=sent[a.rank]) for a in calls]


def test_uneven_parts_are_no_mismatch_and_the_largest_is_the_payload(tmp_path: Path) -> None:
    (found,) = match(all_to_alls(tmp_path, (640, 64, 96), (32, 48, 16)))
    assert found.verdict is Verdict.MATCHED
    assert found.bytes == 640


def test_even_parts_of_unlike_size_are_a_mismatch(tmp_path: Path) -> None:
    (found,) = match(all_to_alls(tmp_path, (64, 64, 96), (MISSING, MISSING, MISSING)))
    assert (found.verdict, found.culprits) == (Verdict.SIZE_MISMATCH, (2,))


def test_even_parts_among_uneven_ones_cannot_be_compared(tmp_path: Path) -> None:
    (found,) = match(all_to_alls(tmp_path, (64, 64, 96), (MISSING, MISSING, 16)))
    assert (found.verdict, found.culprits) == (Verdict.UNDECIDED, (2,))


# ---- each verdict


def three(**more: Any) -> list[Arrival]:
    """Three all-reduces of three ranks, each complete and reported by itself."""
    return [
        arrival(rank, i, 100 * i + rank, 100 * i + 50, ranks=ALL, seq=i, done_seen=True, **more)
        for rank in ALL
        for i in range(3)
    ]


def with_one(calls: list[Arrival], rank: int, call: int, **change: Any) -> list[Arrival]:
    return [replace(a, **change) if (a.rank, a.call) == (rank, call) else a for a in calls]


@pytest.mark.parametrize("numbered", [True, False])
@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({"op": "broadcast"}, Verdict.TYPE_MISMATCH),
        ({"bytes": 8}, Verdict.SIZE_MISMATCH),
        ({"dtype": "bfloat16"}, Verdict.DTYPE_MISMATCH),
        ({"done_ns": None, "done_seen": False}, Verdict.STATE_MISMATCH),
        ({"dtype": ""}, Verdict.UNDECIDED),
        ({"bytes": MISSING}, Verdict.UNDECIDED),
        ({"op": ""}, Verdict.UNDECIDED),
    ],
)
def test_a_call_that_differs_is_one_fault_and_names_its_rank(
    numbered: bool, change: dict[str, Any], verdict: Verdict
) -> None:
    calls = three() if numbered else without_numbers(three())
    for rank in ALL:
        matches = match(with_one(calls, rank, 1, **change))
        assert faults(matches) == [(verdict, (rank,))]
        assert as_sets(matches) == {frozenset((r, i) for r in ALL) for i in range(3)}
        assert {m.op for m in matches} == {"all_reduce"}


def test_what_nobody_tells_is_not_compared_but_an_operation_may_be_any() -> None:
    assert faults(match(three(dtype="", bytes=MISSING))) == []
    assert faults(match(three(op=""))) == [(Verdict.UNDECIDED, ALL)] * 3


def test_a_call_that_ended_nowhere_is_the_same_everywhere() -> None:
    calls = [replace(a, done_ns=None, done_seen=False, open=True) if a.call == 2 else a for a in three()]
    matches = match(calls)
    assert faults(matches) == []
    assert [m.unfinished for m in matches] == [(), (), ALL]


def test_an_end_that_was_never_looked_for_is_no_state() -> None:
    """A call that does not report its end, and is not waited for within the step."""
    calls = [replace(a, done_seen=False) for a in three()]
    assert faults(match(with_one(calls, 1, 1, done_ns=None))) == []
    assert faults(match(with_one(calls, 1, 1, done_ns=None, open=True))) == [(Verdict.STATE_MISMATCH, (1,))]


def test_a_rank_that_is_no_member_has_no_place_in_a_call() -> None:
    calls = [*three(), *(replace(a, rank=7) for a in three() if a.rank == 2)]
    assert faults(match(calls)) == [(Verdict.SIZE_MISMATCH, (7,))] * 3


def test_a_message_that_its_receiver_sends_is_against_the_syntax() -> None:
    calls = [message(0, 0, 0, 0, 1), message(1, 0, 5, 0, 1, op="send")]
    assert faults(match(calls)) == [(Verdict.SIZE_MISMATCH, (1,))]


def test_a_message_of_another_size_than_its_receive_without_numbers() -> None:
    calls = [message(0, i, 100 * i, 0, 1) for i in range(3)]
    calls += [message(1, i, 100 * i, 0, 1, done_ns=100 * i + 50) for i in range(3)]
    assert faults(match(with_one(calls, 1, 1, bytes=8))) == [(Verdict.SIZE_MISMATCH, (1,))]


def test_a_missing_member_goes_before_what_the_others_differ_in() -> None:
    calls = [a for a in with_one(three(), 0, 1, bytes=8) if (a.rank, a.call) != (2, 1)]
    assert faults(match(calls)) == [(Verdict.MEMBER_MISSING, (2,))]


# ---- what a rank file says of a call


def event(name: str, ts: float, dur: float | None, **args: Any) -> dict[str, Any]:
    """An event of the step; one that never ended has no duration."""
    return {"ph": "X", "name": name, "ts": ts, "args": args} | ({} if dur is None else {"dur": dur})


def issue(call: int, ts: float) -> dict[str, Any]:
    told = {"op": "all_reduce", "group": "world", "ranks": [0, 1], "dtype": "float32", "bytes": 8}
    return event("all_reduce", ts, 0.5, call=call, step=0, seq=call, **told)


def transfer(call: int, ts: float, dur: float | None) -> dict[str, Any]:
    return event("gloo:all_reduce", ts, dur, call=call) | {"cat": "gloo"}


def read(*events: dict[str, Any]) -> tuple[Arrival, ...]:
    return arrivals(trace_of([event("ProfilerStep#0", 0, 100, step=0), *events]), 0)


def test_a_call_is_complete_when_it_says_so_or_its_first_wait_ends_whatever_was_first() -> None:
    found = read(
        issue(0, 1), transfer(0, 2, 5), event("wait", 3, 2, call=0, step=0),
        issue(1, 11), transfer(1, 12, 5), event("wait", 13, 9, call=1, step=0),
        issue(2, 31), event("wait", 32, 9, call=2, step=0), event("wait", 51, 9, call=2, step=0),
        issue(3, 71),
    )  # fmt: skip
    assert [(a.done_ns, a.done_seen) for a in found] == [
        (5000, True), (17000, True), (41000, False), (None, False),
    ]  # fmt: skip


def test_a_wait_or_a_transfer_without_an_end_leaves_its_call_open() -> None:
    found = read(
        issue(0, 1), transfer(0, 2, None), event("wait", 3, 2, call=0, step=0),
        issue(1, 11), transfer(1, 12, None),
        issue(2, 21), event("wait", 22, None, call=2, step=0),
    )  # fmt: skip
    assert [(a.done_ns, a.open) for a in found] == [(5000, False), (None, True), (None, True)]


def test_a_call_has_the_labels_of_the_innermost_event_around_it() -> None:
    outer = event("forward", 10, 40, step=0, phase="forward", microbatch=3)
    inner = event("layer 2", 20, 10, step=0, phase="forward", module="block", layer=2)
    same = event("layer 4", 60, 10, step=0, phase="backward", module="block", layer=4)
    around = event("backward", 60, 10, step=0, phase="backward")
    for events in ((outer, inner, same, around), (around, same, inner, outer)):
        found = read(*events, *(issue(i, at) for i, at in enumerate((5, 10, 20, 29.9, 30, 50, 65))))
        assert [(a.phase, a.layer, a.microbatch) for a in found] == [
            ("", MISSING, MISSING),
            ("forward", MISSING, 3),
            ("forward", 2, 3),
            ("forward", 2, 3),
            ("forward", MISSING, 3),
            ("", MISSING, MISSING),
            ("backward", 4, MISSING),
        ]
