"""Matching: a call that is missing leaves a gap and shifts nothing."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from pathlib import Path
from random import Random

import pytest

from generator.runs.run import MISSING
from generator.timeline.collectives import Arrival, Match, Verdict, arrivals, match
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


def as_sets(matches: tuple[Match, ...]) -> set[frozenset[tuple[int, int]]]:
    return {frozenset((a.rank, a.call) for a in m.members) for m in matches}


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
