"""The committed recordings of expert parallelism, held against closed forms."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from typing import Any

import pytest

from generator.timeline.formulas import FORMULAS
from generator.timeline.metrics import METRICS
from generator.timeline.reconstruct import representative_step
from generator.timeline.spans import Timeline
from tests.committed import model, run, timeline

ROUTERS = ("balanced", "skewed")
N, LAYERS, EXPERTS, WIDTH = 4, 8, 8, 256
#: Tokens of a rank, and bytes of one.
TOKENS, ROW = 8 * 128 // N, 4 * WIDTH
#: Share of all tokens that each rank's experts get.
SHARE = {"balanced": [1 / 4] * 4, "skewed": [5 / 8, 1 / 8, 1 / 8, 1 / 8]}


def recorded(router: str) -> Timeline:
    return timeline(f"ep-{router}", "recorded")


@pytest.mark.parametrize("router", ROUTERS)
@pytest.mark.parametrize("layer", range(LAYERS))
def test_two_all_to_alls_forward_two_backward_and_the_counts(router: str, layer: int) -> None:
    # The payload is the buffer of the rank with most rows.
    largest = ROW * max(TOKENS, round(N * TOKENS * max(SHARE[router])))
    expected = {"forward": {8 * EXPERTS: 1, largest: 2}, "backward": {largest: 2}}
    for phase, sizes in expected.items():
        found = [c for c in recorded(router).calls if (c.phase, c.layer) == (phase, layer)]
        assert {c.op for c in found} == {"all_to_all"}
        assert Counter(c.bytes for c in found) == sizes


def splits(router: str, rank: int) -> list[tuple[list[int], list[int]]]:
    """Rows to and from each rank, of the all-to-alls of one rank's step, in order."""
    ours = run(f"ep-{router}")
    step = representative_step(ours)
    trace = json.loads(gzip.decompress((ours.folder / ours.manifest.ranks[rank].file).read_bytes()))
    told: list[dict[str, Any]] = [e.get("args", {}) for e in trace["traceEvents"]]
    return [(a["in_splits"], a["out_splits"]) for a in told if "in_splits" in a and a["step"] == step]


@pytest.mark.parametrize("router", ROUTERS)
def test_what_one_rank_sends_another_gets(router: str) -> None:
    of = [splits(router, rank) for rank in range(N)]
    assert [len(parts) for parts in of] == [4 * LAYERS] * N
    for call in range(4 * LAYERS):
        for i in range(N):
            for j in range(N):
                assert of[i][call][0][j] == of[j][call][1][i]


@pytest.mark.parametrize("router", ROUTERS)
def test_load_of_the_ranks(router: str) -> None:
    """Rows that come in by dispatch; the busiest has max/mean 1, or 5/8 of all: 2.5."""
    loads = [sum(splits(router, rank)[0][1]) for rank in range(N)]
    assert loads == [N * TOKENS * share for share in SHARE[router]]
    mean = sum(loads) / N
    assert max(loads) / mean == (1 if router == "balanced" else 2.5)


@pytest.mark.parametrize("router", ROUTERS)
@pytest.mark.parametrize("rank", range(N))
def test_bytes_that_a_rank_sends(router: str, rank: int) -> None:
    """Dispatch sends all own tokens that belong elsewhere, combine those of the others back; twice."""
    share = SHARE[router][rank]
    rows = TOKENS * (1 - share) + (N - 1) * TOKENS * share
    expected = LAYERS * (2 * ROW * rows + 8 * EXPERTS * (N - 1) / N)
    assert METRICS["wire_bytes"](recorded(router), rank=rank, op="all_to_all") == expected
    if router == "balanced":
        assert 2 * rows * WIDTH == FORMULAS["ep_wire_elements"].function(TOKENS, WIDTH, N)


@pytest.mark.parametrize("router", ROUTERS)
def test_all_but_the_experts_is_reduced_once_and_held_by_all(router: str) -> None:
    m = model(f"ep-{router}")
    experts = LAYERS * EXPERTS * 8 * WIDTH**2
    (reduced,) = [c for c in recorded(router).calls if c.op == "all_reduce"]
    assert reduced.bytes == 4 * (m.parameters - experts)
    mine = m.parameters - experts * (N - 1) / N
    assert m.parameters_per_rank == (mine,) * N
    for category, size in {"parameters": 4, "gradients": 4, "optimizer": 8}.items():
        held = METRICS["peak_memory"](recorded(router), rank=3, category=category)
        assert held == pytest.approx(size * mine, rel=0.02)


def test_a_hot_expert_makes_its_rank_late_and_the_others_wait() -> None:
    busy, wait = METRICS["busy"], METRICS["wait"]
    hot = timeline("ep-skewed")
    work = [busy(hot, rank=r) for r in range(N)]
    assert work[0] > 1.5 * max(work[1:])
    idle = [wait(hot, rank=r, op="all_to_all") for r in range(N)]
    assert max(idle[0], 1) < 0.2 * min(idle[1:])
    even = [busy(timeline("ep-balanced"), rank=r) for r in range(N)]
    assert max(even) / min(even) < 1.1
    assert hot.step_ns > 1.2 * timeline("ep-balanced").step_ns


def test_the_hot_rank_holds_the_activations_of_its_tokens() -> None:
    held = [METRICS["peak_memory"](recorded("skewed"), rank=r, category="activations") for r in range(N)]
    assert held[0] > 2 * held[1]
    assert held[1] == held[2] == held[3]
