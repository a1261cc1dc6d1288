"""Collectives by themselves and a ring all-reduce by hand, really run by four ranks."""

from __future__ import annotations

import pytest

from generator.recorder import RUNS
from tests.recorder.small import STEPS, SmallRun, record_small, small_shape

pytest.importorskip("torch", reason="recording needs PyTorch: pip install shardbook[record]")

BENCHES = ("collectives", "late-rank")
RANKS = 4


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, SmallRun]:
    out = tmp_path_factory.mktemp("runs")
    return {name: record_small(RUNS[name], out) for name in (*BENCHES, "ring-all-reduce", "single")}


@pytest.mark.parametrize("name", BENCHES)
def test_a_bench_has_steps_and_neither_model_nor_losses(name: str, runs: dict[str, SmallRun]) -> None:
    manifest = runs[name].manifest
    assert (manifest.kind, manifest.has_steps, manifest.model, manifest.partner) == ("bench", True, None, "")
    assert runs[name].losses == [0.0] * STEPS
    assert manifest.timed_steps


@pytest.mark.parametrize("rank", range(RANKS))
def test_five_collectives_of_one_size_follow_each_other(rank: int, runs: dict[str, SmallRun]) -> None:
    calls = runs["collectives"].calls(rank)
    assert [c["op"] for c in calls] == [
        "all_reduce",
        "all_gather",
        "reduce_scatter",
        "all_to_all",
        "broadcast",
    ]
    assert {c["bytes"] for c in calls} == {4 * (4 * small_shape().d_model) ** 2}
    # Each is over before the next piece of work.
    spans = [e["name"] for e in runs["collectives"].spans(rank) if e["name"] in ("forward", "wait")]
    assert spans == ["forward", "wait"] * 5


def test_the_late_rank_computes_three_times_as_often(runs: dict[str, SmallRun]) -> None:
    run = runs["late-rank"]
    assert [len(run.phases(rank)) for rank in range(RANKS)] == [3, 3, 9, 3]
    assert [len(run.calls(rank)) for rank in range(RANKS)] == [3] * RANKS


def test_the_rings_losses_agree_with_the_single_process(runs: dict[str, SmallRun]) -> None:
    assert runs["ring-all-reduce"].losses == pytest.approx(runs["single"].losses, rel=1e-6)


@pytest.mark.parametrize("rank", range(RANKS))
def test_a_rank_of_the_ring_sends_a_chunk_in_each_of_its_steps(rank: int, runs: dict[str, SmallRun]) -> None:
    run = runs["ring-all-reduce"]
    calls = run.calls(rank)
    assert [c["op"] for c in calls] == ["send", "recv"] * (2 * (RANKS - 1))
    assert run.manifest.model is not None
    chunk = 4 * -(-run.manifest.model.parameters // RANKS)
    assert {c["bytes"] for c in calls} == {chunk}
    after, before = (rank + 1) % RANKS, (rank - 1) % RANKS
    assert {(c["src"], c["dst"]) for c in calls} == {(rank, after), (before, rank)}
