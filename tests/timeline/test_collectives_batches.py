"""Coalesced collectives and batches of messages: several calls of a rank at once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from generator.runs.run import MISSING
from generator.timeline.collectives import Arrival, Pairing, Verdict, arrivals, match
from tests.timeline.calls import arrival, as_sets, faults, message, trace_of, without_numbers

SIZES = (512, 256, 256, 64)


def blocks(count: int = 3) -> list[Arrival]:
    """Two ranks that gather four tensors at once, `count` times: one number and one end for the four."""
    return [
        arrival(
            rank, 10 * block + part, 1000 * block + 100 * rank + part, 1000 * block + 500,
            op="all_gather", bytes=size, seq=block,
        )
        for rank in (0, 1)
        for block in range(count)
        for part, size in enumerate(SIZES)
    ]  # fmt: skip


def test_parts_of_one_number_match_in_order() -> None:
    matches = match(blocks())
    assert faults(matches) == []
    assert [(m.members[0].seq, m.part) for m in matches] == [(b, p) for b in range(3) for p in range(4)]
    assert as_sets(matches) == {
        frozenset({(0, 10 * block + part), (1, 10 * block + part)}) for block in range(3) for part in range(4)
    }
    assert not any(m.inferred for m in matches)


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("part", range(4))
def test_a_missing_part_is_named_and_shifts_neither_parts_nor_blocks(rank: int, part: int) -> None:
    matches = match(a for a in blocks() if (a.rank, a.call) != (rank, 10 + part))
    assert faults(matches) == [(Verdict.MEMBER_MISSING, (rank,))]
    (short,) = (m for m in matches if m.verdict is Verdict.MEMBER_MISSING)
    assert (short.members[0].seq, short.bytes) == (1, SIZES[part])
    # Which part is missing is told by its kind alone.
    assert short.pairing is Pairing.ORDER
    others = [m for m in matches if m.members[0].seq != 1]
    assert {m.pairing for m in others} == {Pairing.NUMBER}


def test_parts_in_another_order_are_a_mismatch_as_the_communicator_takes_them_in_turn() -> None:
    swapped = {0: 1, 1: 0}
    calls = [
        replace(a, bytes=SIZES[swapped.get(a.call % 10, a.call % 10)]) if a.rank == 1 and a.seq == 1 else a
        for a in blocks()
    ]
    assert faults(match(calls)) == [(Verdict.SIZE_MISMATCH, (1,)), (Verdict.SIZE_MISMATCH, (1,))]


def test_a_whole_block_that_is_missing_is_one_fault_a_part() -> None:
    matches = match(a for a in blocks() if (a.rank, a.seq) != (1, 1))
    assert faults(matches) == [(Verdict.MEMBER_MISSING, (1,))] * 4


def test_blocks_without_numbers_match_by_order() -> None:
    matches = match(without_numbers(blocks()))
    assert as_sets(matches) == as_sets(match(blocks()))
    assert all(m.inferred for m in matches)


def test_parts_of_a_block_end_together_though_not_all_are_waited_for() -> None:
    common = {"step": 0, "op": "all_gather", "group": "world", "ranks": [0, 1], "dtype": "float32"}
    events = [
        {"ph": "X", "name": "ProfilerStep#0", "ts": 0, "dur": 20, "args": {"step": 0}},
        *(
            {"ph": "X", "name": "all_gather", "ts": 1 + i, "dur": 0.5,
             "args": common | {"call": i, "seq": i // 3, "bytes": 8}}
            for i in range(6)
        ),
        {"ph": "X", "name": "wait", "ts": 8, "dur": 2, "args": {"step": 0, "call": 2}},
        {"ph": "X", "name": "wait", "ts": 12, "dur": 1, "args": {"step": 0, "call": 1}},
    ]  # fmt: skip
    found = arrivals(trace_of(events), 0)
    # The last of them that was seen: the work is one, and its end was seen late.
    assert [a.done_ns for a in found] == [13000, 13000, 10000, None, None, None]


# ---- batches of messages


def ring(order: dict[int, tuple[str, str]], seq: int = MISSING) -> list[Arrival]:
    """Three ranks that each send to the next and receive from the one before, twice, in one batch a time.

    `order`: which of the two each rank issues first.
    """
    calls = []
    for rank, kinds in order.items():
        for batch in range(2):
            for i, kind in enumerate(kinds):
                src, dst = (rank, (rank + 1) % 3) if kind == "send" else ((rank - 1) % 3, rank)
                at = 1000 * batch + 10 * rank + i
                number = seq if seq == MISSING else seq + batch
                calls.append(
                    message(rank, 2 * batch + i, at, src, dst, done_ns=1000 * batch + 500, seq=number)
                )
    return calls


@pytest.mark.parametrize("seq", [MISSING, 0, 7])
def test_messages_of_a_batch_meet_whatever_order_they_were_issued_in(seq: int) -> None:
    matches = match(ring({0: ("send", "recv"), 1: ("recv", "send"), 2: ("send", "recv")}, seq))
    assert faults(matches) == []
    assert sorted(m.expected for m in matches) == [(0, 1), (0, 1), (1, 2), (1, 2), (2, 0), (2, 0)]
    for m in matches:
        send, recv = sorted(m.members, key=lambda a: a.op, reverse=True)
        assert (send.op, recv.op, send.rank, recv.rank) == ("send", "recv", *m.expected)
        assert send.call // 2 == recv.call // 2


@pytest.mark.parametrize("seq", [MISSING, 0])
def test_a_receive_that_a_batch_lacks_is_named(seq: int) -> None:
    calls = ring({0: ("send", "recv"), 1: ("recv", "send"), 2: ("send", "recv")}, seq)
    (gone,) = (a for a in calls if (a.rank, a.op, a.issue_ns // 1000) == (1, "recv", 0))
    matches = match(a for a in calls if a is not gone)
    assert faults(matches) == [(Verdict.MEMBER_MISSING, (1,))]
    (short,) = (m for m in matches if m.culprits)
    assert (short.expected, short.members[0].issue_ns) == ((0, 1), 0)


def test_numbers_that_count_a_process_and_not_a_pair_are_not_used_for_messages() -> None:
    """NCCL counts the messages of a process: rank 1 also sends to rank 2, so its numbers run ahead."""
    sends = [message(0, i, 100 * i, 0, 1, seq=i + 1, bytes=8 + i) for i in range(4)]
    receives = [message(1, i, 100 * i, 0, 1, done_ns=100 * i + 50, seq=2 * i + 1, bytes=8 + i)
                for i in range(4)]  # fmt: skip
    matches = match([*sends, *receives])
    assert faults(matches) == []
    assert as_sets(matches) == {frozenset({(0, i), (1, i)}) for i in range(4)}


def test_one_number_for_a_whole_batch_pairs_its_messages_in_order() -> None:
    calls = [
        message(rank, i, 100 * i + rank, 0, 1, done_ns=1000, seq=5, bytes=8 + i)
        for rank in (0, 1)
        for i in range(3)
    ]
    matches = match(calls)
    assert faults(matches) == []
    assert as_sets(matches) == {frozenset({(0, i), (1, i)}) for i in range(3)}


def test_messages_that_one_side_batches_and_the_other_does_not_meet_in_order() -> None:
    sends = [message(0, i, 10 * i, 0, 1, seq=5) for i in range(2)]
    receives = [message(1, i, 10 * i, 0, 1, done_ns=100 + i, seq=5 + i) for i in range(2)]
    assert as_sets(match([*sends, *receives])) == {frozenset({(0, i), (1, i)}) for i in range(2)}


def test_messages_of_unlike_tags_stay_apart() -> None:
    calls = [message(0, i, i, 0, 1, tag=i) for i in range(2)]
    calls += [message(1, i, i, 0, 1, tag=1 - i, done_ns=100) for i in range(2)]
    assert as_sets(match(calls)) == {frozenset({(0, 0), (1, 1)}), frozenset({(0, 1), (1, 0)})}


def test_a_message_to_nobody_known_is_undecided() -> None:
    calls = [message(0, 0, 0, 0, MISSING), message(1, 0, 5, MISSING, 1)]
    assert faults(match(calls)) == [(Verdict.UNDECIDED, (0,)), (Verdict.UNDECIDED, (1,))]
