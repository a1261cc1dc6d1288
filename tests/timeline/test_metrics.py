"""Metrics on small runs whose answers can be seen by eye."""

from __future__ import annotations

from pathlib import Path

import pytest

from generator.errors import UserError
from generator.timeline.metrics import METRICS
from generator.timeline.reconstruct import reconstruct
from generator.timeline.spans import Timeline
from tests.timeline.synthetic import Issue, Script, Wait, Work, one_f_one_b, write_run

PAIR = (0, 1)


def recorded(folder: Path, scripts: list[Script], **more: int) -> Timeline:
    return reconstruct(write_run(folder, scripts, **more), mode="recorded")


def late(folder: Path) -> Timeline:
    """Rank 1 comes 70 ns late to the first all-reduce and 10 ns early to the second; each takes 20 ns."""
    calls = [Issue("a", PAIR, 20), Issue("b", PAIR, 20)]
    return recorded(
        folder,
        [
            [Work(30), calls[0], Wait("a"), Work(40), calls[1], Wait("b")],
            [Work(100), calls[0], Wait("a"), Work(30), calls[1], Wait("b")],
        ],
    )


def test_the_late_rank_waits_least_and_has_the_shortest_bar(tmp_path: Path) -> None:
    found = late(tmp_path)
    of_ranks = {
        name: [METRICS[name](found, rank=rank) for rank in PAIR]
        for name in ("wait", "lateness", "transfer", "longest_call", "shortest_call", "comm_time")
    }
    assert of_ranks == {
        "wait": [70, 10],
        "lateness": [10, 70],
        "transfer": [40, 40],
        "longest_call": [90, 30],
        "shortest_call": [20, 20],
        "comm_time": [110, 50],
    }
    assert METRICS["late_rank"](found) == 1
    assert METRICS["longest_call"](found) == 90


def test_a_bandwidth_is_not_over_the_time_of_waiting(tmp_path: Path) -> None:
    found = late(tmp_path)
    for rank in PAIR:
        assert METRICS["algorithm_bandwidth"](found, rank=rank) == 2 * 1024 / 40
        # An all-reduce of two ranks: 2(n − 1)/n is 1.
        assert METRICS["bus_bandwidth"](found, rank=rank) == 2 * 1024 / 40


def test_moments_are_of_the_first_and_of_the_last(tmp_path: Path) -> None:
    found = late(tmp_path)
    assert [METRICS["phase_begin"](found, rank=rank) for rank in PAIR] == [0, 0]
    assert [METRICS["phase_end"](found, rank=rank) for rank in PAIR] == [160, 150]
    assert [METRICS["call_begin"](found, rank=rank) for rank in PAIR] == [30, 100]
    assert METRICS["call_end"](found) == 180
    assert METRICS["call_begin"](found) == 65


def test_a_message_is_sent_by_one_and_received_by_the_other(tmp_path: Path) -> None:
    scripts = one_f_one_b(2, 3, [10, 10], [20, 20], send_ns=5)
    found = recorded(tmp_path, scripts, stages=2, microbatches=3)
    count, wire = METRICS["count"], METRICS["wire_bytes"]
    assert [count(found, rank=rank) for rank in PAIR] == [6, 6]
    assert [count(found, rank=0, op=op) for op in ("send", "recv")] == [3, 3]
    assert [wire(found, rank=0, op=op) for op in ("send", "recv")] == [3 * 1024, 0]
    assert count(found, op="send") == count(found, op="recv") == count(found) == 6
    assert [METRICS["in_flight"](found, rank=rank) for rank in PAIR] == [2, 1]


def test_times_of_a_step_are_four_parts(tmp_path: Path) -> None:
    call = Issue("a", PAIR, 20, ns=5)
    scripts: list[Script] = [[Work(30), call, Wait("a", lag_ns=3)], [Work(50, phase="backward"), call]]
    found = recorded(tmp_path, scripts)
    parts = ("busy", "host_time", "blocked", "idle")
    assert [METRICS[part](found, rank=0) for part in parts] == [30, 5 + 3, 35, 0]
    assert [METRICS[part](found, rank=1) for part in parts] == [50, 5, 0, 18]


def test_an_operation_without_a_ring_has_counts_and_times_but_no_bytes_on_the_wire(tmp_path: Path) -> None:
    call = Issue("a", PAIR, 20, op="gather")
    found = recorded(tmp_path, [[Work(10), call, Wait("a")], [Work(10), call, Wait("a")]])
    assert METRICS["count"](found, op="gather") == 1
    assert METRICS["transfer"](found) == 20
    assert METRICS["algorithm_bandwidth"](found) == 1024 / 20
    for name in ("wire_bytes", "bus_bandwidth", "egress_bytes"):
        with pytest.raises(UserError, match="no ring algorithm is known"):
            METRICS[name](found)


def test_calls_that_take_no_time_have_no_bandwidth(tmp_path: Path) -> None:
    call = Issue("a", PAIR, 0)
    found = recorded(tmp_path, [[Work(10), call, Wait("a")], [Work(10), call, Wait("a")]])
    with pytest.raises(UserError, match="take no time"):
        METRICS["bus_bandwidth"](found)


@pytest.mark.parametrize(
    ("name", "filters", "says"),
    [
        ("busy", {"phase": "forwards"}, "there is no phase 'forwards'"),
        ("busy", {"module": "heads"}, "there is no module 'heads'"),
        ("busy", {"rank": 2}, "has no rank 2"),
        ("count", {"rank": -1}, "has no rank -1"),
        ("count", {"phase": "forwards"}, "there is no phase 'forwards'"),
        ("count", {"group": "worlds"}, "has no group 'worlds'"),
        ("peak_memory", {}, "recorded no memory"),
        ("peak_memory", {"category": "weights"}, "there is no memory category"),
        ("memory", {"at": "noon"}, "there is no moment 'noon'"),
        ("bubble_time", {}, "has no pipeline"),
        ("in_flight", {}, "has no micro-batches"),
        ("bubble_time", {"span": "long"}, "there is no span 'long'"),
        ("phase_end", {"layer": 9}, "no rank computes that"),
        ("load_imbalance", {}, "no such all-to-all"),
    ],
)
def test_a_filter_that_means_nothing_is_refused(
    tmp_path: Path, name: str, filters: dict[str, str | int], says: str
) -> None:
    with pytest.raises(UserError, match=says):
        METRICS[name](late(tmp_path), **filters)
