"""What communication threads take from a computation beside them, on steps whose answer is known."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import orjson
import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from generator.runs.manifest import LinkRow, to_toml
from generator.runs.reader import read_run
from generator.runs.run import RankTrace, Run
from generator.timeline.reconstruct import graph_of
from generator.timeline.replay import recorded_durations, replay
from generator.timeline.sharing import beside_helpers, helpers_cpu_ns, predicted_step_ns, undisturbed_steps
from tests.timeline.synthetic import Issue, Wait, Work, manifest, write_run

WORLD = (0, 1)
MS = 1_000_000
TRANSFER = 10 * MS


def _script(beside_ms: int, lag_ns: int = 0) -> list[Work | Issue | Wait]:
    """Work, a call of 10 ms with some work beside it, the wait for it, work."""
    return [
        Work(5 * MS),
        Issue("a", WORLD, TRANSFER),
        Work(beside_ms * MS),
        Wait("a", lag_ns),
        Work(5 * MS),
    ]


def _with_helpers(run: Run, helpers_ns: int) -> Run:
    """The run with the CPU time of communication threads written into its rank files."""
    entries = []
    for entry in run.manifest.ranks:
        path = run.folder / entry.file
        trace = orjson.loads(gzip.decompress(path.read_bytes()))
        for event in trace["traceEvents"]:
            if event["name"].startswith("ProfilerStep"):
                event["args"]["helpers_cpu_dur"] = helpers_ns / 1000
        path.write_bytes(gzip.compress(orjson.dumps(trace), mtime=0))
        entries.append(replace(entry, sha256=hashlib.sha256(path.read_bytes()).hexdigest()))
    changed = replace(run.manifest, ranks=tuple(entries))
    (run.folder / "run.toml").write_text(tomli_w.dumps(to_toml(changed)), encoding="utf-8")
    return read_run(run.folder)


def _calibration(tmp_path: Path) -> Run:
    """A link on which an all-reduce of two ranks takes 10 ms."""
    table = tuple(LinkRow("all_reduce", 2, size, TRANSFER, TRANSFER, TRANSFER, 1, 0) for size in (1024, 4096))
    folder = tmp_path / "link"
    folder.mkdir()
    said = manifest("link", kind="calibration", table=table)
    said = replace(said, steps=(), link=replace(said.link, calibration=""))
    (folder / "run.toml").write_text(tomli_w.dumps(to_toml(said)), encoding="utf-8")
    return read_run(folder)


@pytest.mark.parametrize(
    ("beside_ms", "helpers_ms", "step_ms"),
    [
        # Nothing is taken: 5 + the longer of transfer and work + 5.
        (6, 0, 20),
        (14, 0, 24),
        # All of the transfer lies beside work, which gets all of it.
        (14, 4, 28),
        # Six tenths of the transfer lie beside work, which still ends before the transfer.
        (6, 4, 20),
        (0, 9, 20),
    ],
)  # fmt: skip
def test_work_beside_a_transfer_is_longer(
    tmp_path: Path, beside_ms: int, helpers_ms: int, step_ms: int
) -> None:
    run = _with_helpers(write_run(tmp_path, [_script(beside_ms)] * 2), helpers_ms * MS)
    assert predicted_step_ns(run, _calibration(tmp_path)) == step_ms * MS


@given(beside_ms=st.integers(0, 30), helpers_ms=st.integers(0, 40))
def test_no_more_is_taken_than_there_is(
    tmp_path_factory: pytest.TempPathFactory, beside_ms: int, helpers_ms: int
) -> None:
    run = write_run(tmp_path_factory.mktemp("run"), [_script(beside_ms)] * 2)
    graph = graph_of(run, 0)
    durations = recorded_durations(graph)
    slowed = beside_helpers(graph, durations, replay(graph, durations), [helpers_ms * MS, 0])
    taken = slowed - durations
    assert (taken >= 0).all()
    assert not taken[graph.rank == 1].any()
    # A transfer of 10 ms has no more than 10 ms beside it, and threads take no more than they used.
    assert taken.sum() == min(helpers_ms, 10) * min(beside_ms, 10) * MS // 10


def test_a_trace_without_the_clock_of_other_threads_is_predicted_without_them(tmp_path: Path) -> None:
    run = write_run(tmp_path, [_script(6)] * 2)
    assert helpers_cpu_ns(run.ranks[0], 0) == 0
    assert predicted_step_ns(run, _calibration(tmp_path)) == 20 * MS


def test_a_step_in_which_a_rank_was_slow_does_not_count(tmp_path: Path) -> None:
    run = write_run(tmp_path, [_script(6)] * 2)
    trace = run.ranks[1]
    # Three steps of the same work; rank 1 needed 4 %, then 6 % more time for it.
    steps = tuple(replace(run.manifest.steps[0], index=i) for i in range(3))
    ranks = tuple(_repeated(t, (100, 104, 106) if t is trace else (100, 100, 100)) for t in run.ranks)
    longer = replace(run, manifest=replace(run.manifest, steps=steps), ranks=ranks)
    assert undisturbed_steps(longer) == (0, 1)


def test_one_step_always_counts(tmp_path: Path) -> None:
    run = write_run(tmp_path, [_script(6)] * 2)
    steps = tuple(replace(run.manifest.steps[0], index=i) for i in range(2))
    ranks = (_repeated(run.ranks[0], (100, 110)), _repeated(run.ranks[1], (120, 100)))
    longer = replace(run, manifest=replace(run.manifest, steps=steps), ranks=ranks)
    assert undisturbed_steps(longer) == (1,)


def _repeated(trace: RankTrace, per_cent: tuple[int, ...]) -> RankTrace:
    """A trace whose only step occurs several times, each with so many per cent of its CPU time."""
    times = len(per_cent)
    columns = {
        f.name: np.tile(value, times)
        for f in fields(trace)
        if isinstance(value := getattr(trace, f.name), np.ndarray)
    }
    columns["step"] = np.repeat(np.arange(times, dtype=np.int32), len(trace))
    columns["cpu_dur_ns"] = np.concatenate([trace.cpu_dur_ns * p // 100 for p in per_cent])
    return replace(trace, **columns)


def test_ranks_without_calls_lose_nothing(tmp_path: Path) -> None:
    run = write_run(tmp_path, [[Work(5 * MS)]] * 2)
    graph = graph_of(run, 0)
    durations = recorded_durations(graph)
    slowed = beside_helpers(graph, durations, replay(graph, durations), [MS, MS])
    assert np.array_equal(slowed, durations)
