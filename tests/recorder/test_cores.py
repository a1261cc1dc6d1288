"""Two runs recorded together, a step of each in turn: on one core, and on a core each."""

from __future__ import annotations

import importlib
import io
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from generator.recorder import RUNS
from generator.recorder.progress import Progress
from generator.recorder.spec import RunSpec
from generator.runs.manifest import Manifest
from generator.runs.reader import read_run
from generator.timeline.validation import loss_difference, validate
from tests.recorder.small import STEPS, record_small, small_shape

pytest.importorskip("torch", reason="recording needs PyTorch: pip install shardbook[record]")

PAIR = ("cores-shared-ddp", "cores-each-ddp")


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from generator.recorder.record import record_specs

    folder = tmp_path_factory.mktemp("runs")
    record_small(RUNS["single"], folder)
    record_specs(
        tuple(replace(RUNS[name], rate_mbit=0) for name in PAIR),
        folder,
        commit="",
        shape=small_shape(),
        steps=STEPS,
        progress=Progress(io.StringIO()),
    )
    return folder


def test_each_run_has_every_other_step(out: Path) -> None:
    shared, each = (read_run(out / name).manifest for name in PAIR)
    assert [s.index for s in shared.steps] == [0, 2, 4, 6]
    assert [s.index for s in each.steps] == [1, 3, 5, 7]
    assert (shared.timed_steps, each.timed_steps) == ((4,), (5,))


def test_both_are_whole_runs(out: Path) -> None:
    for name in PAIR:
        run = read_run(out / name)
        checked = validate(run)
        assert checked.matched == checked.calls > 0
        assert all(len(trace.memory.time_ns) for trace in run.ranks)


def test_losses_are_those_of_the_same_step_of_the_single_process(out: Path) -> None:
    single = read_run(out / "single")
    assert all(loss_difference(read_run(out / name), single) < 1e-6 for name in PAIR)


def test_the_manifest_says_where_ranks_were_pinned(out: Path) -> None:
    machines = [read_run(out / name).manifest.machine for name in PAIR]
    assert [(m.pinned_cores, m.ranks_per_core) for m in machines] == [(1, 2.0), (2, 1.0)]


def test_other_threads_have_a_clock_of_their_own(out: Path) -> None:
    for name in PAIR:
        run = read_run(out / name)
        for trace in run.ranks:
            steps = trace.helpers_cpu_ns >= 0
            assert steps.sum() == STEPS
            assert (trace.helpers_cpu_ns[steps] > 0).all()


def test_all_threads_are_pinned(monkeypatch: pytest.MonkeyPatch) -> None:
    from generator.recorder import rank

    cores: dict[int, set[int]] = {}
    pin: Callable[[int, set[int]], None] = cores.__setitem__
    monkeypatch.setattr(os, "sched_setaffinity", pin)
    rank._pin(1)
    assert cores == {int(task.name): {1} for task in Path("/proc/self/task").iterdir()}


def test_naming_one_records_both(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    module = importlib.import_module("generator.recorder.record")
    asked: list[tuple[str, ...]] = []

    def note(specs: tuple[RunSpec, ...], *_: object, **__: object) -> tuple[Manifest, ...]:
        asked.append(tuple(s.id for s in specs))
        return ()

    monkeypatch.setattr(module, "record_specs", note)
    done = module.record(
        ["cores-each-ddp", "ddp", "cores-shared-ddp"], tmp_path, progress=Progress(io.StringIO())
    )
    assert asked == [PAIR, ("ddp",)]
    assert done == (*PAIR, "ddp")
