"""Every measure of time of every committed run, computed a second way: to the nanosecond, without unions.

A sweep goes from edge to edge of a rank's spans and calls, counts what is open, and adds each piece of
time to what it belongs to. Moments, bars and rates are read off the spans and calls one by one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from generator.errors import UserError
from generator.timeline.metrics import METRICS
from generator.timeline.program import MODULES
from generator.timeline.spans import Activity, Call, Member, Timeline
from tests.committed import ids_with_steps, manifest, timeline

COMPUTING = {
    Activity.FORWARD,
    Activity.BACKWARD,
    Activity.BACKWARD_INPUT,
    Activity.BACKWARD_WEIGHT,
    Activity.OPTIMIZER,
}
PIPELINE = COMPUTING - {Activity.OPTIMIZER}
BACKWARD = {Activity.BACKWARD, Activity.BACKWARD_INPUT, Activity.BACKWARD_WEIGHT}
MODES = ("recorded", "isolated")
#: What a rank of n sends of a collective's payload: the ring's steps times its chunk.
SHARE: dict[str, Callable[[int], float]] = {
    "all_reduce": lambda n: 2 * (n - 1) / n,
    "all_gather": lambda n: (n - 1) / n,
    "reduce_scatter": lambda n: (n - 1) / n,
    "all_to_all": lambda n: (n - 1) / n,
    "broadcast": lambda n: (n - 1) / n,
}
Filters = dict[str, Any]


@dataclass(frozen=True)
class Piece:
    """A stretch of time in which nothing begins or ends, and how many of each thing are open."""

    ns: int
    start_ns: int
    open: Counter[str]


def chosen_calls(found: Timeline, rank: int, filters: Filters) -> Iterator[tuple[Call, Member]]:
    """A rank's part in each call that the filters leave."""
    for call in found.calls:
        for m in call.members:
            op = "recv" if call.op == "send" and m.rank != call.ranks[0] else call.op
            phase = "backward" if call.phase.startswith("backward") else call.phase
            labels = {
                "op": {op},
                "phase": {phase, call.phase},
                "layer": {call.layer},
                "microbatch": {call.microbatch},
                "group": {call.group},
            }
            if m.rank == rank and all(value in labels[name] for name, value in filters.items()):
                yield call, m


def chosen_spans(found: Timeline, rank: int, filters: Filters) -> Iterator[tuple[int, int, Activity]]:
    """Begin, end and activity of a rank's spans that the filters leave."""
    spans = found.ranks[rank].computation
    for i in range(len(spans)):
        kind = Activity(int(spans.activity[i]))
        phase = {kind.name.lower(), "backward" if kind in BACKWARD else ""}
        module = MODULES[spans.module[i]] if spans.module[i] >= 0 else ""
        labels = {
            "phase": phase,
            "layer": {int(spans.layer[i])},
            "microbatch": {int(spans.microbatch[i])},
            "module": {module},
        }
        if all(value in labels[name] for name, value in filters.items()):
            yield int(spans.start_ns[i]), int(spans.end_ns[i]), kind


def sweep(found: Timeline, rank: int, filters: Filters | None = None) -> Iterator[Piece]:
    """The pieces of a rank's step; `filters` choose among its calls."""
    edges: list[tuple[int, int, str]] = []

    def add(start: int, end: int, what: str) -> None:
        if end > start:
            edges.extend([(start, 1, what), (end, -1, what)])

    for start, end, kind in chosen_spans(found, rank, {}):
        add(start, end, kind.name)
    for call, m in chosen_calls(found, rank, filters or {}):
        arrivals = [other.arrive_ns for other in call.members]
        add(m.begin_ns, m.end_ns, "message" if call.op == "send" else "collective")
        if call.op != "send":
            add(m.arrive_ns, max(arrivals), "waiting")
            add(min(arrivals), m.arrive_ns, "missed")
    now, count = 0, Counter[str]()
    for at, change, what in sorted(edges):
        if at > now:
            yield Piece(at - now, now, +count)
        count[what] += change
        now = at


def measured(found: Timeline, rank: int, filters: Filters | None = None) -> dict[str, int]:
    """Total ns of each metric of a rank."""
    total = Counter[str]()
    computing = {a.name for a in COMPUTING}
    for piece in sweep(found, rank, filters):
        works = bool(computing & piece.open.keys())
        moves = bool({"message", "collective"} & piece.open.keys())
        talks = moves or "waiting" in piece.open
        total["busy"] += piece.ns * works
        total["host_time"] += piece.ns * (Activity.HOST.name in piece.open)
        total["blocked"] += piece.ns * (Activity.BLOCKED.name in piece.open)
        total["idle"] += piece.ns * (Activity.IDLE.name in piece.open)
        total["comm_time"] += piece.ns * talks
        total["wait"] += piece.ns * ("waiting" in piece.open)
        total["lateness"] += piece.ns * ("missed" in piece.open)
        total["transfer"] += piece.ns * moves
        total["exposed_comm"] += piece.ns * (talks and not works)
        total["exposed_transfer"] += piece.ns * (moves and not works)
        total["hidden"] += piece.ns * (talks and works)
    return dict(total)


OF_CALLS = ("comm_time", "wait", "lateness", "transfer", "exposed_comm", "exposed_transfer")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("run_id", ids_with_steps())
def test_time_metrics_are_those_of_a_sweep(run_id: str, mode: str) -> None:
    found = timeline(run_id, mode)
    for rank in range(len(found.ranks)):
        expected = measured(found, rank)
        hidden = expected.pop("hidden")
        assert {name: METRICS[name](found, rank=rank) for name in expected} == expected
        # Each instant of the step belongs to one of four.
        assert sum(expected[part] for part in ("busy", "host_time", "blocked", "idle")) == found.step_ns
        if expected["comm_time"]:
            assert METRICS["overlap"](found, rank=rank) == pytest.approx(
                hidden / expected["comm_time"], rel=1e-12
            )


def filters_of_calls(found: Timeline) -> list[Filters]:
    """Each value of op, phase and group that a run's calls have, and a layer and a micro-batch of them."""
    ops = {c.op for c in found.calls} | ({"recv"} if any(c.op == "send" for c in found.calls) else set())
    found_layers = sorted({c.layer for c in found.calls if c.layer >= 0})[1:2]
    found_microbatches = sorted({c.microbatch for c in found.calls if c.microbatch >= 0})[1:2]
    phases = {c.phase for c in found.calls if c.phase}
    phases |= {"backward"} if any(p.startswith("backward") for p in phases) else set()
    return [
        *({"op": op} for op in sorted(ops)),
        *({"phase": phase} for phase in sorted(phases)),
        *({"group": group} for group in sorted({c.group for c in found.calls})),
        *({"layer": layer} for layer in found_layers),
        *({"microbatch": m} for m in found_microbatches),
        *({"op": op, "layer": layer} for op in sorted(ops) for layer in found_layers),
    ]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("run_id", [r for r in ids_with_steps() if manifest(r).world_size > 1])
def test_filters_leave_the_calls_that_they_name(run_id: str, mode: str) -> None:
    found = timeline(run_id, mode)
    rank = len(found.ranks) - 1
    chosen = filters_of_calls(found)
    assert chosen
    for filters in chosen:
        expected = measured(found, rank, filters)
        got = {name: METRICS[name](found, rank=rank, **filters) for name in OF_CALLS}
        assert got == {name: expected[name] for name in OF_CALLS}, filters


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("run_id", ids_with_steps())
def test_computation_by_phase_layer_micro_batch_and_module(run_id: str, mode: str) -> None:
    found = timeline(run_id, mode)
    layers, microbatches = (
        sorted({int(v) for r in found.ranks for v in getattr(r.computation, name)} - {-1})[:2]
        for name in ("layer", "microbatch")
    )
    filters: list[Filters] = [
        {},
        *({"phase": phase} for phase in ("forward", "backward", "backward_weight", "optimizer")),
        *({"module": module} for module in MODULES),
        *({"layer": layer, "phase": "backward"} for layer in layers),
        *({"microbatch": m} for m in microbatches),
    ]
    for rank in range(len(found.ranks)):
        for each in filters:
            spans = [(a, b) for a, b, kind in chosen_spans(found, rank, each) if kind in COMPUTING]
            # Spans of one lane do not overlap, so their sum is their union.
            assert METRICS["busy"](found, rank=rank, **each) == sum(b - a for a, b in spans)
            if spans:
                assert METRICS["phase_begin"](found, rank=rank, **each) == min(a for a, _ in spans)
                assert METRICS["phase_end"](found, rank=rank, **each) == max(b for _, b in spans)
            else:
                with pytest.raises(UserError, match="never computes that"):
                    METRICS["phase_begin"](found, rank=rank, **each)


def sent(call: Call, m: Member) -> float:
    """Bytes that a member of a call sends under the ring algorithm."""
    if call.op == "send":
        return call.bytes if m.rank == call.ranks[0] else 0
    return m.sent if m.sent >= 0 else SHARE[call.op](len(call.ranks)) * call.bytes


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("run_id", [r for r in ids_with_steps() if manifest(r).world_size > 1])
def test_bars_moments_bytes_and_rates_of_calls(run_id: str, mode: str) -> None:
    found = timeline(run_id, mode)
    for rank in range(len(found.ranks)):
        every: list[Filters] = [{}, *({"op": op} for op in sorted({c.op for c in found.calls}))]
        for filters in every:
            calls = list(chosen_calls(found, rank, filters))
            if not calls:
                continue
            bars = [((m.begin_ns if c.op == "send" else m.arrive_ns), m.end_ns) for c, m in calls]
            moved = measured(found, rank, filters)["transfer"]
            expected = {
                "count": len(calls),
                "payload_bytes": sum(c.bytes for c, _ in calls),
                "wire_bytes": pytest.approx(sum(sent(c, m) for c, m in calls), rel=1e-12),
                "call_begin": min(a for a, _ in bars),
                "call_end": max(b for _, b in bars),
                "longest_call": max(b - a for a, b in bars),
                "shortest_call": min(b - a for a, b in bars),
            }
            if moved:
                payload = sum(c.bytes for c, _ in calls)
                wire = sum(sent(c, m) for c, m in calls)
                expected |= {
                    "algorithm_bandwidth": pytest.approx(payload / moved, rel=1e-12),
                    "bus_bandwidth": pytest.approx(wire / moved, rel=1e-12),
                }
            assert {name: METRICS[name](found, rank=rank, **filters) for name in expected} == expected


@pytest.mark.parametrize("run_id", [r for r in ids_with_steps() if manifest(r).world_size > 1])
def test_without_a_rank_times_are_means_bytes_are_sums_and_calls_count_once(run_id: str) -> None:
    found = timeline(run_id)
    ranks = range(len(found.ranks))
    for name in (*OF_CALLS, "busy", "host_time", "blocked", "idle"):
        each = [METRICS[name](found, rank=rank) for rank in ranks]
        assert METRICS[name](found) == pytest.approx(sum(each) / len(each), rel=1e-12)
    assert METRICS["wire_bytes"](found) == pytest.approx(
        sum(METRICS["wire_bytes"](found, rank=rank) for rank in ranks), rel=1e-12
    )
    assert METRICS["count"](found) == len(found.calls)
    assert METRICS["payload_bytes"](found) == sum(c.bytes for c in found.calls)
    late = [METRICS["lateness"](found, rank=rank) for rank in ranks]
    if any(c.op != "send" for c in found.calls):
        assert METRICS["late_rank"](found) == late.index(max(late))


def crossings(found: Timeline) -> tuple[Counter[int], float]:
    """Bytes that leave each node, hop by hop, and those of broadcasts, of which no node is told."""
    left, broadcast = Counter[int](), 0.0
    for call in found.calls:
        node = {rank: rank // found.ranks_per_node for rank in call.ranks}
        n = len(call.ranks)
        ring = [(call.ranks[i], call.ranks[(i + 1) % n]) for i in range(n)]
        hops: list[tuple[int, int, float]] = []
        if call.op == "send":
            hops = [(*call.ranks, call.bytes)]  # type: ignore[list-item]
        elif call.op == "all_to_all":
            uneven = {m.rank: m.sent for m in call.members if m.sent >= 0}
            hops = [
                (a, b, uneven[a] / (n - 1) if uneven else call.bytes / n)
                for a in call.ranks
                for b in call.ranks
                if a != b
            ]
        elif call.op == "broadcast":
            broadcast += sum(call.bytes for a, b in ring[:-1] if node[a] != node[b])
        else:
            steps = (2 if call.op == "all_reduce" else 1) * (n - 1)
            hops = [(a, b, call.bytes / n) for a, b in ring for _ in range(steps)]
        for a, b, size in hops:
            if node[a] != node[b]:
                left[node[a]] += size  # type: ignore[assignment]
    return left, broadcast


@pytest.mark.parametrize("run_id", [r for r in ids_with_steps() if manifest(r).world_size > 1])
def test_bytes_that_leave_a_node_are_those_of_the_hops_between_nodes(run_id: str) -> None:
    found = timeline(run_id)
    left, broadcast = crossings(found)
    for node in range(len(found.ranks) // found.ranks_per_node):
        other = METRICS["egress_bytes"](found, node=node, op="broadcast")
        assert METRICS["egress_bytes"](found, node=node) - other == pytest.approx(left[node], rel=1e-12)
    assert METRICS["egress_bytes"](found) == pytest.approx(sum(left.values()) + broadcast, rel=1e-12)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("run_id", [r for r in ids_with_steps() if manifest(r).mesh.pp > 1])
def test_bubbles_are_those_of_a_sweep(run_id: str, mode: str) -> None:
    found = timeline(run_id, mode)
    names = {a.name for a in PIPELINE}
    pieces = [list(sweep(found, rank)) for rank in range(len(found.ranks))]
    own = []
    for lane in pieces:
        work = [p for p in lane if names & p.open.keys()]
        own.append((min(p.start_ns for p in work), max(p.start_ns + p.ns for p in work)))
    common = [(min(a for a, _ in own), max(b for _, b in own))] * len(own)
    for span, bounds in {"common": common, "own": own}.items():
        idle = [0] * len(pieces)
        for rank, lane in enumerate(pieces):
            start, end = bounds[rank]
            for p in lane:
                still = {"BLOCKED", "IDLE"} & p.open.keys()
                if still and not {"collective", "waiting"} & p.open.keys():
                    idle[rank] += max(0, min(end, p.start_ns + p.ns) - max(start, p.start_ns))
        lengths = [end - start for start, end in bounds]
        total, lost = sum(lengths), sum(idle)
        expected = {"bubble_fraction": lost / total, "bubble_overhead": lost / (total - lost)}
        expected["bubble_time"] = lost / len(idle)
        for name, value in expected.items():
            assert METRICS[name](found, span=span) == pytest.approx(value, rel=1e-12)
        for rank, each in enumerate(idle):
            assert METRICS["bubble_time"](found, rank=rank, span=span) == each
            fraction = METRICS["bubble_fraction"](found, rank=rank, span=span)
            assert fraction == pytest.approx(each / lengths[rank], rel=1e-12)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("run_id", [r for r in ids_with_steps() if manifest(r).microbatches > 1])
def test_micro_batches_in_flight_are_counted_at_every_instant(run_id: str, mode: str) -> None:
    found = timeline(run_id, mode)
    most = []
    for rank in found.ranks:
        spans = rank.computation
        held: dict[tuple[int, int], list[int]] = {}
        for i in range(len(spans)):
            if Activity(int(spans.activity[i])) in PIPELINE:
                held.setdefault((int(spans.microbatch[i]), int(spans.chunk[i])), []).extend(
                    (int(spans.start_ns[i]), int(spans.end_ns[i]))
                )
        lives = [(min(times), max(times)) for times in held.values()]
        alive = [sum(a <= at < b for a, b in lives) for at, _ in lives]
        most.append(max(alive))
        assert METRICS["in_flight"](found, rank=rank.rank) == most[-1]
    assert METRICS["in_flight"](found) == max(most)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("run_id", ids_with_steps())
def test_memory_at_a_moment_is_the_last_sample_before_it(run_id: str, mode: str) -> None:
    found = timeline(run_id, mode)
    for rank in found.ranks:
        times, held = rank.memory.time_ns.tolist(), rank.memory.bytes.tolist()
        totals = [sum(row) for row in held]
        peak = totals.index(max(totals))
        assert METRICS["peak_time"](found, rank=rank.rank) == times[peak]
        assert METRICS["memory"](found, rank=rank.rank) == METRICS["peak_memory"](found, rank=rank.rank)
        spans = list(chosen_spans(found, rank.rank, {}))
        moments = {"begin": 0, "end": found.step_ns}
        for name, kinds in {"forward": {Activity.FORWARD}, "backward": BACKWARD}.items():
            ends = [b for _, b, kind in spans if kind in kinds]
            moments |= {name: max(ends)} if ends else {}
        begins = [a for a, _, kind in spans if kind is Activity.OPTIMIZER]
        moments |= {"optimizer": min(begins)} if begins else {}
        for at, moment in moments.items():
            before = [row for time, row in zip(times, held, strict=True) if time <= moment] or held[:1]
            got = [METRICS["memory"](found, rank=rank.rank, at=at)]
            got.append(METRICS["memory"](found, rank=rank.rank, at=at, category="activations"))
            assert got == [sum(before[-1]), before[-1][3]], at
