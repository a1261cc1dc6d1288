"""What the committed runs on meshes of several dimensions show, held against closed forms."""

from __future__ import annotations

from collections import Counter

import pytest

from generator.runs.manifest import nodes_of
from generator.timeline.formulas import FORMULAS
from generator.timeline.links import ring_link, table_link
from generator.timeline.metrics import METRICS
from tests.committed import at_unit_cost, batch, calibration_of, manifest, model, timeline

MESHES = ("fsdp-tp", "3d")
T = 2
M = 4


def groups(run_id: str, op: str) -> Counter[tuple[int, ...]]:
    return Counter(c.ranks for c in timeline(run_id).calls if c.op == op)


def test_fsdp_and_tp_each_have_groups_of_their_own() -> None:
    layers = model("fsdp-tp").layers
    reduces = FORMULAS["tp_all_reduces"].function(layers)
    gathers = FORMULAS["fsdp_all_gathers"].function(layers)
    scatters = FORMULAS["fsdp_reduce_scatters"].function(layers)
    assert groups("fsdp-tp", "all_reduce") == {(0, 1): reduces, (2, 3): reduces}
    assert groups("fsdp-tp", "all_gather") == {(0, 2): gathers, (1, 3): gathers}
    assert groups("fsdp-tp", "reduce_scatter") == {(0, 2): scatters, (1, 3): scatters}
    assert groups("fsdp-tp", "send") == {}


def test_the_groups_of_three_dimensions_are_the_lines_of_a_cube() -> None:
    """Rank = 4·stage + 2·shard + tp. A stage gathers once a step and reduces once, whatever m is."""
    per_stage = model("3d").layers // 2
    tensor = {(r, r + 1): 4 * per_stage * M for r in (0, 2, 4, 6)}
    shard = {(r, r + 2): per_stage + 1 for r in (0, 1, 4, 5)}
    pipe = {pair: M for r in range(4) for pair in ((r, r + 4), (r + 4, r))}
    assert groups("3d", "all_reduce") == tensor
    assert groups("3d", "all_gather") == groups("3d", "reduce_scatter") == shard
    assert groups("3d", "send") == pipe


@pytest.mark.parametrize("run_id", MESHES)
def test_tensor_parallel_groups_stay_inside_a_node_and_all_others_cross(run_id: str) -> None:
    per_node = manifest(run_id).link.ranks_per_node
    assert per_node == 2
    for call in timeline(run_id).calls:
        assert nodes_of(call.ranks, per_node) == (1 if call.op == "all_reduce" else 2)


def blocks(run_id: str) -> int:
    """Parameters of all layers that tensor parallelism cuts."""
    m = model(run_id)
    return int(m.layers * 12 * m.d_model**2)


def test_wire_bytes_of_fsdp_across_nodes_are_those_of_half_of_each_block() -> None:
    """f(2Ψ_blocks + Ψ_root + Ψ) with f = 1/2, of what is left of the blocks after the cut by t = 2."""
    m = model("fsdp-tp")
    norms = m.layers * 4 * m.d_model
    cut = blocks("fsdp-tp") // T + norms
    root = m.parameters - blocks("fsdp-tp") - norms
    wire = METRICS["wire_bytes"]
    gathered = wire(timeline("fsdp-tp"), rank=0, op="all_gather")
    reduced = wire(timeline("fsdp-tp"), rank=0, op="reduce_scatter")
    assert gathered == pytest.approx(4 / 2 * (2 * cut + root))
    assert reduced == pytest.approx(4 / 2 * (cut + root))


def test_wire_bytes_of_tensor_parallelism_are_those_of_half_of_the_batch() -> None:
    m, whole = model("fsdp-tp"), batch("fsdp-tp")
    sequences = whole.sequences // 2
    elements = FORMULAS["tp_wire_elements"].function(sequences, whole.tokens, m.d_model, T) * m.layers
    assert METRICS["wire_bytes"](timeline("fsdp-tp"), rank=0, op="all_reduce") == pytest.approx(4 * elements)


@pytest.mark.parametrize("run_id", MESHES)
def test_optimizer_state_is_that_of_the_parameters_a_rank_owns(run_id: str) -> None:
    for rank, owned in enumerate(model(run_id).parameters_per_rank):
        held = METRICS["peak_memory"](timeline(run_id), rank=rank, category="optimizer")
        assert held == pytest.approx(8 * owned, rel=0.02)


@pytest.mark.parametrize("run_id", MESHES)
def test_a_rank_owns_its_part_of_the_blocks_and_a_shard_of_the_rest(run_id: str) -> None:
    m, stages = model(run_id), manifest(run_id).mesh.pp
    parts = len(m.parameters_per_rank)
    total = blocks(run_id) + T * (m.parameters - blocks(run_id))
    assert sum(m.parameters_per_rank) == pytest.approx(total, rel=0.001)
    assert parts == stages * 2 * T


def test_the_bubble_of_three_dimensions_is_that_of_its_pipeline() -> None:
    """p = 2, m = 4: 1/5. Collectives inside the stages are free here, and no bubble."""
    assert METRICS["bubble_fraction"](at_unit_cost("3d")) == pytest.approx(1 / 5, abs=1e-12)


def test_the_path_inside_a_node_is_faster_than_its_interface() -> None:
    calibration = calibration_of("fsdp-tp")
    assert calibration is not None
    link = ring_link(calibration)
    assert link.inner_bytes_per_ns > 4 * link.bytes_per_ns


def test_the_ring_predicts_what_gloo_took_for_large_all_reduces_of_every_shape() -> None:
    """gloo's own ring has the wire bytes of the formula; other operations of gloo send more."""
    calibration = calibration_of("fsdp-tp")
    assert calibration is not None
    ring, table = ring_link(calibration), table_link(calibration)
    for members in (2, 4):
        predicted = ring.duration_ns("all_reduce", 1 << 23, members, nodes=2)
        assert table.duration_ns("all_reduce", 1 << 23, members, nodes=2) == pytest.approx(
            predicted, rel=0.25
        )


def test_the_table_of_the_nodes_has_every_operation_at_six_sizes_a_shape() -> None:
    calibration = calibration_of("fsdp-tp")
    assert calibration is not None
    sizes = Counter((row.op, row.members, row.nodes) for row in calibration.manifest.table)
    collectives = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast")
    shapes = {(op, *shape) for op in collectives for shape in ((4, 2), (2, 1), (2, 2))}
    assert set(sizes) == shapes | {("send", 2, 1), ("send", 2, 2)}
    assert min(sizes.values()) >= 6
