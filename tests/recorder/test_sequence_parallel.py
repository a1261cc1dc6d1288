"""Tensor with sequence parallelism, really run: two ranks."""

from __future__ import annotations

from collections import Counter

import pytest

from generator.recorder import RUNS
from generator.units import wire_bytes
from tests.recorder.small import LAYERS, Event, SmallRun, record_small

pytest.importorskip("torch", reason="recording needs PyTorch: pip install shardbook[record]")

#: Of the small shape: the residual stream [sequences, tokens, width] in FP32.
STREAM = 4 * 4 * 32 * 64


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, SmallRun]:
    out = tmp_path_factory.mktemp("runs")
    ranks = {"single": {"dp": 1}, "tp": {"tp": 2}, "tp-sp": {"tp": 2}}
    return {name: record_small(RUNS[name], out, mesh=mesh) for name, mesh in ranks.items()}


def calls_in(run: SmallRun, phase: str, name: str) -> list[Event]:
    """Calls issued inside a layer of a phase."""
    (layer,) = [e for e in run.layers() if (e["args"]["phase"], e["name"]) == (phase, name)]
    end = layer["ts"] + layer["dur"]
    return [e["args"] for e in run.spans() if "op" in e["args"] and layer["ts"] <= e["ts"] < end]


@pytest.mark.parametrize("name", ["tp", "tp-sp"])
def test_losses_agree_with_the_single_process(name: str, runs: dict[str, SmallRun]) -> None:
    assert runs[name].losses == pytest.approx(runs["single"].losses, rel=1e-6)


@pytest.mark.parametrize("phase", ["forward", "backward"])
@pytest.mark.parametrize("layer", range(LAYERS))
def test_each_all_reduce_has_become_a_pair(phase: str, layer: int, runs: dict[str, SmallRun]) -> None:
    whole, pairs = (calls_in(runs[n], phase, f"layer {layer}") for n in ("tp", "tp-sp"))
    assert Counter((c["op"], c["bytes"]) for c in whole) == {("all_reduce", STREAM): 2}
    assert Counter((c["op"], c["bytes"]) for c in pairs) == {
        ("all_gather", STREAM): 2,
        ("reduce_scatter", STREAM): 2,
    }
    sent = [sum(wire_bytes(c["op"], c["bytes"], 2) for c in calls) for calls in (whole, pairs)]
    assert sent[0] == sent[1]


def test_outside_the_layers_it_cuts_gathers_and_adds_up_the_norms(runs: dict[str, SmallRun]) -> None:
    run = runs["tp-sp"]
    embedded = calls_in(run, "forward", "embedding")
    assert Counter(c["op"] for c in embedded) == {"reduce_scatter": 2}
    assert [c["op"] for c in calls_in(run, "forward", "head")] == ["all_gather"]
    (norms,) = [c for c in run.calls() if c["op"] == "all_reduce"]
    assert norms["bytes"] == 4 * LAYERS * 4 * 64


def test_a_wait_is_never_inside_an_issue(runs: dict[str, SmallRun]) -> None:
    """Gathering by tokens waits before it returns; that wait is seen, not taken for work of the issue."""
    spans = runs["tp-sp"].spans()
    ends = {e["args"]["call"]: e["ts"] + e["dur"] for e in spans if "op" in e["args"]}
    waits = [e for e in spans if e["name"] == "wait"]
    assert len(waits) == len(ends) > 8 * LAYERS
    assert all(e["ts"] >= ends[e["args"]["call"]] for e in waits)
