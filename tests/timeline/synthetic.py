"""Runs with a known answer, written as real folders of rank files.

A script lists what one rank does. `simulate` lays the scripts out by going round the ranks until
nobody can move: a second, independent way to the times that replay must find.
"""

from __future__ import annotations

import gzip
import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import tomli_w

from generator.runs.manifest import (
    SCHEMA,
    Link,
    Machine,
    Manifest,
    Mesh,
    RankFile,
    Schedule,
    Step,
    to_toml,
)
from generator.runs.reader import read_run
from generator.runs.run import Run


@dataclass(frozen=True)
class Work:
    """Computation: `ns` on the wall, `cpu_ns` of the thread (the same unless given)."""

    ns: int
    phase: str = "forward"
    microbatch: int = -1
    layer: int = -1
    cpu_ns: int | None = None


@dataclass(frozen=True)
class Issue:
    """Issue a call. All members name it by the same key; it takes `cost_ns` after the last arrival."""

    key: str
    ranks: tuple[int, ...]
    cost_ns: int
    op: str = "all_reduce"
    bytes: int = 1024
    group: str = "world"
    dtype: str = "float32"
    #: Whether the call reports its completion (a functional collective or a send does not).
    reported: bool = True
    ns: int = 0
    #: Who takes part as the rank file has it, where that differs: a member that never comes.
    claims: tuple[int, ...] = ()


@dataclass(frozen=True)
class Wait:
    """Wait for a call; the thread runs again `lag_ns` after it is done."""

    key: str
    lag_ns: int = 0


Script = Sequence[Work | Issue | Wait]


@dataclass(frozen=True)
class Laid:
    """What a rank did: (item, begin, end) in order, and when its calls were done."""

    items: list[tuple[Work | Issue | Wait, int, int]]
    done: dict[str, int]


def simulate(scripts: Sequence[Script], begin_ns: Sequence[int] | None = None) -> list[Laid]:
    """Lay scripts out in time, ns. Every group is a queue on each of its ranks."""
    n = len(scripts)
    now = list(begin_ns or [0] * n)
    at = [0] * n
    laid = [Laid([], {}) for _ in range(n)]
    arrived: dict[str, dict[int, int]] = defaultdict(dict)
    queues: dict[tuple[str, tuple[int, ...], int], list[Issue]] = defaultdict(list)
    free: dict[tuple[str, tuple[int, ...], int], int] = defaultdict(int)
    moved = True
    while moved:
        moved = False
        for r, script in enumerate(scripts):
            while at[r] < len(script):
                item = script[at[r]]
                if isinstance(item, Wait):
                    if item.key not in laid[r].done:
                        break
                    end = max(now[r], laid[r].done[item.key]) + item.lag_ns
                else:
                    end = now[r] + item.ns
                if isinstance(item, Issue):
                    arrived[item.key][r] = now[r]
                    queues[item.group, item.ranks, r].append(item)
                laid[r].items.append((item, now[r], end))
                now[r] = end
                at[r] += 1
                moved = True
        for queue, calls in queues.items():
            rank = queue[2]
            while calls and set(calls[0].ranks) <= set(arrived[calls[0].key]):
                call = calls.pop(0)
                last = max(arrived[call.key].values())
                free[queue] = laid[rank].done[call.key] = max(last, free[queue]) + call.cost_ns
                moved = True
    assert all(at[r] == len(s) for r, s in enumerate(scripts)), "the scripts deadlock"
    return laid


def end_ns(laid: Sequence[Laid]) -> int:
    return max(lane.items[-1][2] for lane in laid if lane.items)


def write_run(
    folder: Path,
    scripts: Sequence[Script],
    *,
    run_id: str = "synthetic",
    stages: int = 1,
    microbatches: int = 1,
    seq: bool = True,
    begin_ns: Sequence[int] | None = None,
    title: str = "A run",
) -> Run:
    """Write scripts as a run of one step (after a warm-up step of the same) and read it back."""
    target = folder / run_id
    target.mkdir(parents=True)
    laid = simulate(scripts, begin_ns)
    files = []
    for rank, lane in enumerate(laid):
        data = gzip.compress(orjson.dumps(_trace(rank, lane, len(scripts), seq)), mtime=0)
        name = f"rank-{rank:03d}.json.gz"
        (target / name).write_bytes(data)
        files.append(
            RankFile(rank=rank, file=name, bytes=len(data), events=0, sha256=hashlib.sha256(data).hexdigest())
        )
    write_manifest(
        target, manifest(run_id, tuple(files), stages=stages, microbatches=microbatches, title=title)
    )
    return read_run(target)


def write_manifest(folder: Path, value: Manifest) -> None:
    (folder / "run.toml").write_text(tomli_w.dumps(to_toml(value)), encoding="utf-8")


def manifest(
    run_id: str,
    files: tuple[RankFile, ...] = (),
    *,
    stages: int = 1,
    microbatches: int = 1,
    title: str = "A run",
    **more: Any,
) -> Manifest:
    return Manifest(
        schema=SCHEMA,
        id=run_id,
        title=title,
        kind=more.pop("kind", "training"),
        scheme="ddp",
        description="Made for a test.",
        source="",
        command="",
        commit="",
        date="2026-01-01",
        machine=Machine(
            cpu="",
            cores=2,
            memory_gib=1.0,
            kernel="",
            python="",
            torch="",
            backend="gloo",
            threads_per_rank=1,
            ranks_per_core=1.0,
        ),
        link=Link(method="loopback", rate_mbit=0, burst_bytes=0, calibration="link"),
        mesh=Mesh(pp=stages),
        schedule=Schedule("1F1B", microbatches) if stages > 1 else None,
        steps=(Step(index=0, loss=1.0),),
        ranks=files,
        **more,
    )


def _trace(rank: int, lane: Laid, world: int, seq: bool) -> dict[str, Any]:
    events: list[dict[str, Any]] = []
    call_ids: dict[str, int] = {}
    counters: dict[tuple[Any, ...], int] = defaultdict(int)
    issued: dict[str, int] = {}
    cpu = 0
    start, end = lane.items[0][1], lane.items[-1][2]
    spans: list[dict[str, Any]] = []
    for item, begin, stop in lane.items:
        used = stop - begin
        if isinstance(item, Wait):
            used = 0
        if isinstance(item, Work) and item.cpu_ns is not None:
            used = item.cpu_ns
        event = _event(begin, stop, cpu, used, rank)
        if isinstance(item, Work):
            labels = {"phase": item.phase} | ({"microbatch": item.microbatch} if item.microbatch >= 0 else {})
            spans.append(
                event | {"name": item.phase, "cat": "user_annotation", "args": event["args"] | labels}
            )
            if item.layer >= 0:
                inner = labels | {"module": "block", "layer": item.layer}
                spans.append(
                    event
                    | {"name": f"layer {item.layer}", "cat": "user_annotation", "args": event["args"] | inner}
                )
        elif isinstance(item, Issue):
            call = call_ids.setdefault(item.key, len(call_ids))
            issued[item.key] = begin
            spans.append(
                event
                | {
                    "name": f"c10d::{item.op}_",
                    "cat": "cpu_op",
                    "args": event["args"] | _call_args(item, call, counters, seq),
                }
            )
        else:
            spans.append(
                event
                | {
                    "name": "wait",
                    "cat": "user_annotation",
                    "args": event["args"] | {"call": call_ids[item.key]},
                }
            )
        cpu += used
    step = _event(start, end, 0, cpu, rank) | {"name": "ProfilerStep#0", "cat": "user_annotation"}
    events.append(step)
    events.extend(spans)
    for item, _, _ in lane.items:
        if isinstance(item, Issue) and item.reported and item.key in lane.done:
            done = lane.done[item.key]
            events.append(
                {
                    "ph": "X",
                    "cat": "gloo",
                    "name": f"gloo:{item.op}",
                    "pid": rank,
                    "tid": 1,
                    "ts": issued[item.key] / 1000,
                    "dur": (done - issued[item.key]) / 1000,
                    "args": {"call": call_ids[item.key]},
                }
            )
    return {
        "baseTimeNanoseconds": 0,
        "distributedInfo": {"rank": rank, "world_size": world},
        "traceEvents": events,
    }


def _event(begin: int, end: int, cpu: int, used: int, rank: int) -> dict[str, Any]:
    return {
        "ph": "X",
        "pid": rank,
        "tid": 0,
        "ts": begin / 1000,
        "dur": (end - begin) / 1000,
        "args": {"step": 0, "cpu_ts": cpu / 1000, "cpu_dur": used / 1000},
    }


def _call_args(item: Issue, call: int, counters: dict[tuple[Any, ...], int], seq: bool) -> dict[str, Any]:
    ranks = item.claims or item.ranks
    args: dict[str, Any] = {
        "call": call,
        "op": item.op,
        "group": item.group,
        "ranks": list(ranks),
        "dtype": item.dtype,
        "bytes": item.bytes,
    }
    if item.op in ("send", "recv"):
        args |= {"src": ranks[0], "dst": ranks[1], "tag": 0}
    if seq:
        key = (item.group, ranks)
        args["seq"] = counters[key]
        counters[key] += 1
    return args


# ---- scripts


def one_f_one_b(
    p: int, m: int, forward: Sequence[int], backward: Sequence[int], send_ns: int = 0
) -> list[Script]:
    """1F1B on p stages: durations of each stage's forward and backward, ns."""
    scripts: list[Script] = []
    for s in range(p):
        warm = min(m, p - 1 - s)
        order = [("F", i) for i in range(warm)]
        for i in range(m - warm):
            order += [("F", warm + i), ("B", i)]
        order += [("B", i) for i in range(m - warm, m)]
        script: list[Work | Issue | Wait] = []
        for kind, i in order:
            down, up = (s - 1, s), (s + 1, s)
            source, target = (down, (s, s + 1)) if kind == "F" else (up, (s, s - 1))
            if 0 <= source[0] < p:
                key = f"{kind}{i}:{source}"
                script += [Issue(key, source, send_ns, "recv", group=f"p{source}", reported=False), Wait(key)]
            ns = forward[s] if kind == "F" else backward[s]
            script.append(Work(ns, "forward" if kind == "F" else "backward", microbatch=i))
            if 0 <= target[1] < p:
                key = f"{kind}{i}:{target}"
                script.append(Issue(key, target, send_ns, "send", group=f"p{target}", reported=False))
        scripts.append(script)
    return scripts
