"""The words of the course, asked of the committed runs as an exercise would."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from generator.errors import UserError
from generator.lessons.expressions import evaluate
from generator.lessons.scope import Scope
from generator.lessons.vocabulary import AXES, TEXT_FILTERS, default_vocabulary
from generator.runs.manifest import Mesh
from generator.runs.reader import run_ids
from generator.timeline.metrics import METRICS, PHASES
from generator.timeline.metrics.memory import MOMENTS
from generator.timeline.metrics.pipeline import SPANS
from generator.timeline.program import MODULES
from generator.timeline.reconstruct import reconstruct
from generator.timeline.spans import Timeline
from generator.units import magnitude, show
from tests.committed import RUNS, calibration_of, manifest, run, timeline


def timelines(run_id: str, mode: str, step: int | None = None) -> Timeline:
    if step is None:
        return timeline(run_id, mode)
    return reconstruct(run(run_id), mode=mode, calibration=calibration_of(run_id), step=step)


def ask(expression: str, run_id: str) -> Any:
    manifests = {r: manifest(r) for r in run_ids(RUNS)}
    scope = Scope(run_id, manifests, timelines, default_vocabulary())
    return evaluate(expression, scope, path=Path("page.md"), line=1)


def refusal(expression: str, run_id: str) -> str:
    with pytest.raises(UserError) as caught:
        ask(expression, run_id)
    assert caught.value.remedy
    return str(caught.value)


#: What the exercises of each chapter compute, as a statement that must be true of a run.
COURSE = [
    # A. One device
    ("single", "phase_end(phase='forward') <= phase_begin(phase='backward')"),
    ("single", "1.5 < busy(phase='backward', layer=3) / busy(phase='forward', layer=3) < 3"),
    ("single", "memory(category='parameters') + memory(category='gradients') + memory(category='optimizer')"
               " + memory(category='activations') + memory(category='communication')"
               " + memory(category='other') == peak_memory()"),
    ("single", "memory(at='begin', category='activations') < memory(category='activations') / 1000"),
    ("single", "phase_begin(phase='backward') - 20 * ms < peak_time()"
               " and peak_time() < phase_end(phase='backward')"),
    ("single", "0.5 < flops() / step_time() / fastest_product() < 1"),
    ("single", "step_flops(sequences(), tokens(), d_model(), layers(), vocabulary()) < flops()"),
    ("recompute-reentrant", "flops() - flops(run='single')"
                            " == layers() * block_forward_flops(sequences(), tokens(), d_model())"),
    ("recompute-early-stop", "step_time() > step_time(run='single')"
                             " and peak_memory() < peak_memory(run='single')"),
    ("accumulation", "in_flight() == 1 and microbatches() == 8"),
    # B. Collectives
    ("ring-all-reduce", "count(op='send', rank=0) == count(op='recv', rank=0)"
                        " and count(op='send', rank=0) == ring_all_reduce_steps(ranks())"),
    ("collectives", "wire_bytes(rank=0, op='all_reduce')"
                    " == wire_bytes(rank=0, op='reduce_scatter') + wire_bytes(rank=0, op='all_gather')"),
    ("late-rank", "late_rank() == 2 and wait(rank=2) < wait(rank=0) / 10"),
    ("late-rank", "longest_call(rank=2) < longest_call(rank=0)"),
    ("late-rank", "bus_bandwidth(rank=0) > 3 * (wire_bytes(rank=0) / comm_time(rank=0))"),
    # C. Data parallel and sharding
    ("ddp", "0.3 < overlap(rank=0) < 0.8"),
    ("ddp", "count(step=0) == 1 and count() > 20"),
    ("ddp", "call_begin(rank=0) < phase_end(phase='backward', rank=0)"),
    ("ddp-accumulate-sync", "count() == microbatches() * count(run='ddp-accumulate')"),
    ("zero1-library", "wire_bytes(rank=0)"
                      " == element_size() * zero1_library_wire_elements(parameters(), ranks())"),
    ("fsdp", "count(op='all_gather') == fsdp_all_gathers(units())"),
    ("fsdp", "exposed_comm(op='all_gather', phase='forward', rank=0) < exposed_comm(rank=0)"),
    ("fsdp", "step_time(run='fsdp-no-prefetch') > step_time()"),
    ("hsdp", "abs(egress_bytes(node=0) - element_size() * hsdp_egress_elements(parameters(), 2)) < 1 * B"),
    ("fsdp-nodes", "2 < egress_bytes(node=0) / egress_bytes(node=0, run='hsdp') < 21 / 8"),
    # D. Tensor, sequence, context, expert
    ("tp", "count(op='all_reduce', layer=3, phase='backward') == 2"),
    ("tp-sp", "count(op='all_gather', layer=3) == count(op='reduce_scatter', layer=3)"),
    ("cp-ring", "max(busy(rank='each')) == busy(rank=3)"),
    ("cp-ring", "flops(rank=3) > flops(rank=0)"),
    ("cp-ring-zigzag", "max(flops(rank='each')) == min(flops(rank='each'))"),
    ("cp-ring", "wire_bytes(rank=0, op='send', phase='backward')"
                " > 2 * wire_bytes(rank=0, op='send', phase='forward')"),
    ("cp-ulysses", "count(op='all_to_all', layer=3, phase='forward') == 4"),
    ("ep-skewed", "load_imbalance() == 2.5 and load_imbalance(run='ep-balanced') == 1"),
    ("ep-skewed", "late_rank(op='all_to_all') == 0"),
    # E. Pipeline
    ("pp-gpipe", "bubble_fraction() > pipeline_bubble_fraction(stages(), microbatches())"),
    ("pp-1f1b", "in_flight(rank=1) == pipeline_in_flight(stages(), microbatches(), 1)"),
    ("pp-interleaved", "3 * count() == 7 * count(run='pp-1f1b')"),
    ("pp-zbv", "bubble_fraction(span='own') < bubble_fraction()"),
    ("pp-unequal", "max(busy(rank='each')) / mean(busy(rank='each')) > 1.4"),
    ("pp-unequal", "sum(busy(rank='each', module='head')) > sum(busy(rank='each', layer=3))"),
    ("pp-gpipe", "sum(busy(rank='each', microbatch=0)) < sum(busy(rank='each')) / 4"),
    # F. Together
    ("3d", "mesh_size(axis='tp') == 2 and coordinate(axis='tp', rank=1) == 1"),
    ("3d", "count(op='all_reduce', rank=0) > count(op='all_gather', rank=0)"),
    ("fsdp-tp", "egress_bytes(op='all_reduce') == 0 and egress_bytes(op='all_gather') > 0"),
    # G. Clinic: the measures that tell one illness from another
    ("late-rank", "max(lateness(rank='each')) == lateness(rank=2)"),
    ("ddp", "host_time() < step_time() / 10"),
    ("ddp-accumulate", "payload_bytes() == element_size() * parameters()"),
]  # fmt: skip


@pytest.mark.parametrize(("run_id", "statement"), COURSE)
def test_the_course_can_ask_what_it_has_to(run_id: str, statement: str) -> None:
    assert ask(statement, run_id).result is True


def test_every_metric_is_asked_for() -> None:
    asked = " ".join(statement for _, statement in COURSE)
    elsewhere = {"blocked", "idle", "exposed_transfer", "transfer", "call_end", "shortest_call",
                 "algorithm_bandwidth", "bubble_overhead", "bubble_time"}  # fmt: skip
    assert {name for name in METRICS if f"{name}(" not in asked} == elsewhere


def test_filters_say_what_the_metrics_know() -> None:
    assert TEXT_FILTERS["phase"] == tuple(PHASES)
    assert TEXT_FILTERS["at"] == MOMENTS
    assert TEXT_FILTERS["span"] == SPANS
    assert TEXT_FILTERS["module"] == MODULES
    assert {f.name for f in fields(Mesh)} == {*AXES, "coordinates"}


def test_every_text_filter_of_a_metric_is_checked() -> None:
    taken = {p for m in METRICS.values() for p in m.parameters}
    numbers = {"rank", "layer", "microbatch", "node"}
    assert taken <= {*TEXT_FILTERS, "group", *numbers}


@pytest.mark.parametrize(
    ("run_id", "expression", "says"),
    [
        ("ddp", "count(step=7)", "no step 7 whose times can be used"),
        ("ddp", "count(step=99)", "Its steps are 0, 1, 2, 3, 4, 5, 6."),
        ("ddp", "count(group='nowhere')", "has no group 'nowhere'"),
        ("ddp", "count(group=0)", "'group' must be text"),
        ("ddp", "busy(module='hed')", "Did you mean 'head'?"),
        ("ddp", "memory(at='bakward')", "Did you mean 'backward'?"),
        ("pp-1f1b", "bubble_time(span='onw')", "Did you mean 'own'?"),
        ("ddp", "egress_bytes(node=4)", "has no node 4"),
        ("ddp", "egress_bytes(rank=0)", "egress_bytes takes no 'rank'"),
        ("single", "bus_bandwidth()", "so it has no bandwidth"),
        ("single", "late_rank()", "nobody is late"),
        ("pp-1f1b", "late_rank()", "nobody is late"),
        ("ddp", "load_imbalance()", "no such all-to-all"),
        ("ddp", "phase_begin(phase='backward_weight')", "no rank computes that"),
        ("single", "call_end(rank=0)", "rank 0 in no way takes part"),
        ("3d", "mesh_size()", "no axis is named"),
        ("3d", "coordinate(axis='tp')", "is that of a rank"),
        ("ddp", "measured_time(op='all_reduce')", "no such call"),
        ("ddp", "fitted_rate(run='link-2gbit', op='all_reduce')", "several such calls"),
        ("ddp", "measured_time(run='link-2gbit', op='send', members=2, size=7)", "Its sizes are"),
        ("ddp", "ring_all_reduce_time(4, step_time(), 1 * ms, link_rate())",
         "size of ring_all_reduce_time is a size in bytes, not a time"),
        ("ddp", "half_bandwidth_size(8, 5, 100)", "Give it with a unit, such as 1 * ns."),
        ("ddp", "half_bandwidth_size(4, 1 * ms, link_rate() / element_size())", "1 * B / ns"),
        ("ddp", "ring_share(1 * ms)", "n of ring_share is a pure number, not a time"),
        ("ddp", "zero_bubble_idle(4, 1 * ms, 1, 1)", "is a time, not a pure number"),
        ("ddp", "zero_state_bytes(parameters(), 4, 1, 2, 2, 12)", "is a size in bytes, not a pure number"),
        ("ddp", "ring_share(n='4')", "calculates with text"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_is_refused_in_one_line(run_id: str, expression: str, says: str) -> None:
    told = refusal(expression, run_id)
    assert says in told
    assert "\n" not in told


def test_formulas_take_and_give_units() -> None:
    size = ask("half_bandwidth_size(8, 5 * us, 100 * GB / s)", "ddp").result
    assert show(size) == "4\u2009MB"
    time = ask("ring_all_reduce_time(ranks(), payload_bytes(), 0, link_rate())", "ddp-one-bucket").result
    assert magnitude(time, "ms") == pytest.approx(2 * 3 / 4 * 27.428864 / 0.25)
    assert show(ask("step_flops(8, 128, 256, 8, 1024)", "ddp").result) == "43.5\u2009GFLOP"
    in_time = ask("zero_bubble_idle(4, 1 * ms, 2 * ms, 1 * ms)", "pp-zbv").result
    assert show(in_time) == "6\u2009ms"


def test_a_schedule_can_be_asked_at_unit_cost() -> None:
    idle = ask("zero_bubble_idle(4, 1, 1, 1) / pipeline_step_time(4, 8, 1, 2)", "pp-zbv").result
    assert magnitude(idle) == pytest.approx(3 / 33)
    assert show(ask("ddp_best_buckets(100, 100, 0.5)", "ddp").result) == "14.14"


def test_achieved_rates_are_shown_as_operations_per_second() -> None:
    rate = ask("flops(rank=0) / step_time()", "single").result
    assert show(rate).endswith("\u2009GFLOP/s")
    assert magnitude(rate, "GFLOP/s") == pytest.approx(44.023414784 / (timeline("single").step_ns / 1e9))
    share = ask("flops() / flops(run='recompute-reentrant')", "single").result
    assert show(share, "%") == "75.9\u2009%"


@pytest.mark.parametrize(
    ("expression", "label"),
    [
        ("count(step=0)", "recorded"),
        ("step_time(step=3)", "reconstructed"),
        ("step_time(mode='recorded', step=3)", "recorded"),
        ("flops() / step_time()", "reconstructed"),
        ("egress_bytes()", "formula"),
        ("mesh_size(axis='dp')", "formula"),
        ("fitted_rate(run='link-2gbit', op='send', members=2)", "recorded"),
        ("memory(at='begin')", "recorded"),
    ],
)
def test_words_know_where_their_numbers_come_from(expression: str, label: str) -> None:
    assert ask(expression, "ddp").label == label


def test_another_step_is_that_step() -> None:
    times = [magnitude(ask(f"step_time(mode='recorded', step={s})", "ddp").result, "ns") for s in range(2, 7)]
    assert sorted(times)[2] == timeline("ddp", "recorded").step_ns


def test_a_line_through_a_calibration_is_that_of_least_squares() -> None:
    rows = [r for r in manifest("link-2gbit").table if (r.op, r.members) == ("all_reduce", 4)]
    slope, start = np.polyfit([r.bytes for r in rows], [r.median_ns for r in rows], 1)
    here = "run='link-2gbit', op='all_reduce', members=4"
    assert magnitude(ask(f"fitted_latency({here})", "ddp").result, "ns") == pytest.approx(start)
    assert magnitude(ask(f"fitted_rate({here})", "ddp").result, "B/ns") == pytest.approx(1 / slope)
    largest = rows[-1]
    told = ask(f"measured_time({here}, size={largest.bytes})", "ddp").result
    assert magnitude(told, "ns") == largest.median_ns
    # A ring sends 2(n − 1)/n of the payload: the link's rate, but for headers.
    rate = ask(f"2 * ring_share(4) * fitted_rate({here}) / link_rate()", "ddp").result
    assert 0.8 < magnitude(rate) < 1


def test_coordinates_are_those_of_the_manifest() -> None:
    for rank, where in enumerate(manifest("3d").mesh.coordinates):
        for axis in AXES:
            told = ask(f"coordinate(axis='{axis}', rank={rank})", "3d").result
            assert magnitude(told) == where.get(axis, 0)
    product = " * ".join(f"mesh_size(axis='{axis}')" for axis in AXES)
    assert ask(f"{product} == ranks()", "3d").result is True
