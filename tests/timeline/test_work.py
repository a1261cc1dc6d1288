"""Floating-point operations, against the operators in the rank files and against the model's formulas."""

from __future__ import annotations

import gzip
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import pytest

from generator.errors import UserError
from generator.timeline.export import from_json, to_json
from generator.timeline.formulas import FORMULAS
from generator.timeline.metrics import METRICS
from generator.timeline.reconstruct import reconstruct
from tests.committed import RUNS, batch, ids_with_steps, manifest, model, timeline
from tests.timeline.synthetic import Work, write_run

flops, fastest = METRICS["flops"], METRICS["fastest_product"]
#: Runs in whose detail step some matrix products ran.
COUNTED = [r for r in ids_with_steps() if len(timeline(r).ranks[0].work.flops)]


@cache
def events(run_id: str, rank: int) -> list[dict[str, Any]]:
    """A rank's own events in the step that was recorded operator by operator, in order."""
    (step,) = [s.index for s in manifest(run_id).steps if s.detail]
    file = RUNS / run_id / manifest(run_id).ranks[rank].file
    found = orjson.loads(gzip.decompress(file.read_bytes()))["traceEvents"]
    mine = [e for e in found if e["ph"] == "X" and e["tid"] == 0 and e["args"].get("step") == step]
    return sorted(mine, key=lambda e: (e["ts"], -e["dur"]))


def around(run_id: str, rank: int) -> Counter[tuple[str, int]]:
    """Operations by phase and layer of the innermost events around each product."""
    total = Counter[tuple[str, int]]()
    stack: list[dict[str, Any]] = []
    for event in events(run_id, rank):
        while stack and stack[-1]["ts"] + stack[-1]["dur"] <= event["ts"]:
            stack.pop()
        told = event["args"]
        if "flops" in told:
            phase = next((e["args"]["phase"] for e in reversed(stack) if "phase" in e["args"]), "")
            layer = next((e["args"].get("layer", -1) for e in reversed(stack) if "module" in e["args"]), -1)
            total[phase, layer] += told["flops"]
        stack.append(event)
    return total


@pytest.mark.parametrize("run_id", COUNTED)
def test_operations_are_those_of_the_operators_by_phase_and_layer(run_id: str) -> None:
    found = timeline(run_id)
    everything = 0
    for rank in range(len(found.ranks)):
        expected = around(run_id, rank)
        assert flops(found, rank=rank) == sum(expected.values())
        everything += sum(expected.values())
        for (phase, layer), count in expected.items():
            if phase and layer >= 0:
                parts = ("backward_input", "backward_weight") if phase == "backward" else ()
                whole = count + sum(expected[part, layer] for part in parts)
                assert flops(found, rank=rank, phase=phase, layer=layer) == whole
    assert flops(found) == everything


@pytest.mark.parametrize("run_id", COUNTED)
def test_the_fastest_product_is_the_fastest_of_those_that_took_long_enough(run_id: str) -> None:
    found = timeline(run_id)
    for rank in range(len(found.ranks)):
        rates = [
            e["args"]["flops"] / (e["args"]["cpu_dur"] * 1000)
            for e in events(run_id, rank)
            if "flops" in e["args"] and round(e["args"]["cpu_dur"] * 1000) >= 100_000
        ]
        assert fastest(found, rank=rank) == pytest.approx(max(rates), rel=1e-9)


def test_no_rank_is_faster_than_its_fastest_product() -> None:
    for run_id in ("single", "ddp", "tp", "pp-1f1b"):
        found = timeline(run_id)
        for rank in range(len(found.ranks)):
            rate = flops(found, rank=rank) / METRICS["busy"](found, rank=rank)
            assert 0.3 * fastest(found, rank=rank) < rate < fastest(found, rank=rank)


def test_micro_batches_share_the_operations_evenly() -> None:
    found = timeline("accumulation")
    each = {flops(found, microbatch=m) for m in range(8)}
    assert each == {flops(timeline("single")) / 8}


@pytest.mark.parametrize("run_id", ["ddp", "fsdp", "zero2", "pp-zbv"])
def test_sharding_and_cutting_do_not_change_how_much_is_computed(run_id: str) -> None:
    assert flops(timeline(run_id)) == flops(timeline("single"))


@pytest.mark.parametrize("run_id", ["single", "single-vocabulary", "single-long"])
def test_the_model_needs_what_the_formulas_say_and_flash_attention_runs_more(run_id: str) -> None:
    m, b = model(run_id), batch(run_id)
    shape = (b.sequences, b.tokens, m.d_model)
    needed = FORMULAS["step_flops"].function(*shape, m.layers, m.vocabulary)
    again = 2 * b.sequences * m.layers * b.tokens**2 * m.d_model
    assert flops(timeline(run_id)) == needed + again
    in_products = m.layers * 12 * m.d_model**2 + m.d_model * m.vocabulary
    a_token = FORMULAS["token_flops"].function(in_products, m.layers, b.tokens, m.d_model)
    assert b.sequences * b.tokens * a_token == needed
    forward = flops(timeline(run_id), phase="forward", layer=3)
    assert forward == FORMULAS["block_forward_flops"].function(*shape)
    ratio = flops(timeline(run_id), phase="backward", layer=3) / forward
    expected = FORMULAS["flash_backward_over_forward"].function(b.tokens, m.d_model)
    assert ratio == pytest.approx(expected, rel=1e-12)
    head = flops(timeline(run_id), module="head", phase="backward")
    assert head / flops(timeline(run_id), module="head", phase="forward") == 2
    assert FORMULAS["backward_over_forward"].function() == 2


@pytest.mark.parametrize(("run_id", "early_stop"), [("recompute-reentrant", 0), ("recompute-early-stop", 1)])
def test_what_is_computed_again_counts_again_in_backward(run_id: str, early_stop: int) -> None:
    m, b = model(run_id), batch(run_id)
    again = FORMULAS["block_recompute_flops"].function(b.sequences, b.tokens, m.d_model, early_stop)
    extra = {
        phase: flops(timeline(run_id), phase=phase) - flops(timeline("single"), phase=phase)
        for phase in ("forward", "backward")
    }
    assert extra == {"forward": 0, "backward": m.layers * again}


def test_a_hot_expert_has_the_operations_of_its_tokens() -> None:
    """5/8 of the tokens come to rank 0, 2.5 times the mean; attention is the same on all."""
    skewed, even = timeline("ep-skewed"), timeline("ep-balanced")
    experts = [flops(skewed, rank=r, layer=3) - flops(even, rank=r, layer=3) for r in range(len(even.ranks))]
    assert sum(experts) == 0
    assert METRICS["load_imbalance"](skewed) == 2.5
    assert METRICS["load_imbalance"](even) == 1
    assert experts[0] == 1.5 * -2 * experts[1]


def test_operations_survive_the_file() -> None:
    written = to_json(timeline("ep-skewed"))
    read = from_json(written)
    assert to_json(read) == written
    assert flops(read, phase="backward", layer=2) == flops(timeline("ep-skewed"), phase="backward", layer=2)
    assert fastest(read) == fastest(timeline("ep-skewed"))
    assert METRICS["load_imbalance"](read) == 2.5


def test_a_run_without_operators_says_so(tmp_path: Path) -> None:
    found = reconstruct(write_run(tmp_path, [[Work(10)]]), mode="recorded")
    for metric in (flops, fastest):
        with pytest.raises(UserError, match="recorded no matrix products"):
            metric(found)
