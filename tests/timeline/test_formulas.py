"""Closed forms: their units, and each against a simulation, a count by brute force, or a run."""

from __future__ import annotations

import inspect
import itertools
import math
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from generator.timeline.formulas import FORMULAS, SUBJECTS, Formula
from generator.timeline.links import RingLink
from generator.timeline.metrics import METRICS
from generator.units import quantity, same_kind, unit
from tests.committed import at_unit_cost, batch, manifest, model, timeline
from tests.timeline.schedules import (
    bucket_tail,
    busy,
    gpipe,
    lay_out,
    length,
    one_f_one_b,
    ring_all_reduce,
    zb_h1,
)


def closed(name: str, *values: Any, **named: Any) -> Any:
    return FORMULAS[name].function(*values, **named)


def with_units(formula: Formula) -> Any:
    """The example of a formula, computed with quantities instead of numbers."""
    bound = inspect.signature(formula.function).bind(*formula.example)
    bound.apply_defaults()
    given = {
        name: quantity(value, formula.units[name]) if formula.units[name] else value
        for name, value in bound.arguments.items()
    }
    return formula.function(**given)


@pytest.mark.parametrize("name", FORMULAS)
def test_a_formula_has_the_unit_that_it_says(name: str) -> None:
    """Computed with units, every sum is of one kind and the result of the kind that is promised."""
    formula = FORMULAS[name]
    result = with_units(formula)
    if any(formula.units.values()):
        result = result if hasattr(result, "dimensionality") else quantity(result)
        assert same_kind(result, unit(formula.unit))
        stored = formula.function(*formula.example)
        assert result.to_root_units().magnitude == pytest.approx(stored, rel=1e-12)
    else:
        # Of pure numbers only a count can come: of calls, elements or operations.
        assert formula.unit in ("", "FLOP") or name == "adam_state_bytes"
        assert isinstance(result, int | float)


def test_the_unit_check_finds_a_formula_that_adds_bytes_to_time() -> None:
    wrong = FORMULAS["ring_all_reduce_time"]
    mistaken = {"size": "B", "latency": "ns", "rate": "B"}
    given = [quantity(v, mistaken.get(p, "")) for p, v in zip(wrong.parameters, wrong.example, strict=True)]
    with pytest.raises(Exception, match="Cannot convert"):
        wrong.function(*given)


@pytest.mark.parametrize("name", FORMULAS)
def test_a_formula_says_what_it_is_and_where_it_comes_from(name: str) -> None:
    formula = FORMULAS[name]
    assert formula.summary.endswith((".", ":"))
    assert len(formula.source) > 10
    assert formula.subject in SUBJECTS.values()
    needed = [p for p in inspect.signature(formula.function).parameters.values() if p.default is p.empty]
    assert len(formula.example) >= len(needed)


# ---- operations


def test_early_stop_and_flash_attention_make_other_ratios_than_a_third_and_two() -> None:
    shares = [closed("recompute_overhead", s, 4 * s, 1) for s in (64, 256)]
    assert shares == pytest.approx([17 / 75] * 2, rel=1e-12)
    assert closed("recompute_overhead", 256, 256, 1) == pytest.approx(5 / 21)
    assert closed("recompute_overhead", 512, 256, 1) == pytest.approx(1 / 4)
    assert closed("recompute_overhead", 512, 256, 0) == pytest.approx(1 / 3)
    assert closed("flash_backward_over_forward", 256, 256) == pytest.approx(58 / 28)


def test_computing_again_takes_a_forward_more() -> None:
    """Of the blocks alone, thread-CPU time; the optimizer, embedding and head compute nothing again."""
    plain, again = timeline("single"), timeline("recompute-reentrant")

    def blocks(found: Any, phase: str | None = None) -> float:
        phases = (phase,) if phase else ("forward", "backward")
        return sum(METRICS["busy"](found, module="block", phase=p) for p in phases)

    expected = closed("recompute_slowdown", blocks(plain, "forward"), blocks(plain, "backward"))
    assert blocks(again) / blocks(plain) - 1 == pytest.approx(expected, rel=0.1)


def test_a_third_is_what_a_backward_of_twice_the_forward_would_make_it() -> None:
    assert closed("recompute_slowdown", 10, 20) == pytest.approx(1 / 3)
    assert closed("recompute_slowdown", 7.7, 11.9) == pytest.approx(0.393, abs=5e-4)


def test_utilization_is_of_the_peak_and_below_one() -> None:
    found = timeline("single")
    done, peak = METRICS["flops"](found), METRICS["fastest_product"](found)
    hardware = closed("utilization", done, found.step_ns, peak)
    assert hardware == pytest.approx(done / found.step_ns / peak, rel=1e-12)
    m, b = model("single"), batch("single")
    needed = closed("step_flops", b.sequences, b.tokens, m.d_model, m.layers, m.vocabulary)
    assert 0.3 < closed("utilization", needed, found.step_ns, peak) < hardware < 1


@pytest.mark.parametrize("run_id", ["ddp", "fsdp", "tp", "zero1"])
def test_no_link_can_win_more_than_hiding_all_that_is_exposed(run_id: str) -> None:
    found = timeline(run_id)
    free = timeline(run_id, "isolated", "free").step_ns
    exposed = max(METRICS["exposed_comm"](found, rank=r.rank) for r in found.ranks)
    assert 1 < found.step_ns / free <= closed("overlap_speedup", found.step_ns, exposed)


# ---- memory


def test_parameters_of_blocks_and_root_are_all_there_are() -> None:
    m, b = model("single"), batch("single")
    tables = 2 * m.vocabulary * m.d_model + b.tokens * m.d_model + 2 * m.d_model
    assert m.layers * closed("block_parameters", m.d_model) + tables == m.parameters


def test_state_of_the_zero_paper_is_31_4_gb_and_fp32_saves_less_than_mixed() -> None:
    assert closed("zero_state_bytes", 7.5e9, 64, 1, 2, 2, 12) == pytest.approx(31.4e9, rel=0.001)
    mixed = [closed("zero_state_bytes", 1, 8, stage, 2, 2, 12) for stage in range(4)]
    assert mixed == pytest.approx([16, 5.5, 3.75, 2])
    ours = [closed("zero_state_bytes", 1, 8, stage) for stage in range(4)]
    assert ours == pytest.approx([16, 9, 5.5, 2])
    accumulated = [closed("zero_state_bytes", 1, 8, stage, 2, 6, 12) for stage in range(4)]
    assert accumulated == pytest.approx([20, 9.5, 4.25, 2.5])
    assert closed("adam_state_bytes", 1000, 8) == closed("zero_state_bytes", 1000, 8, 3)


@pytest.mark.parametrize("run_id", ["single", "single-vocabulary", "single-long"])
def test_activations_of_the_whole_model(run_id: str) -> None:
    m, b = model(run_id), batch(run_id)
    elements = closed(
        "model_saved_elements", b.sequences, b.tokens, m.d_model, m.heads, m.layers, m.vocabulary
    )
    held = METRICS["peak_memory"](timeline(run_id), category="activations")
    assert held == pytest.approx(4 * elements, rel=0.01)


@pytest.mark.parametrize("run_id", ["recompute-reentrant", "recompute-early-stop"])
def test_activations_with_recomputation(run_id: str) -> None:
    m, b = model(run_id), batch(run_id)
    elements = closed("recomputed_saved_elements", b.sequences, b.tokens, m.d_model, m.heads, m.layers)
    held = METRICS["peak_memory"](timeline(run_id), category="activations")
    assert held == pytest.approx(4 * elements, rel=0.02)


def test_gathered_parameters_of_fsdp() -> None:
    m = model("fsdp")
    unit_parameters = closed("block_parameters", m.d_model)
    root = m.parameters - m.layers * unit_parameters
    elements = closed("fsdp_parameter_peak", m.parameters, root, unit_parameters, 4)
    held = METRICS["peak_memory"](timeline("fsdp"), rank=0, category="parameters")
    assert held == pytest.approx(4 * elements, rel=0.01)


def test_classic_activations_are_those_of_their_parts_and_ours_without_masks_and_scores() -> None:
    b, s, h, a = 2, 512, 1024, 16
    attention, mlp, norms = 11 * s * b * h + 5 * a * s * s * b, 19 * s * b * h, 4 * s * b * h
    assert closed("classic_activation_bytes", b, s, h, a) == attention + mlp + norms
    kept = closed("classic_activation_bytes", b, s, h, a, 2, 0) - 2 * 2 * a * s * s * b
    statistics = 4 * b * s + a * b * s
    assert kept == 2 * (closed("saved_elements", b, s, h, a) - statistics)


# ---- collectives


@pytest.mark.parametrize("n", [2, 3, 4, 8])
def test_a_ring_all_reduce_chunk_by_chunk(n: int) -> None:
    steps, sent, whole = ring_all_reduce(n)
    assert whole
    assert steps == closed("ring_all_reduce_steps", n)
    assert set(sent) == {steps}
    # Half of the steps are a reduce-scatter, the other half an all-gather.
    assert Fraction(steps, 2) / n == Fraction(closed("ring_share", n)).limit_denominator(100)
    size, latency, rate = 800_000, 5_000, 0.25
    time = closed("ring_all_reduce_time", n, size, latency, rate)
    assert time == pytest.approx(sum(latency + size / n / rate for _ in range(steps)))
    assert RingLink(latency, rate).duration_ns("all_reduce", size, n) == pytest.approx(time, abs=1)


def test_the_isolated_all_reduce_takes_what_the_formula_says() -> None:
    (call,) = timeline("ddp-one-bucket").calls
    free = closed("ring_all_reduce_time", 4, call.bytes, 0, 0.25)
    took = METRICS["transfer"](timeline("ddp-one-bucket"), rank=0)
    # Headers of the network take some of the nominal 2 Gbit/s, and six steps a latency each.
    assert 1 < took / free < 1.2
    assert METRICS["bus_bandwidth"](timeline("ddp-one-bucket")) == pytest.approx(0.25 * free / took)


@pytest.mark.parametrize("n", [2, 8, 512])
def test_at_the_half_bandwidth_size_latency_takes_half_of_the_time(n: int) -> None:
    size = closed("half_bandwidth_size", n, 5_000, 100)
    whole = closed("ring_all_reduce_time", n, size, 5_000, 100)
    assert closed("ring_all_reduce_time", n, size, 0, 100) == pytest.approx(whole / 2)
    assert closed("half_bandwidth_size", 8, 5_000, 100) == 4_000_000


# ---- data parallelism


def test_accumulation_turns_fsdp_into_six_times_the_bytes_of_ddp() -> None:
    """Bytes a parameter of 8 ranks, 4 micro-batches, fp32, all in units."""
    once = 4 * closed("ddp_wire_elements", 1, 8)
    assert (once, 4 * once) == (7, 28)
    every = 4 * closed("fsdp_wire_elements", 1, 0, 8, 4, 4)
    kept = 4 * closed("fsdp_wire_elements", 1, 0, 8, passes=4)
    assert (every, kept) == (42, 31.5)
    assert closed("fsdp_wire_elements", 1, 0, 8) == 1.5 * closed("ddp_wire_elements", 1, 8)


@pytest.mark.parametrize("run_id", ["fsdp-nodes", "hsdp"])
def test_elements_that_leave_a_node(run_id: str) -> None:
    m = model(run_id)
    root = m.parameters - m.layers * closed("block_parameters", m.d_model)
    expected = {
        "fsdp-nodes": closed("fsdp_wire_elements", m.parameters, root, 4),
        "hsdp": closed("hsdp_egress_elements", m.parameters, 2),
    }
    for node in range(2):
        left = METRICS["egress_bytes"](timeline(run_id), node=node)
        assert left == pytest.approx(4 * expected[run_id], rel=1e-9)
    whole = 2 * closed("hsdp_wire_elements_across", m.parameters, 2, 2)
    assert closed("hsdp_egress_elements", m.parameters, 2) == whole


@pytest.mark.parametrize(("w", "g", "expected"), [(8, 4, 21 / 8), (16, 8, 2.8125), (64, 8, 1.6875)])
def test_full_sharding_sends_more_out_of_a_node_than_hybrid(w: int, g: int, expected: float) -> None:
    full = closed("fsdp_wire_elements", 1000, 0, w)
    assert full / closed("hsdp_egress_elements", 1000, w // g) == pytest.approx(expected)


@pytest.mark.parametrize(
    "times", [(100, 60, 0.5), (100, 100, 0.5), (100, 150, 0.5), (100, 20, 2), (100, 98, 0.01)]
)
def test_buckets_against_a_queue(times: tuple[float, float, float]) -> None:
    for k in (1, 2, 7, 40, 400):
        assert closed("ddp_exposed_time", k, *times) == pytest.approx(bucket_tail(k, *times), abs=1e-9)
    tails = {k: bucket_tail(k, *times) for k in range(1, 4000)}
    best = min(tails, key=tails.__getitem__)
    found = closed("ddp_best_buckets", *times)
    assert best == pytest.approx(found, abs=1)
    assert bucket_tail(round(found), *times) == pytest.approx(tails[best], rel=0.01, abs=0.01)


def test_more_buckets_hide_more_of_a_run_until_latencies_add_up() -> None:
    """One bucket hides nothing: α + C is left. The run's own times, at its own link."""
    found = timeline("ddp-one-bucket")
    backward = METRICS["busy"](found, rank=0, phase="backward")
    transfer = METRICS["transfer"](found, rank=0)
    left = METRICS["exposed_transfer"](found, rank=0)
    assert closed("ddp_exposed_time", 1, backward, transfer, 0) == pytest.approx(left, rel=0.02)
    many = timeline("ddp-tiny-buckets")
    assert METRICS["exposed_comm"](many) < METRICS["exposed_comm"](found)


@pytest.mark.parametrize("parameters", [1e6, 7e9])
def test_at_the_hiding_number_of_tokens_backward_takes_as_long_as_the_all_reduce(parameters: float) -> None:
    n, element, peak, rate = 8, 2, 400_000, 100
    tokens = closed("ddp_hidden_tokens", n, element, peak, rate)
    assert tokens == pytest.approx(3500)
    backward = 4 * parameters * tokens / peak
    assert backward == pytest.approx(element * closed("ddp_wire_elements", parameters, n) / rate)


# ---- tensor, context, experts


def test_on_one_rank_every_way_to_cut_a_block_saves_the_same() -> None:
    shape = (2, 128, 256, 8)
    whole = closed("saved_elements", *shape)
    assert closed("tp_saved_elements", *shape, 1) == whole
    assert {closed("sp_saved_elements", *shape, 1, kept) for kept in (0, 1)} == {whole}


@pytest.mark.parametrize(("run_id", "name", "more"), [
    ("tp", "tp_saved_elements", ()), ("tp-sp", "sp_saved_elements", (1,))])  # fmt: skip
def test_activations_of_cut_blocks(run_id: str, name: str, more: tuple[int, ...]) -> None:
    m, b = model(run_id), batch(run_id)
    bs = b.sequences * b.tokens
    a_block = closed(name, b.sequences, b.tokens, m.d_model, m.heads, 4, *more)
    head = 2 * bs * m.d_model + 2 * bs + bs * m.vocabulary
    held = METRICS["peak_memory"](timeline(run_id), rank=0, category="activations")
    assert held == pytest.approx(4 * (m.layers * a_block + head), rel=0.01)


def test_kept_inputs_make_sequence_parallelism_send_as_much_as_tensor_parallelism() -> None:
    shape = (8, 128, 256, 4)
    in_layers = sum(
        METRICS["wire_bytes"](timeline("tp-sp"), rank=0, layer=layer)
        for layer in range(model("tp-sp").layers)
    )
    expected = 4 * model("tp-sp").layers * closed("sp_wire_elements", *shape, 1)
    assert in_layers == pytest.approx(expected)
    assert closed("sp_wire_elements", *shape, 1) == closed("tp_wire_elements", *shape)
    # Two all-gathers more, each of (t − 1)/t of the input.
    gather = 8 * 128 * 256 * closed("ring_share", 4)
    assert closed("sp_wire_elements", *shape, 0) == closed("tp_wire_elements", *shape) + 2 * gather


@pytest.mark.parametrize("n", [2, 4, 8])
def test_causal_pairs_by_counting_them(n: int) -> None:
    s = 64
    part, half = s // n, s // (2 * n)
    allowed = [q + 1 for q in range(s)]
    plain = [sum(allowed[i * part : (i + 1) * part]) for i in range(n)]
    assert plain == [closed("causal_pairs", s, n, i) for i in range(n)]
    chunks = [sum(allowed[i * half : (i + 1) * half]) for i in range(2 * n)]
    assert {chunks[i] + chunks[2 * n - 1 - i] for i in range(n)} == {closed("zigzag_pairs", s, n)}
    assert closed("causal_pairs", 10**6, n, n - 1) / sum(
        closed("causal_pairs", 10**6, n, i) for i in range(n)
    ) == pytest.approx(closed("causal_share", n, n - 1), rel=1e-4)

    # In lock-step: in each step of the ring all wait for the rank with most pairs.
    def pairs(queries: list[int], keys: list[int]) -> int:
        return sum(k <= q for q in queries for k in keys)

    own = [list(range(i * part, (i + 1) * part)) for i in range(n)]
    turned = [[t for c in (i, 2 * n - 1 - i) for t in range(c * half, (c + 1) * half)] for i in range(n)]
    longest = [
        sum(max(pairs(tokens[i], tokens[(i - step) % n]) for i in range(n)) for step in range(n))
        for tokens in (own, turned)
    ]
    assert longest[0] / longest[1] == pytest.approx(closed("causal_lockstep", n), rel=0.04)


@pytest.mark.parametrize("causal", [0, 1])
def test_at_the_hiding_number_of_tokens_attention_takes_as_long_as_the_next_keys(causal: int) -> None:
    width, peak, rate, element = 256, 400_000, 100, 2
    c = closed("cp_hidden_tokens", element, peak, rate, causal)
    products = 2 * (2 * c * c * width)  # scores, and their product with the values
    computing = products / peak / (2 if causal else 1)
    assert computing == pytest.approx(element * 2 * c * width / rate)


def test_a_uniform_router_by_all_its_choices() -> None:
    """Two tokens an expert, three experts: 3⁶ ways to choose."""
    ways = [max(map(choice.count, range(3))) for choice in itertools.product(range(3), repeat=6)]
    assert closed("uniform_router_imbalance", 2, 3) == pytest.approx(sum(ways) / len(ways) / 2, rel=1e-9)


@pytest.mark.parametrize(("tokens", "experts"), [(32, 8), (512, 8), (16, 64), (64, 64)])
def test_a_uniform_router_by_drawing(tokens: int, experts: int) -> None:
    drawn = np.random.default_rng(1).multinomial(tokens * experts, [1 / experts] * experts, size=4000)
    found = closed("uniform_router_imbalance", tokens, experts)
    assert found == pytest.approx(drawn.max(axis=1).mean() / tokens, rel=0.005)
    assert 1 < found < 1 + math.sqrt(2 * math.log(experts) / tokens)


# ---- pipelines

SIZES = [(2, 2), (4, 4), (4, 8), (8, 8), (4, 2), (3, 7)]


@pytest.mark.parametrize(("p", "m"), SIZES)
@pytest.mark.parametrize("order", [gpipe, one_f_one_b])
def test_gpipe_and_1f1b(order: Any, p: int, m: int) -> None:
    forward, backward = Fraction(2), Fraction(5)
    laid = lay_out(order(p, m), [{"F": forward, "B": backward}] * p)
    assert length(laid) == closed("pipeline_step_time", p, m, 2, 5)
    idle = {length(laid) - busy(lane) for lane in laid}
    assert idle == {closed("pipeline_idle_time", p, 2, 5)}
    (lost,) = idle
    assert lost / length(laid) == Fraction(closed("pipeline_bubble_fraction", p, m)).limit_denominator(10**6)
    assert lost / busy(laid[0]) == Fraction(closed("pipeline_bubble_overhead", p, m)).limit_denominator(10**6)


@pytest.mark.parametrize(("p", "m"), SIZES)
def test_micro_batches_in_flight_of_1f1b(p: int, m: int) -> None:
    for stage, order in enumerate(one_f_one_b(p, m)):
        held = [sum(1 if kind == "F" else -1 for kind, _ in order[: i + 1]) for i in range(len(order))]
        assert max(held) == closed("pipeline_in_flight", p, m, stage)


@pytest.mark.parametrize("rank", range(4))
def test_stages_in_flight_of_runs_with_two_on_a_rank(rank: int) -> None:
    expected = {
        "pp-interleaved": closed("interleaved_in_flight", 4, 8, 2, rank),
        "pp-zbv": closed("zbv_in_flight", 4),
        "pp-dualpipev": closed("dualpipev_in_flight", 4),
    }
    for run_id, most in expected.items():
        assert METRICS["in_flight"](timeline(run_id), rank=rank) == most


def test_interleaving_is_capped_by_what_there_is() -> None:
    assert closed("interleaved_in_flight", 4, 4, 2, 0) == 8
    # In stages of a rank: p(1 + (p − 1)/(pv)).
    assert closed("interleaved_in_flight", 4, 8, 2, 0) / 2 == 4 * (1 + 3 / 8)


@pytest.mark.parametrize("seed", range(20))
def test_gpipe_with_unequal_stages_and_1f1b_no_longer(seed: int) -> None:
    draw = random.Random(seed)
    p, m = draw.choice([(2, 4), (4, 8), (5, 6)])
    times = [{"F": Fraction(draw.randint(1, 9)), "B": Fraction(draw.randint(1, 9))} for _ in range(p)]
    forward, backward = ([t[kind] for t in times] for kind in "FB")
    expected = closed("gpipe_unequal_step_time", m, sum(forward), sum(backward), max(forward), max(backward))
    assert length(lay_out(gpipe(p, m), times)) == expected
    assert length(lay_out(one_f_one_b(p, m), times)) <= expected


@pytest.mark.parametrize(("p", "m"), [(2, 4), (4, 8), (4, 12), (8, 16)])
@pytest.mark.parametrize("message", [Fraction(1, 4), Fraction(1, 2)])
def test_messages_delay_gpipe_by_a_few_and_1f1b_by_many(p: int, m: int, message: Fraction) -> None:
    times = [{"F": Fraction(1), "B": Fraction(2)}] * p
    for order, delays in {
        gpipe: closed("gpipe_message_delays", p),
        one_f_one_b: closed("one_f_one_b_message_delays", p, m),
    }.items():
        free = length(lay_out(order(p, m), times))
        assert length(lay_out(order(p, m), times, message)) == free + Fraction(delays) * message


@pytest.mark.parametrize("seed", range(30))
def test_zb_h1_by_simulation(seed: int) -> None:
    draw = random.Random(seed)
    p = draw.choice([2, 4, 6])
    f, i, w = (Fraction(draw.randint(1, 8)) for _ in range(3))
    laid = lay_out(zb_h1(p, 3 * p), [{"F": f, "I": i, "W": w}] * p)
    assert {length(laid) - busy(lane) for lane in laid} == {closed("zero_bubble_idle", p, f, i, w)}


@pytest.mark.parametrize(("run_id", "expected"), [
    ("pp-interleaved", closed("pipeline_idle_time", 4, 2, 4, 2)),
    ("pp-interleaved-zb", closed("zero_bubble_idle", 4, 2, 2, 2) / 2),
    ("pp-zbv", closed("zbv_idle", 4, 1)),
    ("pp-dualpipev", closed("dualpipev_idle", 4, 1, 1, 1)),
])  # fmt: skip
def test_idle_time_of_recorded_orders_at_unit_cost(run_id: str, expected: float) -> None:
    """A stage is half of a rank: F = I = W = 1 of each of its two."""
    found = at_unit_cost(run_id)
    assert [METRICS["bubble_time"](found, rank=rank) for rank in range(4)] == [expected] * 4
    step = {"pp-interleaved": closed("pipeline_step_time", 4, 8, 2, 4, 2)}
    assert found.step_ns == step.get(run_id, found.step_ns)


def test_the_zero_of_a_zero_bubble_is_that_of_a_ranks_own_span() -> None:
    found = at_unit_cost("pp-zbv")
    assert METRICS["bubble_time"](found, span="own") == 0
    assert METRICS["bubble_time"](found) == closed("zbv_idle", 4, 1)


def test_more_micro_batches_do_not_shorten_the_bubble() -> None:
    idle = {
        length(laid) - busy(laid[0])
        for m in (4, 8, 32)
        for laid in [lay_out(one_f_one_b(4, m), [{"F": Fraction(1), "B": Fraction(2)}] * 4)]
    }
    assert idle == {closed("pipeline_idle_time", 4, 1, 2)}


def test_messages_of_recorded_pipelines() -> None:
    for run_id in ("pp-1f1b", "pp-interleaved"):
        schedule = manifest(run_id).schedule
        assert schedule is not None
        expected = closed("pipeline_messages", 4, 8, schedule.chunks)
        assert METRICS["count"](timeline(run_id), op="send") == expected
        assert METRICS["count"](timeline(run_id), op="recv") == expected


# ---- noise


def test_the_slowest_of_two_and_three_is_known_exactly() -> None:
    assert closed("expected_slowest", 1) == pytest.approx(0, abs=1e-9)
    assert closed("expected_slowest", 2) == pytest.approx(1 / math.sqrt(math.pi), rel=1e-9)
    assert closed("expected_slowest", 3) == pytest.approx(1.5 / math.sqrt(math.pi), rel=1e-9)
    known = {8: 1.424, 64: 2.344, 1024: 3.249, 8192: 3.80}
    for n, e in known.items():
        assert closed("expected_slowest", n) == pytest.approx(e, abs=0.005)


@pytest.mark.parametrize(("syncs", "expected"), [(1, 1.071), (4, 1.143), (16, 1.286)])
def test_waiting_more_often_costs_the_root_of_how_often(syncs: int, expected: float) -> None:
    found = closed("sync_penalty", 0.05, 8, syncs)
    assert found == pytest.approx(expected, abs=0.002)
    draw = np.random.default_rng(2).normal(1 / syncs, 0.05 / math.sqrt(syncs), size=(4000, syncs, 8))
    assert draw.max(axis=2).sum(axis=1).mean() == pytest.approx(found, rel=0.002)


def test_pauses_by_every_way_they_can_fall() -> None:
    """Three ranks that pause once in five steps each: the step waits whenever one of them does."""
    hit = [0 in starts for starts in itertools.product(range(5), repeat=3)]
    assert closed("pause_time", 300, 5, 3) == pytest.approx(300 * sum(hit) / len(hit))
    known = {1: 6, 8: 45, 64: 218, 512: 300}
    for n, ms in known.items():
        assert closed("pause_time", 300, 50, n) == pytest.approx(ms, abs=0.5)
