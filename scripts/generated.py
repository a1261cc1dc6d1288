"""A large run of torch.profiler's kind, for benchmarks: much that is not ours, and calls that are.

Of each file's events 57 % are complete, 30 % flows and 13 % instants, with names and args as
torch.profiler writes them. Among the complete ones are steps, phases, layers and calls as our recorder
writes them, so that there is something to match and to measure.
"""

from __future__ import annotations

import gzip
import hashlib
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import tomli_w

from generator.runs.manifest import FILE_NAME, SCHEMA, Link, Machine, Manifest, RankFile, Step, to_toml

EVENTS = 216_000
RANKS = 2
STEPS, LAYERS, CALLS_A_LAYER = 6, 64, 4
#: Of a rank: each layer has its calls in forward and in backward.
CALLS = STEPS * LAYERS * 2 * CALLS_A_LAYER
#: Of a call: between two issues on a rank.
_SLOT_US = 180.0
_LAYER_US = CALLS_A_LAYER * _SLOT_US
_PHASE_US = LAYERS * _LAYER_US
_STEP_US = 2 * _PHASE_US + 1000.0

Event = dict[str, Any]


def write_generated_run(folder: Path) -> float:
    """Write the run; the size of one of its files, unpacked, in MB."""
    folder.mkdir(parents=True)
    files, size = [], 0
    for rank in range(RANKS):
        text = orjson.dumps(_trace(rank))
        data = gzip.compress(text, mtime=0)
        name = f"rank-{rank:03d}.json.gz"
        (folder / name).write_bytes(data)
        files.append(RankFile(rank, name, len(data), EVENTS, hashlib.sha256(data).hexdigest()))
        size = len(text)
    manifest = Manifest(
        schema=SCHEMA, id=folder.name, title="Generated", kind="bench", scheme="", description="", source="",
        command="", commit="", date="", link=Link("loopback", 0, 0), ranks=tuple(files),
        machine=Machine("", 1, 1.0, "", "", "", "", 1, 1.0), steps=tuple(Step(i) for i in range(STEPS)),
    )  # fmt: skip
    (folder / FILE_NAME).write_text(tomli_w.dumps(to_toml(manifest)), encoding="utf-8")
    return size / 1e6


def _trace(rank: int) -> Event:
    dice = random.Random(rank)
    ours = list(_ours(rank, dice))
    complete = round(0.57 * EVENTS) - len(ours)
    flows = round(0.30 * EVENTS)
    kinds = [*[0] * complete, *[1] * flows, *[2] * (EVENTS - len(ours) - complete - flows)]
    dice.shuffle(kinds)
    apart_us = STEPS * _STEP_US / len(kinds)
    make = (_complete, _flow, _instant)
    others = [make[kind](i, round(i * apart_us, 3), dice) for i, kind in enumerate(kinds)]
    # As a profiler's buffers are written: each thread's events in order, one buffer after the other.
    return {"schemaVersion": 1, "baseTimeNanoseconds": 1_700_000_000_000_000_000,
            "traceEvents": [*others, *ours]}  # fmt: skip


# ---- as torch.profiler writes them


def _complete(i: int, ts: float, dice: random.Random) -> Event:
    category, name, args = dice.choice(_SORTS)
    return {
        "ph": "X",
        "cat": category,
        "name": name.format(dice.randrange(400), dice.randrange(64)),
        "pid": 1234,
        "tid": 10 + dice.randrange(8),
        "ts": ts,
        "dur": round(dice.random() * 50, 3),
        "args": args(i, dice),
    }


def _operator(i: int, dice: random.Random) -> Event:
    rows = 1 << dice.randrange(6, 12)
    return {
        "External id": i, "Record function id": i, "Sequence number": i, "Fwd thread id": 0,
        "Ev Idx": i, "Concrete Inputs": ["", "", "False"], "Input type": ["float", "float", "Scalar"],
        "Input Strides": [[256, 1], [1, 256], []], "Input Dims": [[rows, 256], [256, 256], []],
    }  # fmt: skip


def _kernel(i: int, dice: random.Random) -> Event:
    return {
        "External id": i, "correlation": 3 * i, "queued": 0, "device": 0, "context": 1, "stream": 7,
        "registers per thread": 128, "shared memory": 49152, "blocks per SM": round(dice.random() * 8, 6),
        "warps per SM": round(dice.random() * 64, 6), "grid": [dice.randrange(1, 999), 2, 1],
        "block": [128, 1, 1], "est. achieved occupancy %": dice.randrange(100),
    }  # fmt: skip


def _launch(i: int, _dice: random.Random) -> Event:
    return {"External id": i, "cbid": 211, "correlation": 3 * i}


_SORTS = (
    ("cpu_op", "aten::op_{}_{}", _operator),
    ("kernel", "void at::native::vectorized_elementwise_kernel<4, at::native::functor_{}<float>, "
               "std::array<char*, 3ul> >(int, at::native::functor<float>, char*, {})", _kernel),
    ("cuda_runtime", "cudaLaunchKernel", _launch),
)  # fmt: skip


def _flow(i: int, ts: float, dice: random.Random) -> Event:
    return {"ph": dice.choice("sf"), "id": i, "pid": 1234, "tid": 10 + dice.randrange(8), "ts": ts,
            "cat": "ac2g", "name": "ac2g", "bp": "e"}  # fmt: skip


def _instant(i: int, ts: float, dice: random.Random) -> Event:
    held = {"Bytes": dice.randrange(-(10**6), 10**6), "Total Allocated": dice.randrange(10**9),
            "Total Reserved": dice.randrange(10**10), "Device Type": 1, "Ev Idx": i}  # fmt: skip
    return {"ph": "i", "s": "t", "name": "[memory]", "pid": 1234, "tid": 10 + dice.randrange(8), "ts": ts,
            "args": held | {"Device Id": 0, "Addr": 139_000_000_000_000 + i}}  # fmt: skip


# ---- as our recorder writes them


def _ours(rank: int, dice: random.Random) -> Iterator[Event]:
    call = 0
    for step in range(STEPS):
        begin = step * _STEP_US
        yield _event(rank, f"ProfilerStep#{step}", begin, _STEP_US - 500, step)
        for at, phase in enumerate(("forward", "backward")):
            start = begin + 100 + at * _PHASE_US
            yield _event(rank, phase, start, _PHASE_US, step, phase=phase)
            for number in range(LAYERS):
                layer = number if phase == "forward" else LAYERS - 1 - number
                from_us = start + number * _LAYER_US
                yield _event(rank, f"layer {layer}", from_us, _LAYER_US, step, phase=phase, module="block",
                             layer=layer)  # fmt: skip
                for slot in range(CALLS_A_LAYER):
                    yield from _call(rank, call, from_us + slot * _SLOT_US, step, dice)
                    call += 1


def _call(rank: int, call: int, slot_us: float, step: int, dice: random.Random) -> Iterator[Event]:
    """Issued a little later on one rank than on the other; complete on both at once, and waited for."""
    op = ("all_gather", "reduce_scatter", "all_reduce")[call % 3]
    issue, done = slot_us + 10 + round(dice.random() * 20, 3), slot_us + 120
    told = {"op": op, "group": "world", "ranks": list(range(RANKS)), "seq": call, "dtype": "float32",
            "bytes": 1 << (10 + call % 12)}  # fmt: skip
    yield _event(rank, f"c10d::{op}_", issue, 8, step, cat="cpu_op", call=call, **told)
    yield _event(rank, "wait", slot_us + 60, 61 + round(dice.random() * 10, 3), step, call=call)
    yield {"ph": "X", "cat": "gloo", "name": f"gloo:{op}", "pid": rank, "tid": 1, "ts": round(issue, 3),
           "dur": round(done - issue, 3), "args": {"call": call}}  # fmt: skip


def _event(rank: int, name: str, ts: float, dur: float, step: int, **args: Any) -> Event:
    cpu = {"cpu_ts": round(ts * 0.9, 3), "cpu_dur": round(dur * 0.9, 3)}
    return {"ph": "X", "cat": args.pop("cat", "user_annotation"), "name": name, "pid": rank, "tid": 0,
            "ts": round(ts, 3), "dur": round(dur, 3), "args": {"step": step, **cpu, **args}}  # fmt: skip
