"""Every time metric of every committed run, computed a second way: to the nanosecond, without unions.

A sweep goes from edge to edge of a rank's spans and calls, counts what is open, and adds each piece of
time to what it belongs to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from generator.timeline.metrics import METRICS
from generator.timeline.spans import Activity, Timeline
from tests.committed import ids_with_steps, manifest, timeline

COMPUTING = {
    Activity.FORWARD,
    Activity.BACKWARD,
    Activity.BACKWARD_INPUT,
    Activity.BACKWARD_WEIGHT,
    Activity.OPTIMIZER,
}
PIPELINE = COMPUTING - {Activity.OPTIMIZER}


@dataclass(frozen=True)
class Piece:
    """A stretch of time in which nothing begins or ends, and how many of each thing are open."""

    ns: int
    start_ns: int
    open: Counter[str]


def sweep(found: Timeline, rank: int) -> Iterator[Piece]:
    edges: list[tuple[int, int, str]] = []

    def add(start: int, end: int, what: str) -> None:
        if end > start:
            edges.extend([(start, 1, what), (end, -1, what)])

    spans = found.ranks[rank].computation
    for start, end, kind in zip(
        spans.start_ns.tolist(), spans.end_ns.tolist(), spans.activity.tolist(), strict=True
    ):
        add(start, end, Activity(kind).name)
    for call in found.calls:
        last = max(m.arrive_ns for m in call.members)
        for m in call.members:
            if m.rank == rank:
                add(m.begin_ns, m.end_ns, "message" if call.op == "send" else "collective")
                if call.op != "send":
                    add(m.arrive_ns, last, "waiting")
    now, count = 0, Counter[str]()
    for at, change, what in sorted(edges):
        if at > now:
            yield Piece(at - now, now, +count)
        count[what] += change
        now = at


def measured(found: Timeline, rank: int) -> dict[str, int]:
    """Total ns of each metric of a rank."""
    total = Counter[str]()
    computing = {a.name for a in COMPUTING}
    for piece in sweep(found, rank):
        works = bool(computing & piece.open.keys())
        moves = bool({"message", "collective"} & piece.open.keys())
        talks = moves or "waiting" in piece.open
        total["busy"] += piece.ns * works
        total["blocked"] += piece.ns * (Activity.BLOCKED.name in piece.open)
        total["comm_time"] += piece.ns * talks
        total["wait"] += piece.ns * ("waiting" in piece.open)
        total["transfer"] += piece.ns * moves
        total["exposed_comm"] += piece.ns * (talks and not works)
        total["exposed_transfer"] += piece.ns * (moves and not works)
        total["hidden"] += piece.ns * (talks and works)
    return dict(total)


@pytest.mark.parametrize("mode", ["recorded", "isolated"])
@pytest.mark.parametrize("run_id", ids_with_steps())
def test_time_metrics_are_those_of_a_sweep(run_id: str, mode: str) -> None:
    found = timeline(run_id, mode)
    for rank in range(len(found.ranks)):
        expected = measured(found, rank)
        hidden = expected.pop("hidden")
        assert {name: METRICS[name](found, rank=rank) for name in expected} == expected
        if expected["comm_time"]:
            assert METRICS["overlap"](found, rank=rank) == pytest.approx(
                hidden / expected["comm_time"], rel=1e-12
            )


@pytest.mark.parametrize("mode", ["recorded", "isolated"])
@pytest.mark.parametrize("run_id", [r for r in ids_with_steps() if manifest(r).mesh.pp > 1])
def test_bubbles_are_those_of_a_sweep(run_id: str, mode: str) -> None:
    found = timeline(run_id, mode)
    names = {a.name for a in PIPELINE}
    pieces = [list(sweep(found, rank)) for rank in range(len(found.ranks))]
    work = [p for lane in pieces for p in lane if names & p.open.keys()]
    start, end = min(p.start_ns for p in work), max(p.start_ns + p.ns for p in work)
    idle = [0] * len(pieces)
    for rank, lane in enumerate(pieces):
        for p in lane:
            still = {"BLOCKED", "IDLE"} & p.open.keys()
            if still and not {"collective", "waiting"} & p.open.keys():
                idle[rank] += max(0, min(end, p.start_ns + p.ns) - max(start, p.start_ns))
    total = (end - start) * len(idle)
    assert METRICS["bubble_fraction"](found) == pytest.approx(sum(idle) / total, rel=1e-12)
    assert METRICS["bubble_overhead"](found) == pytest.approx(sum(idle) / (total - sum(idle)), rel=1e-12)
    for rank, lost in enumerate(idle):
        assert METRICS["bubble_fraction"](found, rank=rank) == pytest.approx(lost / (end - start), rel=1e-12)
