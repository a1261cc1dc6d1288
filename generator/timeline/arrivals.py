"""A rank's part in its calls, as its rank file has it: what was called, where, and when it was complete."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from generator.runs.run import I32, I64, MISSING, Kind, RankTrace
from generator.timeline.program import step_bounds

POINT_TO_POINT = ("send", "recv")
_COLLECTIVE_OF = {"recv": "send"}


@dataclass(frozen=True, slots=True)
class Arrival:
    """One rank's part in a call, as its rank file has it. Times in ns on the run's clock."""

    rank: int
    #: The trace's own id of the call, unique in the rank file.
    call: int
    op: str
    #: What this rank calls the group.
    group: str
    #: Ranks of the group; empty where the file does not tell.
    ranks: tuple[int, ...]
    seq: int
    bytes: int
    dtype: str
    src: int
    dst: int
    tag: int
    phase: str
    layer: int
    microbatch: int
    row: int
    issue_ns: int
    #: When the call was seen to be complete here; None where it never was.
    done_ns: int | None
    #: Whether `done_ns` was reported by the call itself (else it is the end of the wait).
    done_seen: bool
    #: Bytes to the other members of an all-to-all with uneven parts, MISSING for any other call.
    sent: int = MISSING
    #: Whether the file has a transfer or a wait of it that began and never ended.
    open: bool = False

    @property
    def point_to_point(self) -> bool:
        return self.op in POINT_TO_POINT

    @property
    def signature(self) -> tuple[str, int, str]:
        """What must agree between members: operation, bytes, dtype; empty or MISSING where not told.

        Of uneven parts each has a size of its own, so none is told.
        """
        size = self.bytes if self.sent == MISSING else MISSING
        return (_COLLECTIVE_OF.get(self.op, self.op), size, self.dtype)


def arrivals(trace: RankTrace, step: int) -> tuple[Arrival, ...]:
    """The calls that one rank issued within a step, in order."""
    bounds = step_bounds(trace, step)
    # Events are sorted by start: no need to look at those of other steps.
    first = int(np.searchsorted(trace.start_ns, bounds[0], "left"))
    last = int(np.searchsorted(trace.start_ns, bounds[1], "right"))
    inside = first + np.flatnonzero(np.isin(trace.step[first:last], (step, MISSING)))
    issues = inside[trace.kind[inside] == Kind.ISSUE]
    if not len(issues):
        return ()
    calls = trace.call[issues].tolist()
    starts = trace.start_ns[issues]
    done, still_open = _completions(trace, inside, trace.call[issues])
    _share_within_blocks(trace, issues, done)
    columns = (trace.op, trace.group, trace.dtype, trace.seq, trace.bytes, trace.src, trace.dst, trace.tag)
    found = []
    for call, issue_ns, row, sent, label, op, group, dtype, seq, size, src, dst, tag in zip(
        calls,
        starts.tolist(),
        trace.row[issues].tolist(),
        trace.sent[issues].tolist(),
        _labels(trace, inside, starts),
        *(column[issues].tolist() for column in columns),
        strict=True,
    ):
        done_ns, done_seen = done.get(call, (None, False))
        name = trace.text(group)
        found.append(
            Arrival(
                rank=trace.rank,
                call=call,
                op=trace.text(op),
                group=name,
                ranks=trace.groups.get(name, ()),
                seq=seq,
                bytes=size,
                dtype=trace.text(dtype),
                src=src,
                dst=dst,
                tag=tag,
                phase=label[0],
                layer=label[1],
                microbatch=label[2],
                row=row,
                issue_ns=issue_ns,
                done_ns=done_ns,
                done_seen=done_seen,
                sent=sent,
                open=call in still_open and done_ns is None,
            )
        )
    return tuple(found)


def _completions(trace: RankTrace, inside: I64, issued: I32) -> tuple[dict[int, tuple[int, bool]], set[int]]:
    """When each call was complete and whether it said so itself; the calls with an event that has no end.

    It is the end of the first wait, unless the call itself reported its completion before: a thread
    may wake up late, and so may whoever reports.
    """
    done: dict[int, tuple[int, bool]] = {}
    still_open: set[int] = set()
    waits = inside[trace.kind[inside] == Kind.WAIT]
    # A transfer may begin after its step has ended.
    transfers = inside[0] + np.flatnonzero(trace.kind[inside[0] :] == Kind.TRANSFER)
    transfers = transfers[np.isin(trace.call[transfers], issued)]
    for events, seen in ((waits, False), (transfers, True)):
        took = trace.dur_ns[events]
        ends = (trace.start_ns[events] + took).tolist()
        for call, end, ended in zip(
            trace.call[events].tolist(), ends, (took != MISSING).tolist(), strict=True
        ):
            if not ended:
                still_open.add(call)
            elif seen:
                done[call] = (min(end, done.get(call, (end, True))[0]), True)
            else:
                done.setdefault(call, (end, False))
    return done, still_open


def _share_within_blocks(trace: RankTrace, issues: I64, done: dict[int, tuple[int, bool]]) -> None:
    """Coalesced collectives are one piece of work: what tells of one part's end tells of all of them."""
    blocks: dict[tuple[int, int], list[int]] = defaultdict(list)
    messages = [op for op in np.unique(trace.op[issues]).tolist() if trace.text(op) in POINT_TO_POINT]
    chosen = issues[(trace.seq[issues] != MISSING) & ~np.isin(trace.op[issues], messages)]
    for group, seq, call in zip(
        trace.group[chosen].tolist(), trace.seq[chosen].tolist(), trace.call[chosen].tolist(), strict=True
    ):
        blocks[group, seq].append(call)
    for calls in blocks.values():
        ends = [done[call] for call in calls if call in done]
        if ends and len(ends) < len(calls):
            last = max(ends)
            for call in calls:
                done.setdefault(call, last)


def _labels(trace: RankTrace, inside: I64, times: I64) -> list[tuple[str, int, int]]:
    """Phase, layer and micro-batch around each of some rising times: those of the innermost event.

    An event without a micro-batch of its own has that of what is around it.
    """
    chosen = inside[np.isin(trace.kind[inside], (Kind.PHASE, Kind.LAYER))]
    # A phase that begins and ends with its only layer is around it, in whatever order they are written.
    took, start = trace.dur_ns[chosen], trace.start_ns[chosen]
    chosen = chosen[np.lexsort((trace.kind[chosen], -took, start))]
    starts = trace.start_ns[chosen].tolist()
    ends = (trace.start_ns[chosen] + trace.dur_ns[chosen]).tolist()
    phases, layers = trace.phase[chosen].tolist(), trace.layer[chosen].tolist()
    microbatches = trace.microbatch[chosen].tolist()
    found: list[tuple[str, int, int]] = []
    around: list[int] = []
    upcoming = 0
    for now in times.tolist():
        while upcoming < len(starts) and starts[upcoming] <= now:
            while around and ends[around[-1]] <= starts[upcoming]:
                around.pop()
            around.append(upcoming)
            upcoming += 1
        while around and ends[around[-1]] <= now:
            around.pop()
        if around:
            inner = around[-1]
            microbatch = max(microbatches[k] for k in around if ends[k] > now)
            found.append((trace.text(phases[inner]), layers[inner], microbatch))
        else:
            found.append(("", MISSING, MISSING))
    return found
