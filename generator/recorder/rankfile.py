"""A rank's event log as a Chrome-trace file with torch.profiler's conventions.

Times in the file are microseconds with three decimals, relative to the run's base, so that integer
nanoseconds survive; the CPU clock of the thread travels in `args`. Perfetto opens the file as it is.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from generator.recorder.log import EventLog, Span
from generator.runs.manifest import RankFile

THREAD, COMMUNICATION = 0, 1


def write_rank_file(folder: Path, rank: int, world_size: int, log: EventLog, base_ns: int) -> RankFile:
    """Write `rank-NNN.json.gz` into a folder and say what a manifest says of it."""
    events = trace_events(rank, log, base_ns)
    trace = {
        "schemaVersion": 1,
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": base_ns,
        "distributedInfo": {"backend": "gloo", "rank": rank, "world_size": world_size},
        "traceEvents": events,
    }
    # One event a line: the file stays readable once it is unpacked.
    lines = orjson.dumps(trace).replace(b'{"ph":', b'\n{"ph":')
    packed = gzip.compress(lines + b"\n", compresslevel=9, mtime=0)
    path = folder / f"rank-{rank:03d}.json.gz"
    path.write_bytes(packed)
    return RankFile(rank, path.name, len(packed), len(events), hashlib.sha256(packed).hexdigest())


def of_steps(log: EventLog, steps: Collection[int]) -> EventLog:
    """What a log holds of some of its steps."""
    spans = [s for s in log.spans if s.arguments["step"] in steps]
    bounds = [(s.begin_ns, s.end_ns) for s in spans if s.name.startswith("ProfilerStep")]
    return replace(
        log,
        spans=spans,
        transfers=[t for t in log.transfers if t.step in steps],
        memory=[m for m in log.memory if any(a <= m.time_ns <= b for a, b in bounds)],
    )


def trace_events(rank: int, log: EventLog, base_ns: int) -> list[dict[str, Any]]:
    """The log as trace events, sorted by begin; in a tie the enclosing one first."""
    timed = [_span_event(rank, span, base_ns) for span in log.spans]
    timed += _transfer_events(rank, log, base_ns)
    timed += [
        {
            "ph": "C",
            "name": "memory",
            "pid": rank,
            "tid": THREAD,
            "ts": (s.time_ns - base_ns) / 1000,
            "args": s.by_category,
        }
        for s in log.memory
    ]
    timed.sort(key=lambda e: (e["ts"], e["tid"], -e.get("dur", 0.0)))
    return [*_names(rank), *timed]


def _names(rank: int) -> list[dict[str, Any]]:
    def name(kind: str, tid: int, text: str) -> dict[str, Any]:
        return {"ph": "M", "name": kind, "pid": rank, "tid": tid, "args": {"name": text}}

    return [
        name("process_name", THREAD, f"rank {rank}"),
        name("thread_name", THREAD, "rank's thread"),
        name("thread_name", COMMUNICATION, "communication"),
    ]


def _span_event(rank: int, span: Span, base_ns: int) -> dict[str, Any]:
    return {
        "ph": "X",
        "cat": span.category,
        "name": span.name,
        "pid": rank,
        "tid": THREAD,
        "ts": (span.begin_ns - base_ns) / 1000,
        "dur": (span.end_ns - span.begin_ns) / 1000,
        "args": {
            **span.arguments,
            "cpu_ts": span.begin_cpu_ns / 1000,
            "cpu_dur": (span.end_cpu_ns - span.begin_cpu_ns) / 1000,
        },
    }


def _transfer_events(rank: int, log: EventLog, base_ns: int) -> list[dict[str, Any]]:
    """Each collective from its issue, or from the end of the one before it in its group, to its end.

    gloo may work on two of a group at a time, but they share one link: they are shown one after the
    other. The ends are as they were seen; should the later one end first, its transfer is empty.
    """
    free_ns: dict[str, int] = {}
    events = []
    for transfer in log.transfers:
        if transfer.completed_ns < 0:
            continue
        end_ns = transfer.completed_ns
        free = free_ns.get(transfer.group, 0)
        begin_ns = min(max(transfer.issued_ns, free), end_ns)
        free_ns[transfer.group] = max(free, end_ns)
        events.append(
            {
                "ph": "X",
                "cat": "gloo",
                "name": f"gloo:{transfer.op}",
                "pid": rank,
                "tid": COMMUNICATION,
                "ts": (begin_ns - base_ns) / 1000,
                "dur": (end_ns - begin_ns) / 1000,
                "args": {"call": transfer.call, "step": transfer.step},
            }
        )
    return events
