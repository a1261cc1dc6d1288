"""Data parallelism with other buckets and with accumulation, really run by two ranks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from generator.recorder import RUNS
from generator.runs.manifest import Options
from tests.recorder.small import SmallRun, record_small

pytest.importorskip("torch", reason="recording needs PyTorch: pip install shardbook[record]")

M = 2
OPTIONS = {
    "ddp-tiny-buckets": Options(bucket_mib=0.01),
    "ddp-one-bucket": RUNS["ddp-one-bucket"].options,
    "ddp-accumulate": Options(bucket_mib=0.1, accumulation=M),
    "ddp-accumulate-sync": Options(bucket_mib=0.1, accumulation=M, reduce_each=True),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, SmallRun]:
    out = tmp_path_factory.mktemp("runs")
    found = {"single": record_small(RUNS["single"], out)}
    for name, options in OPTIONS.items():
        found[name] = record_small(replace(RUNS[name], options=options), out, mesh={"dp": 2})
    return found


@pytest.mark.parametrize("name", OPTIONS)
def test_losses_agree_with_the_single_process(name: str, runs: dict[str, SmallRun]) -> None:
    assert runs[name].losses == pytest.approx(runs["single"].losses, rel=1e-6)


@pytest.mark.parametrize("name", OPTIONS)
def test_every_gradient_is_reduced_once_a_reduction(name: str, runs: dict[str, SmallRun]) -> None:
    model = runs[name].manifest.model
    assert model is not None
    calls = runs[name].calls()
    assert {c["op"] for c in calls} == {"all_reduce"}
    times = M if name == "ddp-accumulate-sync" else 1
    assert sum(c["bytes"] for c in calls) == times * 4 * model.parameters


def test_bucket_sizes_decide_how_many_all_reduces_there_are(runs: dict[str, SmallRun]) -> None:
    counts = {name: len(runs[name].calls()) for name in OPTIONS}
    assert counts["ddp-one-bucket"] == 1
    assert 1 < counts["ddp-accumulate"] < counts["ddp-tiny-buckets"]
    assert counts["ddp-accumulate-sync"] == M * counts["ddp-accumulate"]


@pytest.mark.parametrize("name", [n for n in OPTIONS if n != "ddp-accumulate-sync"])
def test_the_first_step_has_one_bucket(name: str, runs: dict[str, SmallRun]) -> None:
    assert len(runs[name].calls(step=0)) == 1


def test_with_no_sync_only_the_last_backward_reduces(runs: dict[str, SmallRun]) -> None:
    def reducing(name: str) -> set[int]:
        calls = [e for e in runs[name].spans() if "op" in e["args"]]
        backwards = [e for e in runs[name].phases() if e["name"] == "backward"]
        return {
            b["args"]["microbatch"]
            for c in calls
            for b in backwards
            if b["ts"] <= c["ts"] < b["ts"] + b["dur"]
        }

    assert reducing("ddp-accumulate") == {M - 1}
    assert reducing("ddp-accumulate-sync") == set(range(M))
