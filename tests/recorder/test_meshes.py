"""Meshes of several dimensions, really run: two by two ranks, and two by two by two."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from generator.recorder import RUNS
from generator.runs.manifest import Schedule
from tests.recorder.small import LAYERS, SmallRun, record_small

pytest.importorskip("torch", reason="recording needs PyTorch: pip install shardbook[record]")

#: Micro-batches: of four sequences each of two shards has two.
M = 2


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, SmallRun]:
    out = tmp_path_factory.mktemp("runs")
    return {
        "single": record_small(RUNS["single"], out),
        "fsdp-tp": record_small(RUNS["fsdp-tp"], out),
        "3d": record_small(replace(RUNS["3d"], schedule=Schedule("1F1B", M)), out),
    }


@pytest.mark.parametrize("name", ["fsdp-tp", "3d"])
def test_losses_agree_with_the_single_process(name: str, runs: dict[str, SmallRun]) -> None:
    assert runs[name].losses == pytest.approx(runs["single"].losses, rel=1e-6)


def calls(run: SmallRun, rank: int) -> Counter[tuple[str, tuple[int, ...]]]:
    """Calls of a rank by operation and members: the group's, or source and destination."""
    found = ((c["op"], (c["src"], c["dst"]) if "src" in c else tuple(c["ranks"])) for c in run.calls(rank))
    return Counter(found)


def test_each_dimension_talks_in_a_group_of_its_own(runs: dict[str, SmallRun]) -> None:
    for rank in range(4):
        node, place = divmod(rank, 2)
        tensor, shard = (2 * node, 2 * node + 1), (place, 2 + place)
        assert calls(runs["fsdp-tp"], rank) == {
            ("all_reduce", tensor): 4 * LAYERS,
            ("all_gather", shard): 2 * LAYERS + 1,
            ("reduce_scatter", shard): LAYERS + 1,
        }


def test_a_stage_gathers_and_reduces_once_a_step_and_passes_micro_batches(runs: dict[str, SmallRun]) -> None:
    for rank in range(8):
        stage, within = divmod(rank, 4)
        node, place = divmod(within, 2)
        tensor = (4 * stage + 2 * node, 4 * stage + 2 * node + 1)
        shard = (4 * stage + place, 4 * stage + 2 + place)
        down, up = (within, 4 + within), (4 + within, within)
        units = LAYERS // 2 + 1
        assert calls(runs["3d"], rank) == {
            ("all_reduce", tensor): 4 * (LAYERS // 2) * M,
            ("all_gather", shard): units,
            ("reduce_scatter", shard): units,
            ("send" if stage == 0 else "recv", down): M,
            ("recv" if stage == 0 else "send", up): M,
        }


@pytest.mark.parametrize("name", ["fsdp-tp", "3d"])
def test_ranks_own_equal_parts_of_what_is_cut(name: str, runs: dict[str, SmallRun]) -> None:
    model = runs[name].manifest.model
    assert model is not None
    width, blocks = 64, LAYERS * 12 * 64 * 64
    stages = 2 if name == "3d" else 1
    # Norms, embedding and head are whole on the tensor-parallel ranks and only sharded.
    whole = model.parameters - blocks
    total = blocks // 4 // stages * len(model.parameters_per_rank) + 2 * whole
    assert sum(model.parameters_per_rank) == pytest.approx(total, abs=8 * width)
