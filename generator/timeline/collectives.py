"""Which calls of different ranks are one: matching, and a verdict on every call.

Members of a collective are found by group and sequence number. Where a trace has none, by order in
the group, verified by operation, bytes and dtype, and by causality: nobody's call can end before
the last member has arrived. So one missing call leaves a gap and does not shift the rest.
A send meets its receive by source, destination, tag and order.

The verdicts are those of PyTorch's flight recorder (torch.distributed.flight_recorder, MatchState),
and one of our own for a member that never came.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
import numpy.typing as npt

from generator.runs.run import MISSING, Kind, RankTrace, Run
from generator.timeline.memo import once_a_step
from generator.timeline.program import step_bounds


class Verdict(Enum):
    MATCHED = "fully matched"
    TYPE_MISMATCH = "collective type mismatch"
    SIZE_MISMATCH = "size or syntax mismatch"
    DTYPE_MISMATCH = "collective dtype mismatch"
    MEMBER_MISSING = "member missing"


@dataclass(frozen=True, slots=True)
class Arrival:
    """One rank's part in a call, as its rank file has it. Times in ns on the run's clock."""

    rank: int
    #: The trace's own id of the call, unique in the rank file.
    call: int
    op: str
    group: str
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

    @property
    def signature(self) -> tuple[str, int, str]:
        """What must agree between members. Of uneven parts each has a size of its own."""
        size = self.bytes if self.sent == MISSING else MISSING
        return (_COLLECTIVE_OF.get(self.op, self.op), size, self.dtype)


_COLLECTIVE_OF = {"recv": "send"}


@dataclass(frozen=True, slots=True)
class Match:
    """A call with the members that were found, and what is wrong with it."""

    op: str
    group: str
    #: Ranks that must take part: the group's, or source and destination.
    expected: tuple[int, ...]
    members: tuple[Arrival, ...]
    verdict: Verdict
    #: The ranks that differ or are missing; empty when matched.
    culprits: tuple[int, ...]

    @property
    def point_to_point(self) -> bool:
        return self.op == "send"

    @property
    def bytes(self) -> int:
        """The payload. Where members have unlike ones, the largest: it is what the call lasts by."""
        return max(m.bytes for m in self.members)

    @property
    def early(self) -> tuple[int, ...]:
        """Ranks on which it was complete before it could be: an effect before its cause.

        A collective ends for nobody before the last member has arrived, a receive not before its send
        has begun. A sender, and the root of a broadcast, may be through with their part before that.
        """
        if self.op == "broadcast":
            return ()
        last = max((m.issue_ns for m in self.members if m.op != "recv"), default=0)
        ends = ((m.rank, m.done_ns) for m in self.members if m.op != "send")
        return tuple(rank for rank, done_ns in ends if done_ns is not None and done_ns < last)

    @property
    def first_ns(self) -> int:
        return min(m.issue_ns for m in self.members)


@once_a_step
def match_step(run: Run, step: int) -> tuple[Match, ...]:
    """All calls that a step issued, matched over ranks, in order of first arrival."""
    return match(a for trace in run.ranks for a in arrivals(trace, step))


def arrivals(trace: RankTrace, step: int) -> tuple[Arrival, ...]:
    """The calls that one rank issued within a step, in order."""
    begin, end = step_bounds(trace, step)
    inside = (trace.start_ns >= begin) & (trace.start_ns <= end) & np.isin(trace.step, (step, MISSING))
    ends = trace.start_ns + trace.dur_ns
    # The end of the first wait, unless the call itself reported its completion before: a thread may
    # wake up late, and so may whoever reports.
    done: dict[int, tuple[int, bool]] = {}
    for i in np.flatnonzero(inside & (trace.kind == Kind.WAIT)):
        done.setdefault(int(trace.call[i]), (int(ends[i]), False))
    for i in np.flatnonzero(np.isin(trace.step, (step, MISSING)) & (trace.kind == Kind.TRANSFER)):
        call = int(trace.call[i])
        done[call] = (min(int(ends[i]), done.get(call, (int(ends[i]), False))[0]), True)
    phase_at = _phases(trace, inside)
    return tuple(
        _arrival(trace, int(i), done.get(int(trace.call[i])), phase_at)
        for i in np.flatnonzero(inside & (trace.kind == Kind.ISSUE))
    )


def _phases(trace: RankTrace, inside: npt.NDArray[np.bool_]) -> list[tuple[int, int, str, int, int]]:
    """Start, end, phase, layer and micro-batch of the events that lend their labels to calls."""
    chosen = np.flatnonzero(inside & np.isin(trace.kind, (Kind.PHASE, Kind.LAYER)))
    return [
        (
            int(trace.start_ns[i]),
            int(trace.start_ns[i] + trace.dur_ns[i]),
            trace.text(int(trace.phase[i])),
            int(trace.layer[i]),
            int(trace.microbatch[i]),
        )
        for i in chosen
    ]


def _arrival(
    trace: RankTrace,
    i: int,
    done: tuple[int, bool] | None,
    around: Sequence[tuple[int, int, str, int, int]],
) -> Arrival:
    issue = int(trace.start_ns[i])
    phase, layer, microbatch = "", MISSING, MISSING
    for start, end, its_phase, its_layer, its_microbatch in around:
        if start > issue:
            break
        if issue < end:
            phase, layer = its_phase, its_layer
            microbatch = max(microbatch, its_microbatch)
    src, dst = int(trace.src[i]), int(trace.dst[i])
    group = trace.text(int(trace.group[i]))
    op = trace.text(int(trace.op[i]))
    ranks = (src, dst) if op in ("send", "recv") else trace.groups.get(group, ())
    return Arrival(
        rank=trace.rank,
        call=int(trace.call[i]),
        op=op,
        group=group,
        ranks=ranks,
        seq=int(trace.seq[i]),
        bytes=int(trace.bytes[i]),
        dtype=trace.text(int(trace.dtype[i])),
        src=src,
        dst=dst,
        tag=int(trace.tag[i]),
        phase=phase,
        layer=layer,
        microbatch=microbatch,
        row=int(trace.row[i]),
        issue_ns=issue,
        done_ns=done[0] if done else None,
        done_seen=bool(done and done[1]),
        sent=int(trace.sent[i]),
    )


def match(calls: Iterable[Arrival]) -> tuple[Match, ...]:
    """Match calls of all ranks; every arrival ends up in exactly one match."""
    lanes: dict[tuple[object, ...], dict[int, list[Arrival]]] = defaultdict(lambda: defaultdict(list))
    for call in calls:
        # A group is its name and its members: two disjoint groups may share a name.
        lane = (
            ("p2p", call.group, call.src, call.dst, call.tag)
            if call.op in ("send", "recv")
            else ("group", call.group, call.ranks)
        )
        lanes[lane][call.rank].append(call)
    found = [m for per_rank in lanes.values() for m in _match_lane(per_rank)]
    return tuple(sorted(found, key=lambda m: (m.first_ns, m.group, m.expected)))


def _match_lane(per_rank: dict[int, list[Arrival]]) -> list[Match]:
    lists = [sorted(per_rank[r], key=lambda a: a.issue_ns) for r in sorted(per_rank)]
    if all(a.seq != MISSING for calls in lists for a in calls):
        by_seq: dict[int, list[Arrival]] = defaultdict(list)
        for calls in lists:
            for a in calls:
                by_seq[a.seq].append(a)
        rows = [by_seq[s] for s in sorted(by_seq)]
    else:
        rows = _align(lists)
    return [_judge(row) for row in rows]


def _judge(members: Sequence[Arrival]) -> Match:
    """The verdict on one call. Who differs from most is named."""
    first = members[0]
    expected = first.ranks or tuple(m.rank for m in members)
    op = _COLLECTIVE_OF.get(first.op, first.op)
    present = {m.rank for m in members}
    missing = tuple(r for r in expected if r not in present)
    verdict, culprits = Verdict.MATCHED, missing
    if missing:
        verdict = Verdict.MEMBER_MISSING
    else:
        for part, name in enumerate((Verdict.TYPE_MISMATCH, Verdict.SIZE_MISMATCH, Verdict.DTYPE_MISMATCH)):
            odd = _odd_ones([(m.rank, m.signature[part]) for m in members])
            if odd:
                verdict, culprits = name, odd
                break
    return Match(
        op=op,
        group=first.group,
        expected=expected,
        members=tuple(members),
        verdict=verdict,
        culprits=culprits,
    )


def _odd_ones(values: Sequence[tuple[int, object]]) -> tuple[int, ...]:
    """Ranks whose value is not the most frequent one (ties: the first rank's)."""
    seen = [v for _, v in values]
    usual = max(seen, key=lambda v: (seen.count(v), -seen.index(v)))
    return tuple(r for r, v in values if v != usual)


def _align(lists: Sequence[Sequence[Arrival]]) -> list[list[Arrival]]:
    """Rows of calls that belong together, from order alone.

    The trivial pairing holds when nothing contradicts it. Otherwise ranks are aligned one after the
    other against the rows so far, at the least number of gaps (and, among equals, the closest ends).
    """
    if len({len(calls) for calls in lists}) == 1:
        rows = [list(row) for row in zip(*lists, strict=True)]
        if all(_possible(row[:k], row[k]) for row in rows for k in range(1, len(row))):
            return rows
    order = sorted(range(len(lists)), key=lambda k: -len(lists[k]))
    rows = [[a] for a in lists[order[0]]]
    for k in order[1:]:
        rows = _merge(rows, lists[k])
    return [sorted(row, key=lambda a: a.rank) for row in rows]


def _possible(row: Sequence[Arrival], call: Arrival) -> bool:
    """Whether a call can belong to a row: same signature, and no effect before its cause."""
    if any(m.signature != call.signature for m in row):
        return False
    together = (*row, call)
    last = max(m.issue_ns for m in together if m.op != "recv")
    return all(m.done_ns is None or m.op == "send" or m.done_ns >= last for m in together)


def _merge(rows: list[list[Arrival]], calls: Sequence[Arrival]) -> list[list[Arrival]]:
    """Align one rank's calls with rows: dynamic programming over (gaps, distance of ends)."""
    n, m = len(rows), len(calls)
    cost = np.full((n + 1, m + 1, 2), np.inf)
    step = np.zeros((n + 1, m + 1), np.int8)
    cost[0, 0] = 0
    for i in range(n + 1):
        for j in range(m + 1):
            options = []
            if i and j and _possible(rows[i - 1], calls[j - 1]):
                gaps, far = cost[i - 1, j - 1]
                options.append((gaps, far + _distance(rows[i - 1], calls[j - 1]), 1))
            if i:
                options.append((cost[i - 1, j, 0] + 1, cost[i - 1, j, 1], 2))
            if j:
                options.append((cost[i, j - 1, 0] + 1, cost[i, j - 1, 1], 3))
            if options:
                *cost[i, j], step[i, j] = min(options)
    merged: list[list[Arrival]] = []
    i, j = n, m
    while i or j:
        if step[i, j] == 1:
            i, j = i - 1, j - 1
            merged.append([*rows[i], calls[j]])
        elif step[i, j] == 2:
            i -= 1
            merged.append(rows[i])
        else:
            j -= 1
            merged.append([calls[j]])
    return merged[::-1]


def _distance(row: Sequence[Arrival], call: Arrival) -> float:
    """How badly a call fits a row, ns: ends lie together; a receive ends soon after its send begins."""
    ends = [m.done_ns for m in row if m.done_ns is not None]
    if call.done_ns is None or not ends:
        return sum(abs(call.issue_ns - m.issue_ns) for m in row)
    if call.op == "recv":
        return call.done_ns - row[0].issue_ns
    if row[0].op == "recv":
        return ends[0] - call.issue_ns
    return sum(abs(call.done_ns - end) for end in ends)
