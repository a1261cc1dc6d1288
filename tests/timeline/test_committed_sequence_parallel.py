"""The committed recording of tensor with sequence parallelism, held against closed forms and plain TP."""

from __future__ import annotations

from collections import Counter

import pytest

from generator.timeline.formulas import FORMULAS
from generator.timeline.metrics import METRICS
from generator.timeline.spans import Timeline
from tests.committed import model, timeline

T, LAYERS, HEADS, WIDTH, VOCABULARY = 4, 8, 8, 256, 1024
#: Sequences times tokens, and elements of the residual stream.
BS = 8 * 128
E = BS * WIDTH


def recorded(run_id: str) -> Timeline:
    return timeline(run_id, "recorded")


@pytest.mark.parametrize("phase", ["forward", "backward"])
@pytest.mark.parametrize("layer", range(LAYERS))
def test_each_layer_gathers_and_scatters_twice_where_tp_reduces_twice(layer: int, phase: str) -> None:
    def calls(run_id: str) -> Counter[tuple[str, int]]:
        found = [c for c in recorded(run_id).calls if (c.layer, c.phase) == (layer, phase)]
        return Counter((c.op, c.bytes) for c in found)

    assert calls("tp-sp") == {("all_gather", 4 * E): 2, ("reduce_scatter", 4 * E): 2}
    assert calls("tp") == {("all_reduce", 4 * E): 2}


def test_what_is_not_in_layers_is_few() -> None:
    """Embedding: tokens and positions cut, and gathered for backward; head: gathered; norms: added up."""
    outside = Counter((c.op, c.phase, c.bytes) for c in recorded("tp-sp").calls if c.layer < 0)
    positions = 4 * 128 * WIDTH
    assert outside == {
        ("reduce_scatter", "forward", 4 * E): 1, ("reduce_scatter", "forward", positions): 1,
        ("all_gather", "forward", 4 * E): 1,
        ("all_gather", "backward", 4 * E): 1, ("all_gather", "backward", positions): 1,
        ("all_reduce", "", 4 * LAYERS * 4 * WIDTH): 1,
    }  # fmt: skip


def test_wire_bytes_in_layers_are_those_of_the_all_reduces() -> None:
    """8 Bsh (t - 1)/t elements a layer, with sequence parallelism as without."""
    expected = 4 * LAYERS * 8 * E * (T - 1) / T
    norms = 4 * LAYERS * 4 * WIDTH
    outside = 4 * ((3 * E + 2 * 128 * WIDTH) * (T - 1) / T) + norms * 2 * (T - 1) / T
    assert METRICS["wire_bytes"](recorded("tp-sp"), rank=0) == pytest.approx(expected + outside)
    assert METRICS["wire_bytes"](recorded("tp"), rank=0) == pytest.approx(expected)
    assert FORMULAS["tp_wire_elements"].function(8, 128, WIDTH, T) * 4 * LAYERS == pytest.approx(expected)


def test_tensor_parallelism_has_four_all_reduces_a_layer_and_no_other_call() -> None:
    count = METRICS["count"](recorded("tp"), op="all_reduce")
    assert count == METRICS["count"](recorded("tp")) == FORMULAS["tp_all_reduces"].function(LAYERS)


def held(run_id: str, category: str) -> float:
    return float(METRICS["peak_memory"](recorded(run_id), rank=0, category=category))


@pytest.mark.parametrize(("run_id", "per_layer"), [("tp", 4 + 12 / T), ("tp-sp", 2 + 14 / T)])
def test_activations_are_a_share_of_the_layers(run_id: str, per_layer: float) -> None:
    """Elements of Bsh a layer: 4 + 12/t, or 2 + 14/t where norms and stream are cut and inputs gathered.

    Besides: a norm's mean and deviation for each token it sees, attention's log-sum for each head and
    token, and of the head, which is whole, its input, its norm's output and the log-softmax.
    """
    seen = BS if run_id == "tp" else BS / T
    layers = LAYERS * (per_layer * E + 4 * seen + HEADS / T * BS)
    head = 2 * E + 2 * BS + BS * VOCABULARY
    assert held(run_id, "activations") == pytest.approx(4 * (layers + head), rel=0.01)


def test_a_rank_holds_a_share_of_embedding_and_blocks_and_the_whole_head() -> None:
    m = model("tp-sp")
    norms, head = LAYERS * 4 * WIDTH, (VOCABULARY + 2) * WIDTH
    mine = (m.parameters - norms - head) / T + norms + head
    assert m.parameters_per_rank == (mine,) * T
    assert held("tp-sp", "parameters") == 4 * mine
    assert held("tp-sp", "optimizer") == pytest.approx(8 * mine, rel=0.02)
