"""Rank files become columns: exact times, kinds by what an event carries, gaps where nothing is said."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.runs.chrome import read_rank
from generator.runs.run import MEMORY_CATEGORIES, MISSING, Kind, RankTrace


def read(root: object) -> RankTrace:
    return read_rank(Path("rank-000.json"), 0, orjson.dumps(root))


@given(st.integers(0, 7 * 10**15), st.integers(0, 10**12))
def test_times_relative_to_a_base_survive_to_the_nanosecond(start: int, duration: int) -> None:
    text = (
        f'[{{"ph":"X","name":"a","ts":{start // 1000}.{start % 1000:03d},'
        f'"dur":{duration // 1000}.{duration % 1000:03d},"args":{{}}}}]'
    )
    trace = read_rank(Path("rank-000.json"), 0, text.encode())
    assert trace.start_ns.tolist() == [start]
    assert trace.dur_ns.tolist() == [duration]


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        ({"name": "ProfilerStep#3", "cat": "user_annotation"}, Kind.STEP),
        ({"name": "forward", "args": {"phase": "forward"}}, Kind.PHASE),
        ({"name": "layer 1", "args": {"phase": "forward", "module": "block", "layer": 1}}, Kind.LAYER),
        ({"name": "c10d::allreduce_", "args": {"call": 0, "op": "all_reduce"}}, Kind.ISSUE),
        ({"name": "gloo:all_reduce", "cat": "gloo", "args": {"call": 0}}, Kind.TRANSFER),
        ({"name": "wait", "args": {"call": 0}}, Kind.WAIT),
        ({"name": "aten::mm", "cat": "cpu_op"}, Kind.OTHER),
    ],
)
def test_the_kind_of_an_event(event: dict[str, object], kind: Kind) -> None:
    trace = read([{"ph": "X", "ts": 1, "dur": 2} | event])
    assert trace.kind.tolist() == [kind]


def test_what_a_trace_does_not_say_is_missing() -> None:
    trace = read({"traceEvents": [{"ph": "X", "ts": 1, "name": "x"}]})
    assert trace.dur_ns.tolist() == [MISSING]
    assert trace.cpu_start_ns.tolist() == [MISSING]
    assert trace.layer.tolist() == [MISSING]
    assert trace.text(int(trace.op[0])) == ""


def test_rows_point_into_the_file_whatever_its_order() -> None:
    events = [{"ph": "X", "ts": t, "dur": 1, "name": str(t)} for t in (5, 3, 9)]
    trace = read([{"ph": "M", "name": "process_name"}, *events])
    assert [trace.text(int(n)) for n in trace.name] == ["3", "5", "9"]
    assert trace.row.tolist() == [2, 1, 3]


def test_memory_counters_become_samples_by_category() -> None:
    trace = read([{"ph": "C", "name": "memory", "ts": 2.5, "args": {"activations": 7, "parameters": 4}}])
    assert trace.memory.time_ns.tolist() == [2500]
    assert dict(zip(MEMORY_CATEGORIES, trace.memory.bytes[0].tolist(), strict=True)) == {
        "parameters": 4,
        "gradients": 0,
        "optimizer": 0,
        "activations": 7,
        "communication": 0,
        "other": 0,
    }


def test_events_of_other_phases_do_not_count() -> None:
    trace = read([{"ph": "M", "ts": 1}, {"ph": "s", "ts": 1, "id": 1}, 3, None])
    assert len(trace) == 0
    assert np.array_equal(trace.start_ns, np.zeros(0))
