"""Calls made by hand, and what a matching says of them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from generator.runs.chrome import read_rank
from generator.runs.run import MISSING, RankTrace
from generator.timeline.collectives import Arrival, Match, Verdict
from tests.timeline.synthetic import Script, _trace, simulate


def arrival(rank: int, call: int, issue_ns: int, done_ns: int | None = None, **more: Any) -> Arrival:
    """One rank's part in an all-reduce of ranks 0 and 1, unless told otherwise."""
    plain = Arrival(
        rank=rank,
        call=call,
        op="all_reduce",
        group="world",
        ranks=(0, 1),
        seq=MISSING,
        bytes=1024,
        dtype="float32",
        src=MISSING,
        dst=MISSING,
        tag=MISSING,
        phase="",
        layer=MISSING,
        microbatch=MISSING,
        row=call,
        issue_ns=issue_ns,
        done_ns=done_ns,
        done_seen=False,
    )
    return replace(plain, **more)


def message(rank: int, call: int, issue_ns: int, src: int, dst: int, **more: Any) -> Arrival:
    """A send or, on its destination, a receive."""
    op = "send" if rank == src else "recv"
    return arrival(rank, call, issue_ns, **{"op": op, "src": src, "dst": dst, "tag": 0} | more)


def as_sets(matches: Iterable[Match]) -> set[frozenset[tuple[int, int]]]:
    """Each match as its members: rank, and the rank's own id of the call."""
    return {frozenset((a.rank, a.call) for a in m.members) for m in matches}


def faults(matches: Iterable[Match]) -> list[tuple[Verdict, tuple[int, ...]]]:
    return [(m.verdict, m.culprits) for m in matches if m.verdict is not Verdict.MATCHED]


def without_numbers(calls: Iterable[Arrival]) -> list[Arrival]:
    return [replace(a, seq=MISSING) for a in calls]


def traces(
    scripts: Sequence[Script], *, seq: bool = True, shuffle: random.Random | None = None
) -> list[RankTrace]:
    """Rank files of scripts, read back; the events of each, and what is in them, in any order."""
    found = []
    for rank, lane in enumerate(simulate(scripts)):
        file = _trace(rank, lane, len(scripts), seq)
        if shuffle:
            file["traceEvents"] = [_shuffled(event, shuffle) for event in file["traceEvents"]]
            shuffle.shuffle(file["traceEvents"])
        found.append(trace_of(file["traceEvents"], rank))
    return found


def _shuffled(event: dict[str, Any], dice: random.Random) -> dict[str, Any]:
    args = event["args"]
    found = event | {"args": {k: args[k] for k in dice.sample(sorted(args), len(args))}}
    return {k: found[k] for k in dice.sample(sorted(found), len(found))}


def trace_of(events: Sequence[dict[str, Any]], rank: int = 0) -> RankTrace:
    """A rank file with these events, read back."""
    data = orjson.dumps({"baseTimeNanoseconds": 0, "traceEvents": events})
    return read_rank(Path(f"rank-{rank:03d}.json"), rank, data)
