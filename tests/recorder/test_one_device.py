"""One process: activation recomputation and gradient accumulation, really run."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from generator.recorder import RUNS
from generator.runs.manifest import Options
from tests.recorder.small import DETAIL, LAYERS, Event, SmallRun, record_small, small_shape

pytest.importorskip("torch", reason="recording needs PyTorch: pip install shardbook[record]")

RECOMPUTED = ("recompute-reentrant", "recompute-early-stop")
MICROBATCHES = 4


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, SmallRun]:
    out = tmp_path_factory.mktemp("runs")
    changed = replace(RUNS["accumulation"], options=Options(accumulation=MICROBATCHES))
    specs = [*(RUNS[name] for name in ("single", *RECOMPUTED)), changed]
    return {spec.id: record_small(spec, out) for spec in specs}


@pytest.mark.parametrize("name", [*RECOMPUTED, "accumulation"])
def test_losses_agree_with_the_single_process(name: str, runs: dict[str, SmallRun]) -> None:
    assert runs[name].losses == pytest.approx(runs["single"].losses, rel=1e-6)


def inside(inner: Event, outer: Event) -> bool:
    return bool(
        outer["ts"] <= inner["ts"] and inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"] + 0.001
    )


@pytest.mark.parametrize("name", RECOMPUTED)
def test_every_block_is_computed_again_inside_its_backward(name: str, runs: dict[str, SmallRun]) -> None:
    layers = runs[name].layers()
    again = [e for e in layers if e["args"].get("recompute")]
    assert [e["name"] for e in again] == [f"recompute layer {i}" for i in reversed(range(LAYERS))]
    for event in again:
        (around,) = [
            e for e in layers if e is not event and e["args"]["phase"] == "backward" and inside(event, e)
        ]
        assert around["args"]["layer"] == event["args"]["layer"]
        assert event["args"]["phase"] == "backward"
    assert not any(e["args"].get("recompute") for e in runs["single"].layers())


def flops(events: list[Event]) -> int:
    return sum(e["args"].get("flops", 0) for e in events)


def test_recomputing_a_block_costs_its_forward(runs: dict[str, SmallRun]) -> None:
    """A block's forward is 24Bsh² + 4Bs²h FLOPs; stopping early leaves out w2, 8Bsh² of them."""
    shape = small_shape()
    bs, s, h = shape.sequences * shape.tokens, shape.tokens, shape.d_model
    forward, last_product = 24 * bs * h * h + 4 * bs * s * h, 8 * bs * h * h
    plain = flops(runs["single"].spans(step=DETAIL))
    extra = {name: flops(runs[name].spans(step=DETAIL)) - plain for name in RECOMPUTED}
    assert extra == {
        "recompute-reentrant": LAYERS * forward,
        "recompute-early-stop": LAYERS * (forward - last_product),
    }
    for name in RECOMPUTED:
        spans = runs[name].spans(step=DETAIL)
        again = [e for e in spans if e["args"].get("recompute")]
        assert flops([e for e in spans if any(inside(e, a) for a in again)]) == extra[name]


@pytest.mark.parametrize("name", RECOMPUTED)
def test_only_the_inputs_of_blocks_and_one_block_are_held(name: str, runs: dict[str, SmallRun]) -> None:
    shape = small_shape()
    bs = shape.sequences * shape.tokens
    e = bs * shape.d_model
    # All blocks' inputs, and the rest of what one block saves; the head's is gone by then.
    elements = LAYERS * e + 15 * e + (4 + shape.heads) * bs
    held = max(s["activations"] for s in runs[name].memory())
    assert held == pytest.approx(4 * elements + 8 * bs, rel=0.02)
    assert held < max(s["activations"] for s in runs["single"].memory())


def test_micro_batches_run_one_after_the_other(runs: dict[str, SmallRun]) -> None:
    run = runs["accumulation"]
    phases = [(e["name"], e["args"].get("microbatch")) for e in run.phases()]
    expected = [(name, m) for m in range(MICROBATCHES) for name in ("forward", "backward")]
    assert phases == [*expected, ("optimizer", None)]
    per_layer = Counter((e["name"], e["args"]["microbatch"]) for e in run.layers())
    assert set(per_layer.values()) == {2}
    assert len(per_layer) == MICROBATCHES * (LAYERS + 2)


def test_accumulation_holds_the_activations_of_one_micro_batch(runs: dict[str, SmallRun]) -> None:
    def most(name: str, category: str) -> int:
        return max(s[category] for s in runs[name].memory())

    ratio = most("accumulation", "activations") / most("single", "activations")
    assert ratio == pytest.approx(1 / MICROBATCHES, rel=0.05)
    for category in ("parameters", "gradients", "optimizer"):
        assert most("accumulation", category) == most("single", category)
