"""What the committed pipelines show, held against closed forms."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from generator.runs.manifest import Schedule
from generator.timeline.formulas import FORMULAS
from generator.timeline.metrics import METRICS, PIPELINE_WORK
from generator.timeline.reconstruct import graph_of, representative_step
from generator.timeline.replay import replay
from generator.timeline.spans import Activity, Spans
from generator.timeline.unitcost import unit_costs
from tests.committed import at_unit_cost, batch, manifest, model, run, timeline

P, M = 4, 8
ONE_STAGE = ("pp-gpipe", "pp-1f1b", "pp-unequal", "pp-balanced", "pp-gpipe-slow", "pp-1f1b-slow")
LOOPS = ("pp-interleaved", "pp-interleaved-zb")
TURNS = ("pp-zbv", "pp-dualpipev")
SPLIT = ("pp-interleaved-zb", *TURNS)
PIPELINES = (*ONE_STAGE, *LOOPS, *TURNS)


def schedule(run_id: str) -> Schedule:
    found = manifest(run_id).schedule
    assert found is not None
    return found


def chunks(run_id: str) -> int:
    """Stages on each rank, v."""
    return schedule(run_id).chunks


# ---- the recordings


@pytest.mark.parametrize("run_id", PIPELINES)
def test_a_pipeline_has_four_ranks_and_eight_micro_batches(run_id: str) -> None:
    assert (manifest(run_id).mesh.pp, schedule(run_id).microbatches) == (P, M)


def test_the_slow_runs_share_a_link_and_the_others_share_theirs() -> None:
    for run_id in PIPELINES:
        slow = run_id.endswith("-slow")
        assert manifest(run_id).link.calibration == ("link-150mbit" if slow else "link-2gbit")


# ---- counts and bytes


@pytest.mark.parametrize("run_id", PIPELINES)
def test_messages_pass_every_cut_between_ranks_down_and_up(run_id: str) -> None:
    """2m(pv − 1) messages; in a V the two stages of the last rank follow each other, which needs none."""
    expected = FORMULAS["pipeline_messages"].function(P, M, chunks(run_id)) - 2 * M * (run_id in TURNS)
    assert METRICS["count"](timeline(run_id)) == METRICS["count"](timeline(run_id), op="send") == expected


@pytest.mark.parametrize("run_id", PIPELINES)
def test_every_message_is_one_micro_batch_wide(run_id: str) -> None:
    tokens = batch(run_id).sequences // M * batch(run_id).tokens
    assert {c.bytes for c in timeline(run_id).calls} == {4 * tokens * model(run_id).d_model}


def test_two_stages_on_a_rank_multiply_messages_by_seven_thirds_in_a_loop_and_by_two_in_a_v() -> None:
    sends = {run_id: METRICS["count"](timeline(run_id), op="send") for run_id in PIPELINES}
    assert Fraction(int(sends["pp-interleaved"]), int(sends["pp-1f1b"])) == Fraction(7, 3)
    assert Fraction(int(sends["pp-zbv"]), int(sends["pp-1f1b"])) == 2


# ---- stages


@pytest.mark.parametrize("run_id", PIPELINES)
def test_spans_say_which_stage_of_the_rank_is_worked_on(run_id: str) -> None:
    for rank in range(P):
        second = 2 * P - 1 - rank if run_id in TURNS else P + rank
        stages = {rank, second} if chunks(run_id) == 2 else {rank}
        spans = timeline(run_id).ranks[rank].computation
        work = np.isin(spans.activity, PIPELINE_WORK)
        assert set(spans.chunk[work].tolist()) == stages
        if chunks(run_id) == 2:
            # One layer a stage.
            blocks = work & (spans.layer >= 0)
            assert (spans.layer[blocks] == spans.chunk[blocks]).all()


@pytest.mark.parametrize("run_id", PIPELINES)
def test_weights_have_a_part_of_their_own_where_backward_is_cut_in_two(run_id: str) -> None:
    activities = {int(a) for r in timeline(run_id).ranks for a in np.unique(r.computation.activity)}
    assert (Activity.BACKWARD_WEIGHT in activities) == (run_id in SPLIT)


def in_flight(run_id: str, rank: int) -> int:
    """Most micro-batches of one stage that are between forward and the end of their backward at once."""
    spans = timeline(run_id).ranks[rank].computation
    work = np.isin(spans.activity, PIPELINE_WORK)
    times: dict[tuple[int, int], list[int]] = {}
    for i in np.flatnonzero(work):
        key = int(spans.microbatch[i]), int(spans.chunk[i])
        times.setdefault(key, [int(spans.start_ns[i]), 0])[1] = int(spans.end_ns[i])
    assert len(times) == M * chunks(run_id)
    begins = [begin for begin, _ in times.values()]
    return max(sum(begin <= at < end for begin, end in times.values()) for at in begins)


@pytest.mark.parametrize("rank", range(P))
def test_micro_batches_in_flight(rank: int) -> None:
    """GPipe m; 1F1B min(m, p − i); interleaved (v + 1)p − 1 − 2i chunks; ZB-V 2p and DualPipeV 2p + 1."""
    assert in_flight("pp-gpipe", rank) == M
    for run_id in ("pp-1f1b", "pp-unequal", "pp-balanced", "pp-1f1b-slow"):
        formula = FORMULAS["pipeline_in_flight"].function
        assert in_flight(run_id, rank) == min(M, P - rank) == formula(P, M, rank)
    assert in_flight("pp-interleaved", rank) == 3 * P - 1 - 2 * rank
    assert in_flight("pp-zbv", rank) == 2 * P
    assert in_flight("pp-dualpipev", rank) == 2 * P + 1


@pytest.mark.parametrize("run_id", [r for r in PIPELINES if r not in ("pp-unequal", "pp-balanced")])
@pytest.mark.parametrize("rank", [1, 2])
def test_activations_are_those_of_the_micro_batches_in_flight(run_id: str, rank: int) -> None:
    """FP32, without dropout: 16E + 4Bs + aBs elements a layer and micro-batch, E = B·s·h.

    The first E of a stage is what it received. PyTorch keeps these buffers for all micro-batches.
    """
    m, bs = model(run_id), batch(run_id).sequences // M * batch(run_id).tokens
    layer = 4 * (16 * bs * m.d_model + 4 * bs + m.heads * bs)
    layers = m.layers // P // chunks(run_id)
    flying = in_flight(run_id, rank)
    unused = (M * chunks(run_id) - flying) * 4 * bs * m.d_model
    held = METRICS["peak_memory"](timeline(run_id), rank=rank, category="activations")
    assert held == pytest.approx(layers * flying * layer + unused, rel=0.01)


# ---- bubbles at unit cost


#: With F = I = W = 1 of one chunk: idle time of a rank, and of it all the time it computes 3mv.
IDLE = {
    "pp-gpipe": 3 * (P - 1),
    "pp-1f1b": 3 * (P - 1),
    # The same for a stage of a quarter of the model over v: F + I + W of a chunk for each other rank.
    "pp-interleaved": 3 * (P - 1),
    # (p − 1)(F + I − W)/v, F = I = W = v chunks.
    "pp-interleaved-zb": P - 1,
    # (p − 1) times F of a chunk, because all ranks begin and end the step together.
    "pp-zbv": P - 1,
    # (2p/2 − 1)(F&B + B − 3W) with F&B = F + B.
    "pp-dualpipev": (P - 1) * (3 + 2 - 3),
}


@pytest.mark.parametrize("run_id", IDLE)
def test_bubbles_at_unit_cost_are_those_of_the_closed_forms(run_id: str) -> None:
    busy = 3 * M * chunks(run_id)
    unit = at_unit_cost(run_id)
    for rank in range(P):
        fraction = METRICS["bubble_fraction"](unit, rank=rank)
        assert fraction == pytest.approx(IDLE[run_id] / (busy + IDLE[run_id]), abs=1e-12)


def test_gpipe_and_1f1b_have_the_bubble_3_11_and_interleaved_3_19() -> None:
    fractions = {name: METRICS["bubble_fraction"](at_unit_cost(name)) for name in IDLE}
    assert fractions["pp-gpipe"] == pytest.approx(3 / 11, abs=1e-12)
    assert fractions["pp-1f1b"] == pytest.approx(3 / 11, abs=1e-12)
    assert fractions["pp-interleaved"] == pytest.approx(3 / 19, abs=1e-12)
    whole, interleaved = (
        FORMULAS[f"{name}_bubble_fraction"].function for name in ("pipeline", "interleaved")
    )
    assert (whole(P, M), interleaved(P, M, 2)) == pytest.approx((3 / 11, 3 / 19))
    # A stage is two chunks, and its idle time is shared out among them.
    assert FORMULAS["zero_bubble_idle"].function(P, 2, 2, 2) / 2 == IDLE["pp-interleaved-zb"]


# ---- what the runs are for


def with_messages(run_id: str, forward: int, message: int) -> int:
    """Duration of the recorded graph when a forward, a backward of twice that and a message take so long."""
    ours = run(run_id)
    graph = graph_of(ours, representative_step(ours), eager=True)
    durations = unit_costs(graph) * forward
    for (index, _), node in graph.done.items():
        assert graph.matches[index].point_to_point
        durations[node] = message
    return replay(graph, durations).step_ns


@pytest.mark.parametrize(("forward", "message"), [(100, 10), (100, 50), (100, 100)])
def test_messages_delay_a_step_as_the_closed_forms_say(forward: int, message: int) -> None:
    delays = {
        "pp-gpipe-slow": FORMULAS["gpipe_message_delays"].function(P),
        "pp-1f1b-slow": FORMULAS["torch_one_f_one_b_message_delays"].function(P, M),
    }
    assert delays == {"pp-gpipe-slow": 6, "pp-1f1b-slow": 19}
    # Were there no waiting for one's own messages, 1F1B had three message times less.
    assert FORMULAS["one_f_one_b_message_delays"].function(P, M) == 16
    for run_id, times in delays.items():
        free = 3 * forward * (M + P - 1)
        assert with_messages(run_id, forward, message) == free + times * message


def test_1f1b_loses_to_gpipe_on_a_slow_link_only() -> None:
    step = {run_id: timeline(run_id).step_ns for run_id in PIPELINES}
    assert step["pp-1f1b-slow"] > 1.1 * step["pp-gpipe-slow"]
    assert step["pp-1f1b"] < 1.05 * step["pp-gpipe"]


def busiest(run_id: str) -> float:
    """Longest computation of a rank over the mean of ranks."""
    busy = [METRICS["busy"](timeline(run_id), rank=rank) for rank in range(P)]
    return max(busy) / (sum(busy) / P)


def test_cut_by_measured_times_stages_are_more_equal_and_the_step_is_shorter() -> None:
    assert busiest("pp-unequal") > 1.4
    assert busiest("pp-balanced") < 1.3
    assert timeline("pp-balanced").step_ns < 0.85 * timeline("pp-unequal").step_ns


def layers_of(spans: Spans) -> set[int]:
    return set(spans.layer[spans.layer >= 0].tolist())


def layer_ns(run_id: str) -> list[float]:
    """Embedding, layers and head: time of a step in forward and backward, ns."""
    found: dict[tuple[int, int], int] = {}
    for lane in timeline(run_id).ranks:
        spans = lane.computation
        for i in np.flatnonzero(spans.module >= 0):
            key = int(spans.module[i]), int(spans.layer[i])
            found[key] = found.get(key, 0) + int(spans.end_ns[i] - spans.start_ns[i])
    return [found[key] for key in sorted(found)]


def test_the_balanced_cut_is_the_best_by_the_unequal_runs_layer_times() -> None:
    embedding, *layers, head = layer_ns("pp-unequal")
    layer = sum(layers) / len(layers)

    def longest(cut: tuple[int, ...]) -> float:
        extra = (embedding, 0, 0, head)
        return max(n * layer + more for n, more in zip(cut, extra, strict=True))

    cuts = [cut for cut in product(range(9), repeat=P) if sum(cut) == len(layers)]
    assert min(cuts, key=longest) == manifest("pp-balanced").options.layers_per_stage
    assert longest((2, 2, 2, 2)) > 1.3 * min(map(longest, cuts))


def test_the_balanced_cut_leaves_the_head_alone() -> None:
    cut = manifest("pp-balanced").options.layers_per_stage
    lanes = [layers_of(r.computation) for r in timeline("pp-balanced").ranks]
    assert tuple(map(len, lanes)) == cut == (2, 3, 3, 0)
    assert set().union(*lanes) == set(range(8))
