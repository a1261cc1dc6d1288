"""Small timelines made by hand, a vocabulary of a few metrics over them, and a book in a folder."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from generator.book import Book, read_book
from generator.lessons.scope import Scope
from generator.lessons.vocabulary import FACTS, Vocabulary
from generator.runs.manifest import Manifest, read_manifest
from generator.runs.run import MEMORY_CATEGORIES
from generator.timeline.spans import (
    COMPUTATION,
    Activity,
    Call,
    Member,
    MemoryCurve,
    RankTimeline,
    Spans,
    Timeline,
)

DATA = Path(__file__).parent / "data"
EXERCISE = "exercises/03-data-parallel/10-exposed-communication.md"
MS = 1_000_000


@dataclass(frozen=True)
class Measure:
    function: Any
    unit: str
    summary: str = ""
    label: str = ""


def lane(rank: int, spans: Sequence[tuple[Activity, float, float, int, int]]) -> RankTimeline:
    """A computation lane from (activity, begin ms, end ms, layer, call)."""

    def column(values: Sequence[float], dtype: type) -> Any:
        return np.array(values, dtype=dtype)

    none = [-1] * len(spans)
    return RankTimeline(
        rank,
        Spans(
            start_ns=column([round(s[1] * MS) for s in spans], np.int64),
            end_ns=column([round(s[2] * MS) for s in spans], np.int64),
            activity=column([s[0] for s in spans], np.int8),
            layer=column([s[3] for s in spans], np.int32),
            microbatch=column(none, np.int32),
            module=column(none, np.int8),
            call=column([s[4] for s in spans], np.int32),
            row=column(range(len(spans)), np.int32),
            chunk=column(none, np.int32),
        ),
        MemoryCurve(column([], np.int64), np.zeros((0, len(MEMORY_CATEGORIES)), dtype=np.int64)),
    )


def bucket(seq: int, begin: float, end: float) -> Call:
    members = tuple(
        Member(r, round(begin * MS), round(begin * MS), round(end * MS), 100 + seq) for r in (0, 1)
    )
    return Call("all_reduce", "world", (0, 1), seq, 1000, "float32", members, "backward", 7 - seq, -1)


def ddp(mode: str = "isolated") -> Timeline:
    """Two ranks, three buckets: 50.4 ms of communication, 20.4 ms of it exposed, in a step of 100.4 ms."""
    spans = [
        (Activity.FORWARD, 0.0, 30.0, 0, -1),
        (Activity.BACKWARD, 30.0, 50.0, 7, -1),
        (Activity.BACKWARD, 50.0, 70.0, 3, -1),
        (Activity.BLOCKED, 70.0, 90.4, -1, 2),
        (Activity.OPTIMIZER, 90.4, 100.4, -1, -1),
    ]
    calls = (bucket(0, 40.0, 55.0), bucket(1, 55.0, 70.0), bucket(2, 70.0, 90.4))
    step = round(100.4 * MS) if mode == "isolated" else 150 * MS
    return Timeline("ddp", mode, "ring", 2, step, (lane(0, spans), lane(1, spans)), calls, 1, 1)


def single(mode: str = "isolated") -> Timeline:
    spans = [(Activity.FORWARD, 0.0, 60.0, 0, -1), (Activity.BACKWARD, 60.0, 180.0, 3, -1)]
    return Timeline("single", mode, "", 2, 180 * MS, (lane(0, spans),), (), 1, 1)


def timelines(run: str, mode: str) -> Timeline:
    return {"ddp": ddp, "single": single}[run](mode)


def _step_time(t: Timeline) -> int:
    return t.step_ns


def _busy(t: Timeline, *, rank: int | None = None, phase: str | None = None) -> float:
    wanted = [a for a in COMPUTATION if phase in (None, a.name.lower())]
    lanes = [r.computation for r in t.ranks if rank in (None, r.rank)]
    return sum(int((s.end_ns - s.start_ns)[np.isin(s.activity, wanted)].sum()) for s in lanes) / len(lanes)


def _comm_time(t: Timeline, *, rank: int | None = None, op: str | None = None) -> float:
    ranks = [r.rank for r in t.ranks if rank in (None, r.rank)]
    return sum(m.end_ns - m.arrive_ns for c in t.calls for m in c.members if m.rank in ranks) / len(ranks)


def _exposed_comm(t: Timeline, *, rank: int | None = None) -> float:
    return round(20.4 * MS) if t.calls else 0


def _count(t: Timeline, *, op: str | None = None) -> int:
    return sum(op in (None, c.op) for c in t.calls)


def _payload_bytes(t: Timeline, *, op: str | None = None) -> int:
    return sum(c.bytes for c in t.calls)


def _strange(t: Timeline) -> float:
    return float("nan")


VOCABULARY = Vocabulary(
    metrics={
        "step_time": Measure(_step_time, "ns"),
        "busy": Measure(_busy, "ns"),
        "comm_time": Measure(_comm_time, "ns"),
        "exposed_comm": Measure(_exposed_comm, "ns"),
        "count": Measure(_count, "", label="recorded"),
        "payload_bytes": Measure(_payload_bytes, "B"),
        "strange": Measure(_strange, ""),
    },
    formulas={
        "pipeline_bubble_fraction": Measure(lambda p, m: (p - 1) / (m + p - 1), ""),
        "ring_bytes": Measure(lambda n, size: 2 * (n - 1) * size / n, "B"),
    },
    facts=FACTS,
)


def manifests() -> dict[str, Manifest]:
    return {
        r: read_manifest(DATA / "book" / "measured_runs" / r / "run.toml") for r in ("ddp", "single", "link")
    }


def scope() -> Scope:
    return Scope("ddp", manifests(), timelines, VOCABULARY)


def copy_book(folder: Path) -> Book:
    """The small book of the fixtures, to be spoilt by a test."""
    shutil.copytree(DATA / "book", folder / "book")
    return read_book(folder / "book")
