"""Pipelines of every schedule, really run by two ranks, with one layer a stage where a rank has two."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from generator.recorder import RUNS
from generator.runs.manifest import Options
from tests.recorder.small import SmallRun, record_small

pytest.importorskip("torch", reason="recording needs PyTorch: pip install shardbook[record]")

M = 4
LAYERS = 4
#: Stages of the ranks.
LOOP, TURN = ({0, 2}, {1, 3}), ({0, 3}, {1, 2})
STAGES = {"pp-interleaved": LOOP, "pp-interleaved-zb": LOOP, "pp-zbv": TURN, "pp-dualpipev": TURN}
SPLIT = ("pp-interleaved-zb", "pp-zbv", "pp-dualpipev")
RANKS = (0, 1)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, SmallRun]:
    out = tmp_path_factory.mktemp("runs")
    cut = {"pp-unequal": Options(layers_per_stage=(3, 1)), "pp-balanced": Options(layers_per_stage=(4, 0))}
    found = {"single": record_small(RUNS["single"], out, layers=LAYERS)}
    for name in ("pp-gpipe", *STAGES, *cut):
        spec = RUNS[name]
        assert spec.schedule is not None
        changes = {"schedule": replace(spec.schedule, microbatches=M), "options": cut.get(name, Options())}
        found[name] = record_small(spec, out, layers=LAYERS, mesh={"pp": 2}, **changes)
    return found


def turns(run: SmallRun, rank: int) -> list[tuple[str, int, int]]:
    """Phase, micro-batch and stage of what a rank did, in order."""
    return [
        (a["phase"], a["microbatch"], a["chunk"])
        for a in (e["args"] for e in run.phases(rank))
        if "microbatch" in a
    ]


@pytest.mark.parametrize("name", ["pp-gpipe", *STAGES, "pp-unequal", "pp-balanced"])
def test_losses_agree_with_the_single_process(name: str, runs: dict[str, SmallRun]) -> None:
    assert runs[name].losses == pytest.approx(runs["single"].losses, rel=1e-6)


def test_gpipe_runs_all_forwards_first(runs: dict[str, SmallRun]) -> None:
    for rank in RANKS:
        phases = [phase for phase, _, _ in turns(runs["pp-gpipe"], rank)]
        assert phases == ["forward"] * M + ["backward"] * M


@pytest.mark.parametrize("rank", RANKS)
@pytest.mark.parametrize("name", STAGES)
def test_every_micro_batch_passes_each_stage_of_a_rank_once(
    name: str, rank: int, runs: dict[str, SmallRun]
) -> None:
    done = Counter(turns(runs[name], rank))
    assert set(done.values()) == {1}
    assert {stage for _, _, stage in done} == STAGES[name][rank]
    for stage in STAGES[name][rank]:
        for i in range(M):
            assert done["forward", i, stage] == 1
            whole = done["backward", i, stage]
            parts = done["backward_input", i, stage], done["backward_weight", i, stage]
            assert (whole, *parts) in ((1, 0, 0), (0, 1, 1))
    assert any(phase == "backward_weight" for phase, _, _ in done) == (name in SPLIT)


@pytest.mark.parametrize("rank", RANKS)
@pytest.mark.parametrize("name", STAGES)
def test_layers_are_those_of_the_stage_that_the_phase_names(
    name: str, rank: int, runs: dict[str, SmallRun]
) -> None:
    seen = {
        (a["phase"], a["chunk"], a["layer"])
        for a in (e["args"] for e in runs[name].layers(rank))
        if "layer" in a
    }
    # One layer a stage. The first stage leaves its whole backward to the weights' part.
    assert {(stage, layer) for _, stage, layer in seen} == {(s, s) for s in STAGES[name][rank]}
    phases = {phase for phase, _, _ in turns(runs[name], rank)}
    assert {phase for phase, _, _ in seen} == phases


@pytest.mark.parametrize("name", ["pp-gpipe", *STAGES])
def test_messages_pass_every_cut_between_ranks_down_and_up(name: str, runs: dict[str, SmallRun]) -> None:
    sends = sum(c["op"] == "send" for rank in RANKS for c in runs[name].calls(rank))
    # Two stages on a rank are three cuts between stages; in a V the middle one lies within the last rank.
    cuts = 1 if name == "pp-gpipe" else 3 if STAGES[name] == LOOP else 2
    assert sends == 2 * M * cuts


def test_layers_are_cut_as_told(runs: dict[str, SmallRun]) -> None:
    names = {
        name: [{e["name"] for e in runs[name].layers(rank)} for rank in RANKS]
        for name in ("pp-unequal", "pp-balanced")
    }
    assert names["pp-unequal"] == [{"embedding", "layer 0", "layer 1", "layer 2"}, {"layer 3", "head"}]
    assert names["pp-balanced"][1] == {"head"}


@pytest.mark.parametrize("name", ["pp-gpipe", *STAGES])
def test_gradients_of_a_rank_are_those_of_its_parameters(name: str, runs: dict[str, SmallRun]) -> None:
    model = runs[name].manifest.model
    assert model is not None
    for rank in RANKS:
        assert max(s["gradients"] for s in runs[name].memory(rank)) == 4 * model.parameters_per_rank[rank]
