"""Which calls of different ranks are one: matching, and a verdict on every call.

Calls are sorted into queues: one a process group, one a sender with its receiver (`queues`). In a
queue the members of one call are found by sequence number. Where a trace has none, by order,
verified by operation, bytes and dtype, and by causality: nobody's call can end before the last
member has arrived (`alignment`). So one missing call leaves a gap and does not shift the rest.

Coalesced calls are several under one number of their group: they are matched part by part, in order.
The messages of a batch (batch_isend_irecv) may be issued in any order: a send meets its receive by
source, destination, tag and order.

The verdicts are those of PyTorch's flight recorder (torch.distributed.flight_recorder, MatchState),
and one of our own for a member that never came.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from generator.runs.run import MISSING, Run
from generator.timeline.alignment import align
from generator.timeline.arrivals import Arrival, arrivals
from generator.timeline.memo import once_a_step
from generator.timeline.queues import Naming, Queue, queues

__all__ = ["Arrival", "Match", "Naming", "Pairing", "Verdict", "arrivals", "match", "match_step"]


Value = TypeVar("Value")


class Verdict(Enum):
    MATCHED = "fully matched"
    TYPE_MISMATCH = "collective type mismatch"
    #: Of unlike sizes, or called where the caller is no member.
    SIZE_MISMATCH = "size or syntax mismatch"
    DTYPE_MISMATCH = "collective dtype mismatch"
    #: Complete on some ranks, never on others.
    STATE_MISMATCH = "collective state mismatch"
    MEMBER_MISSING = "member missing"
    #: Nothing contradicts it, but not all tell what has to be compared, or the group is a guess.
    UNDECIDED = "undecided"


class Pairing(Enum):
    """How the calls of one queue were found to be one."""

    NUMBER = "sequence number"
    ORDER = "order"


@dataclass(frozen=True, slots=True)
class Match:
    """A call with the members that were found, and what is wrong with it."""

    op: str
    group: str
    #: Ranks that must take part: the group's, or source and destination.
    expected: tuple[int, ...]
    members: tuple[Arrival, ...]
    verdict: Verdict
    #: The ranks that differ, are missing or do not tell; empty when there are none.
    culprits: tuple[int, ...]
    naming: Naming = Naming.NAME
    pairing: Pairing = Pairing.NUMBER
    #: Which of the calls that are coalesced under its number, from 0.
    part: int = 0

    @property
    def point_to_point(self) -> bool:
        return self.op == "send"

    @property
    def inferred(self) -> bool:
        """Whether the trace does not say that these calls are one: it follows from order, or is guessed."""
        return self.pairing is Pairing.ORDER or self.naming not in (Naming.NAME, Naming.MEMBERS)

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
    def unfinished(self) -> tuple[int, ...]:
        """Ranks on which it never ended, where the trace shows that.

        It has an event of the call without an end; or the call reports its completion, did so on other
        ranks, and here neither did nor let the thread go on from a wait.
        """
        return _unfinished(self.members)

    @property
    def first_ns(self) -> int:
        return min(m.issue_ns for m in self.members)


@once_a_step
def match_step(run: Run, step: int) -> tuple[Match, ...]:
    """All calls that a step issued, matched over ranks, in order of first arrival."""
    return match(a for trace in run.ranks for a in arrivals(trace, step))


def match(calls: Iterable[Arrival]) -> tuple[Match, ...]:
    """Match calls of all ranks; every arrival ends up in exactly one match.

    The result does not depend on the order of the calls.
    """
    found = [m for queue in queues(calls) for m in _match_queue(queue)]
    return tuple(sorted(found, key=_place))


def _place(match: Match) -> tuple[object, ...]:
    first = match.members[0]
    return (match.first_ns, match.group, match.expected, first.seq, match.part, first.rank, first.call)


def _match_queue(queue: Queue) -> list[Match]:
    lists = [queue.calls[rank] for rank in sorted(queue.calls)]
    counted = not lists[0][0].point_to_point or _count(lists)
    if not counted or any(a.seq == MISSING for calls in lists for a in calls):
        return [_judge(queue, row, Pairing.ORDER, 0) for row in align(lists, numbered=counted)]
    by_seq: dict[int, list[Arrival]] = defaultdict(list)
    for calls in lists:
        for a in calls:
            by_seq[a.seq].append(a)
    found = []
    for seq in sorted(by_seq):
        rows, pairing = _parts(by_seq[seq])
        found += [_judge(queue, row, pairing, part) for part, row in enumerate(rows)]
    return found


def _count(lists: Sequence[Sequence[Arrival]]) -> bool:
    """Whether numbers of messages count the messages of this very queue.

    Those of NCCL count all messages of a process in a group, or the batches: then they leave gaps, or
    repeat themselves, and say nothing about which send meets which receive.
    """
    numbers = [[a.seq for a in calls] for calls in lists]
    known = {n for own in numbers for n in own}
    unlike = all(len(set(own)) == len(own) for own in numbers)
    return unlike and max(known) - min(known) + 1 == len(known)


def _parts(calls: Sequence[Arrival]) -> tuple[list[list[Arrival]], Pairing]:
    """The calls under one number as rows: one, or more where they are coalesced. In order of rank."""
    if len({a.rank for a in calls}) == len(calls):
        return [list(calls)], Pairing.NUMBER
    lists: dict[int, list[Arrival]] = defaultdict(list)
    for a in calls:
        lists[a.rank].append(a)
    if len({len(own) for own in lists.values()}) == 1:
        return [list(row) for row in zip(*lists.values(), strict=True)], Pairing.NUMBER
    return align(list(lists.values())), Pairing.ORDER


def _judge(queue: Queue, members: Sequence[Arrival], pairing: Pairing, part: int) -> Match:
    verdict, culprits = _verdict(queue, members)
    ops = [m.signature[0] for m in members]
    return Match(
        op=_usual([op for op in ops if op] or ops),
        group=queue.name,
        expected=queue.expected,
        members=tuple(members),
        verdict=verdict,
        culprits=culprits,
        naming=queue.naming,
        pairing=pairing,
        part=part,
    )


def _verdict(queue: Queue, members: Sequence[Arrival]) -> tuple[Verdict, tuple[int, ...]]:
    """The verdict on one call, and the ranks it names: of those that differ, who differs from most."""
    present = {m.rank for m in members}
    missing = tuple(r for r in queue.expected if r not in present)
    if missing:
        return Verdict.MEMBER_MISSING, missing
    ranks = [m.rank for m in members]
    ops, sizes, dtypes = zip(*(m.signature for m in members), strict=True)
    unfinished = _unfinished(members)
    for verdict, culprits in (
        (Verdict.TYPE_MISMATCH, _odd_ones(ranks, ops, untold="")),
        (Verdict.SIZE_MISMATCH, _misplaced(queue, members)),
        (Verdict.SIZE_MISMATCH, _odd_ones(ranks, sizes, untold=MISSING)),
        (Verdict.DTYPE_MISMATCH, _odd_ones(ranks, dtypes, untold="")),
        (Verdict.STATE_MISMATCH, unfinished if len(unfinished) < len(members) else ()),
    ):
        if culprits:
            return verdict, culprits
    return _undecided(queue, members)


def _undecided(queue: Queue, members: Sequence[Arrival]) -> tuple[Verdict, tuple[int, ...]]:
    """Whether a call that nothing contradicts is matched: only if all told what had to be compared.

    What no member tells is not compared, but an operation that nobody tells may be any.
    """
    untold = [m.rank for m in members if not m.op or (m.point_to_point and MISSING in (m.src, m.dst))]
    for aspect, nothing in ((1, MISSING), (2, "")):
        silent = [m.rank for m in members if m.signature[aspect] == nothing]
        if len(silent) < len(members):
            untold += silent
    if untold or queue.naming is Naming.GUESS:
        return Verdict.UNDECIDED, tuple(sorted(set(untold)))
    return Verdict.MATCHED, ()


def _unfinished(members: Sequence[Arrival]) -> tuple[int, ...]:
    reported = any(m.done_seen for m in members)
    return tuple(m.rank for m in members if m.open or (reported and m.done_ns is None))


def _misplaced(queue: Queue, members: Sequence[Arrival]) -> tuple[int, ...]:
    """Ranks that called where they have no place: outside of the group, or on another's behalf."""
    place = {"send": 0, "recv": 1}
    return tuple(
        m.rank
        for m in members
        if m.rank not in queue.expected
        or (m.op in place and len(queue.expected) == 2 and m.rank != queue.expected[place[m.op]])
    )


def _odd_ones(ranks: Sequence[int], values: Sequence[object], untold: object) -> tuple[int, ...]:
    """Ranks whose value is told and is not the most frequent one (ties: the first rank's)."""
    if len(set(values) - {untold}) < 2:
        return ()
    usual = _usual([v for v in values if v != untold])
    return tuple(r for r, v in zip(ranks, values, strict=True) if v not in (usual, untold))


def _usual(values: Sequence[Value]) -> Value:
    """The most frequent value, of several the one that comes first."""
    return Counter(values).most_common(1)[0][0]
