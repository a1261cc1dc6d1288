"""The committed recordings of collectives, held against closed forms."""

from __future__ import annotations

import pytest

from generator.timeline.formulas import FORMULAS
from generator.timeline.metrics import METRICS
from tests.committed import model, timeline

ALL = ("collectives", "late-rank", "ring-all-reduce")


def test_five_collectives_carry_the_same_payload() -> None:
    calls = timeline("collectives").calls
    assert [c.op for c in calls] == ["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast"]
    assert {c.bytes for c in calls} == {4 << 20}
    wire = {c.op: METRICS["wire_bytes"](timeline("collectives"), rank=0, op=c.op) for c in calls}
    # A ring all-reduce is a reduce-scatter and an all-gather.
    assert wire["all_reduce"] == wire["reduce_scatter"] + wire["all_gather"] == 1.5 * (4 << 20)


@pytest.mark.parametrize("mode", ["recorded", "isolated"])
def test_the_late_rank_waits_least(mode: str) -> None:
    found = timeline("late-rank", mode)
    waits = [METRICS["wait"](found, rank=rank) for rank in range(4)]
    assert min(waits) == waits[2] < 0.2 * min(waits[:2] + waits[3:])
    durations = [sum(m.end_ns - m.arrive_ns for c in found.calls for m in c.members if m.rank == r)
                 for r in range(4)]  # fmt: skip
    assert min(durations) == durations[2]


@pytest.mark.parametrize("rank", range(4))
def test_a_rank_of_the_ring_sends_a_chunk_to_the_next_in_each_of_its_steps(rank: int) -> None:
    """2(n − 1) steps of S/n bytes: 2(n − 1)/n·S in all, S the gradients."""
    m = model("ring-all-reduce")
    sent = [c for c in timeline("ring-all-reduce").calls if c.ranks[0] == rank]
    assert len(sent) == FORMULAS["ring_all_reduce_steps"].function(4) == 6
    assert {c.ranks for c in sent} == {(rank, (rank + 1) % 4)}
    assert m.parameters % 4 == 0
    assert {c.bytes for c in sent} == {m.parameters}
    assert METRICS["wire_bytes"](timeline("ring-all-reduce"), rank=rank) == 2 * 3 / 4 * 4 * m.parameters
