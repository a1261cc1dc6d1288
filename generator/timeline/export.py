"""A timeline as a JSON file: what `shardbook reconstruct` writes and the site is made of.

Times are integer ns from the step's begin, columns are lists of equal length, -1 means "does not
apply". `activities`, `modules` and `memory_categories` name the numbers of their columns. `work` are the
floating-point operations of a rank, and `fastest` those and the ns of its fastest matrix product. The same
timeline always gives the same bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import orjson

from generator.runs.run import MEMORY_CATEGORIES, MISSING
from generator.timeline.program import MODULES
from generator.timeline.spans import Activity, Call, Member, MemoryCurve, RankTimeline, Spans, Timeline, Work

SCHEMA = 1
_SPAN_COLUMNS = {
    "start_ns": np.int64,
    "end_ns": np.int64,
    "activity": np.int8,
    "layer": np.int32,
    "microbatch": np.int32,
    "module": np.int8,
    "call": np.int32,
    "row": np.int32,
    "chunk": np.int32,
}
#: What only a member of an all-to-all with uneven parts has.
_UNEVEN = ("sent", "received")
_WORK_COLUMNS = {
    "activity": np.int8,
    "layer": np.int32,
    "microbatch": np.int32,
    "module": np.int8,
    "flops": np.int64,
}


def to_json(timeline: Timeline) -> bytes:
    """The timeline as JSON text, with a newline at the end."""
    data = {
        "schema": SCHEMA,
        "run": timeline.run,
        "mode": timeline.mode,
        "link_model": timeline.link_model,
        "step": timeline.step,
        "step_ns": timeline.step_ns,
        "stages": timeline.stages,
        "microbatches": timeline.microbatches,
        "ranks_per_node": timeline.ranks_per_node,
        "activities": [a.name.lower() for a in Activity],
        "modules": MODULES,
        "memory_categories": MEMORY_CATEGORIES,
        "ranks": [_rank(r) for r in timeline.ranks],
        "calls": [_call(c) for c in timeline.calls],
    }
    return orjson.dumps(data, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE)


def from_json(text: bytes) -> Timeline:
    """The timeline that `to_json` wrote. Raises ValueError or KeyError for anything else."""
    data = orjson.loads(text)
    if data["schema"] != SCHEMA:
        raise ValueError(f"schema {data['schema']} is not {SCHEMA}")
    return Timeline(
        run=data["run"],
        mode=data["mode"],
        link_model=data["link_model"],
        step=data["step"],
        step_ns=data["step_ns"],
        stages=data["stages"],
        microbatches=data["microbatches"],
        ranks_per_node=data["ranks_per_node"],
        ranks=tuple(_rank_from(r) for r in data["ranks"]),
        calls=tuple(_call_from(c) for c in data["calls"]),
    )


def _rank(rank: RankTimeline) -> dict[str, Any]:
    return {
        "rank": rank.rank,
        "computation": {name: getattr(rank.computation, name) for name in _SPAN_COLUMNS},
        "memory": {"time_ns": rank.memory.time_ns, "bytes": np.ascontiguousarray(rank.memory.bytes)},
        "work": {name: getattr(rank.work, name) for name in _WORK_COLUMNS} | {"fastest": rank.work.fastest},
    }


def _rank_from(data: dict[str, Any]) -> RankTimeline:
    columns = {name: np.array(data["computation"][name], kind) for name, kind in _SPAN_COLUMNS.items()}
    times = np.array(data["memory"]["time_ns"], np.int64)
    held = np.array(data["memory"]["bytes"], np.int64).reshape(len(times), len(MEMORY_CATEGORIES))
    counted = data["work"]
    work = {name: np.array(counted[name], kind) for name, kind in _WORK_COLUMNS.items()}
    return RankTimeline(
        rank=data["rank"],
        computation=Spans(**columns),
        memory=MemoryCurve(times, held),
        work=Work(**work, fastest=(counted["fastest"][0], counted["fastest"][1])),
    )


def _call(call: Call) -> dict[str, Any]:
    return {
        "op": call.op,
        "group": call.group,
        "ranks": call.ranks,
        "seq": call.seq,
        "bytes": call.bytes,
        "dtype": call.dtype,
        "phase": call.phase,
        "layer": call.layer,
        "microbatch": call.microbatch,
        "members": [
            {
                "rank": m.rank,
                "arrive_ns": m.arrive_ns,
                "begin_ns": m.begin_ns,
                "end_ns": m.end_ns,
                "row": m.row,
                **{part: value for part in _UNEVEN if (value := getattr(m, part)) != MISSING},
            }
            for m in call.members
        ],
    }


def _call_from(data: dict[str, Any]) -> Call:
    members = tuple(Member(**m) for m in data["members"])
    return Call(**(data | {"ranks": tuple(data["ranks"]), "members": members}))
