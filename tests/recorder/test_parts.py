"""Parts of the recorder that need no ranks."""

from __future__ import annotations

import io
from itertools import product
from pathlib import Path

import pytest

from generator.recorder import RUNS
from generator.recorder.curve import ACTIVATIONS, CATEGORIES, OTHER, PARAMETERS, Holding, memory_curve
from generator.recorder.log import EventLog, Transfer
from generator.recorder.progress import Progress
from generator.recorder.rankfile import trace_events


def holding(category: int, *sizes: tuple[int, int], found: bool = False, gone: bool = False) -> Holding:
    return Holding(found, category, list(sizes), gone)


def totals(holdings: list[Holding], boundaries: list[int], begin_ns: int = 0) -> list[tuple[int, int]]:
    return [(s.time_ns, sum(s.by_category.values())) for s in memory_curve(holdings, boundaries, begin_ns)]


def test_curve_keeps_the_peak_between_boundaries() -> None:
    held = [holding(OTHER, (10, 5), (40, 0)), holding(ACTIVATIONS, (20, 7)), holding(OTHER, (25, 1), (30, 0))]
    assert totals(held, [5, 50]) == [(0, 0), (10, 5), (25, 13), (50, 7)]


def test_what_outlives_the_step_was_there_before() -> None:
    buffer = holding(OTHER, (30, 8), found=True)
    passing = holding(OTHER, (30, 3), (40, 0), found=True, gone=True)
    assert totals([buffer], [10, 50]) == [(0, 8)]
    assert totals([passing], [10, 50])[0] == (0, 0)


def test_a_storage_counts_as_the_strongest_it_was_seen_as() -> None:
    saved = holding(OTHER, (10, 4))
    for category in (PARAMETERS, ACTIVATIONS):
        saved.earn(category)
    assert memory_curve([saved], [20], 0)[-1].by_category == {**dict.fromkeys(CATEGORIES, 0), "parameters": 4}


def test_collectives_of_a_group_follow_each_other() -> None:
    log = EventLog(
        transfers=[
            Transfer(0, "all_reduce", "a", 0, issued_ns=1000, completed_ns=5000),
            Transfer(1, "all_reduce", "a", 0, issued_ns=2000, completed_ns=7000),
            Transfer(2, "all_reduce", "b", 0, issued_ns=3000, completed_ns=4000),
            Transfer(3, "all_reduce", "a", 0, issued_ns=6000, completed_ns=6500),
            Transfer(4, "all_reduce", "a", 0, issued_ns=9000),
        ]
    )
    events = [e for e in trace_events(0, log, base_ns=0) if e["ph"] == "X"]
    assert {e["args"]["call"]: (e["ts"], e["dur"]) for e in events} == {
        0: (1.0, 4.0),
        1: (5.0, 2.0),
        2: (3.0, 1.0),
        3: (6.5, 0.0),
    }


def test_closing_a_span_closes_what_is_inside() -> None:
    log = EventLog()
    assert log.begin("outside of a step", "user_annotation", {}) is None
    step = log.begin_step(0)
    log.begin("phase", "user_annotation", {})
    log.end(step)
    assert not log.on
    assert all(span.end_ns == step.end_ns for span in log.spans)


def test_every_run_names_a_source_that_exists(repository: Path) -> None:
    for run in RUNS.values():
        assert (repository / run.source).is_file()
        mesh = run.full_mesh()
        assert len(mesh.coordinates) == run.world_size
        if run.mesh:
            places = product(*(range(size) for size in run.mesh.values()))
            assert [tuple(c.values()) for c in mesh.coordinates] == list(places)


def test_progress_says_little_where_no_terminal_is() -> None:
    stream = io.StringIO()
    progress = Progress(stream)
    progress.start("ddp", 100)
    for done in range(101):
        progress.update(done)
    progress.stop()
    lines = [line.partition(",")[0] for line in stream.getvalue().splitlines()]
    assert lines == [f"ddp: {done} of 100" for done in (0, 25, 50, 75, 100)]


def test_a_batch_depends_on_the_step_alone() -> None:
    torch = pytest.importorskip("torch", reason="recording needs PyTorch: pip install shardbook[record]")
    from generator.recorder.data import make_batch, text_bytes

    batch = make_batch(3, sequences=8, tokens=16, seed=1)
    assert torch.equal(batch.inputs, make_batch(3, 8, 16, 1).inputs)
    assert not torch.equal(batch.inputs, make_batch(4, 8, 16, 1).inputs)
    assert torch.equal(batch.inputs[:, 1:], batch.targets[:, :-1])
    assert torch.equal(torch.cat([batch.share(i, 4).inputs for i in range(4)]), batch.inputs)
    assert bytes(batch.inputs[0].tolist()) in text_bytes()
