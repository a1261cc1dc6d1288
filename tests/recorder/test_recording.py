"""Small recordings that really run: two ranks of each scheme on loopback, without root."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from generator.recorder import RUNS
from generator.recorder.progress import Progress
from generator.recorder.record import record_spec
from generator.runs.manifest import Manifest, Options, Schedule, read_manifest

pytest.importorskip("torch", reason="recording needs PyTorch: pip install shardbook[record]")

STEPS = 6
LAYERS = 4
SPECS = {
    "single": RUNS["single"],
    "ddp": replace(RUNS["ddp"], mesh={"dp": 2}, rate_mbit=0, options=Options(bucket_mib=0.1)),
    "fsdp": replace(RUNS["fsdp"], mesh={"shard": 2}, rate_mbit=0),
    "tp": replace(RUNS["tp"], mesh={"tp": 2}, rate_mbit=0),
    "pp-1f1b": replace(RUNS["pp-1f1b"], mesh={"pp": 2}, rate_mbit=0, schedule=Schedule("1F1B", 4)),
}
PARALLEL = [name for name in SPECS if name != "single"]


@dataclass(frozen=True)
class Recording:
    """A recorded folder as read back."""

    folder: Path
    manifest: Manifest
    ranks: tuple[list[dict[str, Any]], ...]

    def spans(self, rank: int, step: int | None = None) -> list[dict[str, Any]]:
        """Spans of the rank's own thread, in order of begin, enclosing ones first."""
        found = [e for e in self.ranks[rank] if e["ph"] == "X" and e["tid"] == 0]
        return [e for e in found if step is None or e["args"]["step"] == step]

    def issues(self, rank: int, step: int | None = None) -> list[dict[str, Any]]:
        return [e for e in self.spans(rank, step) if "op" in e["args"]]


@pytest.fixture(scope="session")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Recording]:
    """Records a run on first use; later uses read the same folder."""
    from generator.recorder.model import Shape

    out = tmp_path_factory.mktemp("runs")
    shape = Shape(d_model=64, layers=LAYERS, heads=4, vocabulary=256, tokens=32, sequences=4)
    known: dict[str, Recording] = {}

    def get(name: str) -> Recording:
        if name not in known:
            record_spec(
                SPECS[name], out, commit="abc1234", shape=shape, steps=STEPS, progress=Progress(io.StringIO())
            )
            folder = out / name
            manifest = read_manifest(folder / "run.toml")
            traces = [json.loads(gzip.decompress((folder / r.file).read_bytes())) for r in manifest.ranks]
            assert len({t["baseTimeNanoseconds"] for t in traces}) == 1
            known[name] = Recording(folder, manifest, tuple(t["traceEvents"] for t in traces))
        return known[name]

    return get


@pytest.mark.parametrize("name", PARALLEL)
def test_losses_agree_with_one_process(name: str, recording: Callable[[str], Recording]) -> None:
    expected = [s.loss for s in recording("single").manifest.steps]
    losses = [s.loss for s in recording(name).manifest.steps]
    assert losses == pytest.approx(expected, rel=1e-6)
    # Had the model learnt nothing, equal losses would say little.
    assert losses[-1] < 0.9 * losses[0]


@pytest.mark.parametrize("name", SPECS)
def test_manifest_describes_its_files(name: str, recording: Callable[[str], Recording]) -> None:
    run = recording(name)
    assert {p.name for p in run.folder.iterdir()} == {"run.toml", *(r.file for r in run.manifest.ranks)}
    for rank in run.manifest.ranks:
        packed = (run.folder / rank.file).read_bytes()
        assert (rank.bytes, rank.sha256) == (len(packed), hashlib.sha256(packed).hexdigest())
        assert rank.events == len(run.ranks[rank.rank])
    assert [s.index for s in run.manifest.steps if s.warmup] == [0, 1]
    assert [s.index for s in run.manifest.steps if s.detail] == [STEPS - 1]
    assert str(Path.home()) not in (run.folder / "run.toml").read_text()


@pytest.mark.parametrize("name", SPECS)
def test_spans_of_a_thread_nest(name: str, recording: Callable[[str], Recording]) -> None:
    run = recording(name)
    for rank in range(run.manifest.world_size):
        enclosing: list[tuple[int, int]] = []
        for event in run.spans(rank):
            begin = round(event["ts"] * 1000)
            end = begin + round(event["dur"] * 1000)
            while enclosing and enclosing[-1][1] <= begin:
                enclosing.pop()
            assert not enclosing or end <= enclosing[-1][1], event
            # CPU time inside a span cannot exceed the time it took, but for the clocks' grain.
            assert 0 <= event["args"]["cpu_dur"] <= 1.001 * event["dur"] + 50, event
            enclosing.append((begin, end))


@pytest.mark.parametrize("name", PARALLEL)
def test_ids_tie_issue_wait_and_transfer(name: str, recording: Callable[[str], Recording]) -> None:
    run = recording(name)
    for rank, events in enumerate(run.ranks):
        issued = {e["args"]["call"]: e for e in run.issues(rank)}
        assert len(issued) == len(run.issues(rank)) > 0
        waited = [e["args"]["call"] for e in events if e["name"] == "wait"]
        assert sorted(waited) == sorted(issued)
        for event in events:
            if event["ph"] == "X" and (event["name"] == "wait" or event["tid"] == 1):
                issue = issued[event["args"]["call"]]
                assert issue["args"]["step"] == event["args"]["step"]
                assert issue["ts"] <= event["ts"]


@pytest.mark.parametrize("name", PARALLEL)
def test_ranks_saw_the_same_calls(name: str, recording: Callable[[str], Recording]) -> None:
    run = recording(name)

    def key(event: dict[str, Any]) -> tuple[Any, ...]:
        a = event["args"]
        op = "send" if a["op"] == "recv" else a["op"]
        return op, a["group"], a["seq"], a["bytes"], a["dtype"], a.get("src"), a.get("dst"), a.get("tag")

    first, second = (Counter(key(e) for e in run.issues(rank)) for rank in (0, 1))
    assert first == second


def test_ddp_reduces_every_gradient_once(recording: Callable[[str], Recording]) -> None:
    run = recording("ddp")
    reduced = [e["args"] for e in run.issues(0, step=3)]
    assert len(reduced) > 2
    assert {a["op"] for a in reduced} == {"all_reduce"}
    assert run.manifest.model is not None
    assert sum(a["bytes"] for a in reduced) == 4 * run.manifest.model.parameters


def test_fsdp_gathers_twice_and_scatters_once(recording: Callable[[str], Recording]) -> None:
    run = recording("fsdp")
    ops = Counter(e["args"]["op"] for e in run.issues(1, step=3))
    # The root keeps its parameters between forward and backward.
    assert ops == {"all_gather": 2 * LAYERS + 1, "reduce_scatter": LAYERS + 1}
    assert run.manifest.model is not None
    assert sum(run.manifest.model.parameters_per_rank) == run.manifest.model.parameters


def test_tp_reduces_four_times_a_layer(recording: Callable[[str], Recording]) -> None:
    by_place = Counter(_place(recording("tp"), 0, 3))
    assert by_place == {(phase, layer): 2 for phase in ("forward", "backward") for layer in range(LAYERS)}


def _place(run: Recording, rank: int, step: int) -> list[tuple[str, int]]:
    """Phase and layer of each call, by the spans around it."""
    layers = [e for e in run.spans(rank, step) if "layer" in e["args"]]
    return [
        (a["args"]["phase"], a["args"]["layer"])
        for e in run.issues(rank, step)
        for a in layers
        if a["ts"] <= e["ts"] < a["ts"] + a["dur"]
    ]


def test_layers_run_forward_and_back(recording: Callable[[str], Recording]) -> None:
    for name in ("single", "ddp", "fsdp", "tp"):
        spans = recording(name).spans(0, step=3)
        layers = [(e["args"]["phase"], e["name"]) for e in spans if "module" in e["args"]]
        names = ["embedding", *(f"layer {i}" for i in range(LAYERS)), "head"]
        assert layers == [*(("forward", n) for n in names), *(("backward", n) for n in reversed(names))], name
        phases = [e["name"] for e in spans if "phase" in e["args"] and "module" not in e["args"]]
        assert phases == ["forward", "backward", "optimizer"]


def test_pipeline_stages_take_turns(recording: Callable[[str], Recording]) -> None:
    run = recording("pp-1f1b")
    turns = [
        [
            e["name"][0] + str(e["args"]["microbatch"])
            for e in run.spans(rank, 3)
            if "microbatch" in e["args"] and "module" not in e["args"]
        ]
        for rank in (0, 1)
    ]
    assert turns[0] == ["f0", "f1", "b0", "f2", "b1", "f3", "b2", "b3"]
    assert turns[1] == ["f0", "b0", "f1", "b1", "f2", "b2", "f3", "b3"]
    layers = [
        [e["name"] for e in run.spans(rank, 3) if e["args"].get("microbatch") == 0 and "module" in e["args"]]
        for rank in (0, 1)
    ]
    assert layers[0] == ["embedding", "layer 0", "layer 1", "layer 1", "layer 0", "embedding"]
    assert layers[1] == ["layer 2", "layer 3", "head", "head", "layer 3", "layer 2"]


def test_memory_of_one_process_is_what_the_formulas_say(recording: Callable[[str], Recording]) -> None:
    run = recording("single")
    model = run.manifest.model
    assert model is not None
    curve = [e["args"] for e in run.ranks[0] if e["ph"] == "C"]
    tensors = 2 + 10 * LAYERS + 3
    for sample in curve:
        assert sample["parameters"] == 4 * model.parameters
        # Two moments, and a step counter for each tensor.
        assert sample["optimizer"] == 8 * model.parameters + 4 * tensors
    assert max(s["gradients"] for s in curve) == 4 * model.parameters
    batch, tokens, width, heads, vocabulary = 4, 32, 64, 4, 256
    residual = batch * tokens * width
    floats = LAYERS * (16 * residual + (4 + heads) * batch * tokens)
    floats += 2 * residual + 2 * batch * tokens + batch * tokens * vocabulary
    assert max(s["activations"] for s in curve) == pytest.approx(4 * floats, rel=0.02)


def test_fsdp_holds_a_shard_and_one_block(recording: Callable[[str], Recording]) -> None:
    run = recording("fsdp")
    model = run.manifest.model
    assert model is not None
    curve = [e["args"]["parameters"] for e in run.ranks[0] if e["ph"] == "C"]
    shard = 4 * model.parameters_per_rank[0]
    assert curve[0] == curve[-1] == pytest.approx(shard, rel=0.01)
    block = 4 * (12 * 64 * 64 + 4 * 64)
    root = 4 * model.parameters - LAYERS * block
    assert max(curve) == pytest.approx(shard + root + block, rel=0.01)
