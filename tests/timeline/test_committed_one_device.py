"""The committed recordings of one process, held against closed forms."""

from __future__ import annotations

import gzip
import json
from functools import cache
from typing import Any

import pytest

from generator.runs.manifest import Batch, Model
from generator.runs.run import Kind
from generator.timeline.formulas import FORMULAS
from generator.timeline.metrics import METRICS
from tests.committed import batch, model, run, timeline

RECOMPUTED = ("recompute-reentrant", "recompute-early-stop")
ONE = (*RECOMPUTED, "accumulation")
Event = dict[str, Any]


def shape() -> tuple[Model, Batch]:
    return model("single"), batch("single")


@cache
def operations(run_id: str) -> list[Event]:
    """Every event of the rank's thread in the step that was recorded in detail."""
    ours = run(run_id)
    (step,) = [s.index for s in ours.manifest.steps if s.detail]
    text = gzip.decompress((ours.folder / ours.manifest.ranks[0].file).read_bytes())
    events = json.loads(text)["traceEvents"]
    return [e for e in events if e["ph"] == "X" and e["tid"] == 0 and e["args"].get("step") == step]


def flops(events: list[Event]) -> int:
    return sum(e["args"].get("flops", 0) for e in events)


def test_flops_of_the_single_process_are_those_of_the_formula() -> None:
    """72BLsh²(1 + V/12hL) for the matrix products; attention 4Bs²h forward and, flash, 10Bs²h backward."""
    m, batch = shape()
    bs, s, h = batch.sequences * batch.tokens, batch.tokens, m.d_model
    products = 72 * m.layers * bs * h * h + 6 * bs * h * m.vocabulary
    assert flops(operations("single")) == products + m.layers * (4 + 10) * bs * s * h


def extra(run_id: str) -> int:
    return flops(operations(run_id)) - flops(operations("single"))


def test_reentrant_recomputation_adds_the_forward_of_every_block() -> None:
    m, batch = shape()
    forward = FORMULAS["block_forward_flops"].function(batch.sequences, batch.tokens, m.d_model)
    assert extra("recompute-reentrant") == m.layers * forward


def test_early_stop_leaves_out_the_last_product_of_every_block() -> None:
    """16Bsh² + 4Bs²h a block: (16h + 4s)/(72h + 12s) of the block's FLOPs without flash attention."""
    m, batch = shape()
    b, s, h = batch.sequences, batch.tokens, m.d_model
    again = FORMULAS["block_recompute_flops"].function(b, s, h, 1)
    assert extra("recompute-early-stop") == m.layers * again
    assert extra("recompute-reentrant") - extra("recompute-early-stop") == m.layers * 8 * b * s * h * h
    # Against a backward of twice the forward; flash attention's is longer.
    overhead = FORMULAS["recompute_overhead"].function
    forward = FORMULAS["block_forward_flops"].function(b, s, h)
    assert overhead(s, h, 1) == pytest.approx(again / (3 * forward))
    assert overhead(s, h, 0) == pytest.approx(1 / 3)


@pytest.mark.parametrize("run_id", RECOMPUTED)
def test_what_is_computed_again_lies_inside_the_layers_marked_so(run_id: str) -> None:
    events = operations(run_id)
    again = [e for e in events if e["args"].get("recompute")]
    assert [e["args"]["layer"] for e in again] == list(reversed(range(shape()[0].layers)))
    inside = [e for e in events if any(a["ts"] <= e["ts"] < a["ts"] + a["dur"] for a in again)]
    assert flops(inside) == extra(run_id)


def peak(run_id: str, category: str) -> float:
    return METRICS["peak_memory"](timeline(run_id), rank=0, category=category)


def test_memory_of_one_process_is_what_adam_in_fp32_needs() -> None:
    psi = shape()[0].parameters
    got = [peak("single", c) for c in ("parameters", "gradients", "optimizer")]
    assert got == pytest.approx([4 * psi, 4 * psi, 8 * psi], rel=0.02)
    assert sum(got) == pytest.approx(FORMULAS["adam_state_bytes"].function(psi), rel=0.02)


def test_activations_of_one_process_are_those_of_the_formula() -> None:
    """FP32, without dropout: L(16E + 4Bs + aBs) + 2E + 2Bs + BsV elements, E = B·s·h; derived by hand."""
    m, batch = shape()
    bs = batch.sequences * batch.tokens
    e = bs * m.d_model
    elements = m.layers * (16 * e + 4 * bs + m.heads * bs) + 2 * e + 2 * bs + bs * m.vocabulary
    assert peak("single", "activations") == pytest.approx(4 * elements, rel=0.05)


@pytest.mark.parametrize("run_id", RECOMPUTED)
def test_recomputation_holds_the_inputs_of_all_blocks_and_one_block(run_id: str) -> None:
    """One block saves 16E + 4Bs + aBs elements, of which its input, E, is among the L inputs."""
    m, batch = shape()
    e = batch.sequences * batch.tokens * m.d_model
    block = FORMULAS["saved_elements"].function(batch.sequences, batch.tokens, m.d_model, m.heads)
    elements = m.layers * e + block - e
    assert peak(run_id, "activations") == pytest.approx(4 * elements, rel=0.02)


def test_accumulation_holds_the_activations_of_one_micro_batch() -> None:
    microbatches = run("accumulation").manifest.options.accumulation
    assert microbatches == 8
    share = peak("accumulation", "activations") / peak("single", "activations")
    assert share == pytest.approx(1 / microbatches, rel=0.02)
    for category in ("parameters", "gradients", "optimizer"):
        assert peak("accumulation", category) == peak("single", category)


def test_accumulation_has_one_forward_and_one_backward_a_micro_batch() -> None:
    trace = run("accumulation").ranks[0]
    chosen = (trace.kind == Kind.PHASE) & (trace.step == 3)
    names = [trace.text(int(i)) for i in trace.phase[chosen]]
    assert names == ["forward", "backward"] * 8 + ["optimizer"]
    assert [int(m) for m in trace.microbatch[chosen][:-1]] == [m for m in range(8) for _ in (0, 1)]


def test_accumulation_is_told_by_micro_batch_in_timelines() -> None:
    found = timeline("accumulation")
    assert found.microbatches == 8
    assert set(found.ranks[0].computation.microbatch) == {*range(8), -1}
