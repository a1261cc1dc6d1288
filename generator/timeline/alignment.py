"""Calls without numbers: which of several ranks belong together, from order alone.

The trivial pairing, first with first, holds when nothing contradicts it: operation, bytes and dtype
agree, and no part ends before every other has begun. Otherwise the ranks are aligned one after the
other against the rows so far: the most pairs that keep the order, and of those the closest in time.
So a call that is missing leaves a gap and shifts nothing.

A call is compared with those that can be it by causality, and of these with the BAND nearest ones:
time and memory grow with the number of calls, not with its square.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from generator.runs.run import I64, MISSING
from generator.timeline.arrivals import Arrival

#: Most calls that one is compared with.
BAND = 256
_EVER = 2**61

# What is known of a row of calls, one line of a table each. Of operation, size, dtype and number
# MISSING is: not told. All members have arrived at _ARRIVED; none may end before that, and _DONE is
# the earliest end. Sums, for means: of the issues, and of the ends that were seen.
_OP, _SIZE, _DTYPE, _SEQ, _ARRIVED, _DONE, _ISSUES, _MEMBERS, _ENDS, _ENDED = range(10)
_TOLD = slice(_OP, _SEQ + 1)
_TableOf = Callable[[Sequence[Arrival]], I64]


@dataclass(frozen=True, slots=True)
class Fit:
    """How well the calls of two ranks go together."""

    #: Calls of either that find no partner, and the time between those that do, ns.
    gaps: int
    distance_ns: int


def align(lists: Sequence[Sequence[Arrival]], *, numbered: bool = True) -> list[list[Arrival]]:
    """Rows of calls that belong together. Each list is one rank's, in order; so are the rows.

    `numbered`: calls of unlike sequence numbers, where they have any, are not one.
    """
    table_of = partial(_table, {"": MISSING}, _origin(lists), numbered)
    tables = [table_of(calls) for calls in lists]
    if len({len(calls) for calls in lists}) == 1:
        whole = tables[0]
        for table in tables[1:]:
            if not _fits(whole, table).all():
                break
            whole = _joined(whole, table)
        else:
            return [list(row) for row in zip(*lists, strict=True)]
    order = sorted(range(len(lists)), key=lambda k: -len(lists[k]))
    rows = [[a] for a in lists[order[0]]]
    table = tables[order[0]]
    for k in order[1:]:
        rows, table = _merge(rows, table, lists[k], tables[k])
    return [sorted(row, key=lambda a: a.rank) for row in _unlike_joined(rows, len(lists), table_of)]


def fit(one: Sequence[Arrival], other: Sequence[Arrival]) -> Fit:
    """How well two ranks' calls go together."""
    a, b = map(partial(_table, {"": MISSING}, _origin((one, other)), True), (one, other))
    pairs = _pairs(a, b)
    apart = _distance(a[:, [i for i, _ in pairs]], b[:, [j for _, j in pairs]])
    return Fit(len(one) + len(other) - 2 * len(pairs), int(apart.sum()))


def _origin(lists: Sequence[Sequence[Arrival]]) -> int:
    """The earliest issue. Times count from it, so that the sum of many fits 64 bits."""
    return min((a.issue_ns for calls in lists for a in calls[:1]), default=0)


def _table(codes: dict[str, int], origin: int, numbered: bool, calls: Sequence[Arrival]) -> I64:
    """What is known of single calls, int64 [10, calls]. `codes` gives each text a number."""

    def code(text: str) -> int:
        return codes.setdefault(text, len(codes))

    columns = []
    for a in calls:
        op, size, dtype = a.signature
        told = (code(op), size, code(dtype), a.seq if numbered else MISSING)
        issued = a.issue_ns - origin
        done = None if a.done_ns is None else a.done_ns - origin
        # A message is sent when it is issued: that is what its receive comes soon after.
        end = issued if a.op == "send" else done
        arrived = -_EVER if a.op == "recv" else issued
        # A sender, and the root of a broadcast, may be through before the others have come.
        bound = _EVER if done is None or a.op in ("send", "broadcast") else done
        columns.append((*told, arrived, bound, issued, 1, end or 0, int(end is not None)))
    return np.array(columns, np.int64).reshape(len(columns), 10).T


def _fits(a: I64, b: I64) -> npt.NDArray[np.bool_]:
    """Where two rows can be of one call: what both tell is the same, and no effect before its cause."""
    one, other = a[_TOLD], b[_TOLD]
    alike = ((one == other) | (one == MISSING) | (other == MISSING)).all(axis=0)
    found: npt.NDArray[np.bool_] = alike & (a[_ARRIVED] <= b[_DONE]) & (b[_ARRIVED] <= a[_DONE])
    return found


def _joined(a: I64, b: I64) -> I64:
    """What is known of rows that are of one call."""
    told = np.where(a[_TOLD] == MISSING, b[_TOLD], a[_TOLD])
    times = (np.maximum(a[_ARRIVED], b[_ARRIVED]), np.minimum(a[_DONE], b[_DONE]))
    return np.vstack([told, *times, a[_ISSUES:] + b[_ISSUES:]])


def _moment(table: I64) -> I64:
    """When a row took place: in the mean when it ended, or where no end was seen, was issued."""
    ended = table[_ENDED] > 0
    sums, counts = np.where(ended, table[_ENDS], table[_ISSUES]), np.where(ended, _ENDED, _MEMBERS)
    moment: I64 = sums // np.take_along_axis(table, counts[None], axis=0)[0]
    return moment


def _distance(a: I64, b: I64) -> I64:
    """How far apart rows are, ns: by their ends, or by their issues where only those were seen."""
    ended = (a[_ENDED] > 0) & (b[_ENDED] > 0)
    ends = a[_ENDS] // np.maximum(a[_ENDED], 1) - b[_ENDS] // np.maximum(b[_ENDED], 1)
    issues = a[_ISSUES] // a[_MEMBERS] - b[_ISSUES] // b[_MEMBERS]
    apart: I64 = np.abs(np.where(ended, ends, issues))
    return apart


def _windows(rows: I64, calls: I64) -> tuple[I64, I64]:
    """For each row the first call that may be of it, and the one after the last."""
    first = np.searchsorted(np.maximum.accumulate(calls[_DONE]), rows[_ARRIVED], "left")
    arrived = np.minimum.accumulate(calls[_ARRIVED][::-1])[::-1]
    last = np.searchsorted(arrived, rows[_DONE], "right")
    # Of more than a band of them those around the one that took place at the same time.
    near = np.searchsorted(np.maximum.accumulate(_moment(calls)), _moment(rows), "left")
    low = np.maximum(first, np.minimum(near - BAND // 2, last - BAND))
    return low, np.minimum(last, low + BAND)


def _pairs(rows: I64, calls: I64) -> list[tuple[int, int]]:
    """Rows and calls that belong together, both rising: the most there can be, then the closest.

    A row can end a chain of pairs with any call it fits, after the best chain over the rows and calls
    before. `best[j]` is that over the first j calls: pairs as multiples of `unit`, less the distances.
    """
    most = min(rows.shape[1], calls.shape[1])
    unit = 2**62 // (most + 1)
    far = unit // (most + 1)
    best = np.zeros(calls.shape[1] + 1, np.int64)
    head = np.full(calls.shape[1] + 1, -1)
    row_of: list[int] = []
    call_of: list[int] = []
    before: list[int] = []
    first, last = _windows(rows, calls)
    for i, (low, high) in enumerate(zip(first.tolist(), last.tolist(), strict=True)):
        row, window = rows[:, i : i + 1], calls[:, low:high]
        fitting = np.flatnonzero(_fits(row, window))
        if not len(fitting):
            continue
        at = fitting + low
        worth = best[at] + unit - np.minimum(_distance(row, window[:, fitting]), far)
        # The best chain that ends at or before each of these calls, and the pair that ends it.
        rising = np.maximum.accumulate(worth)
        is_new = np.concatenate([[True], rising[1:] > rising[:-1]])
        ending = np.maximum.accumulate(np.where(is_new, np.arange(len(at)), 0)) + len(row_of)
        row_of.extend([i] * len(at))
        call_of.extend(at.tolist())
        before.extend(head[at].tolist())
        # It is the best over every later call, too, up to where there was a better one.
        places = np.arange(at[0] + 1, np.searchsorted(best, rising[-1], "left"))
        k = np.searchsorted(at, places - 1, "right") - 1
        better = rising[k] > best[places]
        places, k = places[better], k[better]
        best[places], head[places] = rising[k], ending[k]
    found = []
    pair = int(head[-1])
    while pair >= 0:
        found.append((row_of[pair], call_of[pair]))
        pair = before[pair]
    return found[::-1]


def _merge(
    rows: list[list[Arrival]], table: I64, calls: Sequence[Arrival], other: I64
) -> tuple[list[list[Arrival]], I64]:
    """Rows with one more rank's calls in them; those that find no row get one of their own."""
    when, then = _moment(table).tolist(), _moment(other).tolist()
    places: list[tuple[int, int]] = []
    i = j = 0
    for row, call in [*_pairs(table, other), (len(rows), len(calls))]:
        while i < row or j < call:
            if j == call or (i < row and when[i] <= then[j]):
                places.append((i, MISSING))
                i += 1
            else:
                places.append((MISSING, j))
                j += 1
        if row < len(rows):
            places.append((row, call))
            i, j = row + 1, call + 1
    merged = [[*rows[i], calls[j]] if MISSING not in (i, j) else rows[i] if j < 0 else [calls[j]]
              for i, j in places]  # fmt: skip
    at, to = np.array(places, np.int64).T
    left, right = table[:, at], other[:, to]
    return merged, np.where(at < 0, right, np.where(to < 0, left, _joined(left, right)))


def _unlike_joined(rows: list[list[Arrival]], ranks: int, table_of: _TableOf) -> list[list[Arrival]]:
    """Rows, with calls joined that stand in the same place on all ranks and differ in what they are.

    Between two complete rows, or an end, no call is missing where all ranks have as many: one of them
    called something else.
    """
    out: list[list[Arrival]] = []
    stretch: list[list[Arrival]] = []
    for row in [*rows, None]:
        if row is not None and len(row) < ranks:
            stretch.append(row)
            continue
        out += _in_step(stretch, ranks, table_of)
        stretch = []
        if row is not None:
            out.append(row)
    return out


def _in_step(stretch: list[list[Arrival]], ranks: int, table_of: _TableOf) -> list[list[Arrival]]:
    per_rank: dict[int, list[Arrival]] = defaultdict(list)
    for row in stretch:
        for a in row:
            per_rank[a.rank].append(a)
    lists = list(per_rank.values())
    if len(lists) < ranks or len({len(calls) for calls in lists}) > 1:
        return stretch
    together = [list(row) for row in zip(*lists, strict=True)]
    return together if all(_possible(table_of(row)) for row in together) else stretch


def _possible(table: I64) -> bool:
    """Whether calls that differ in what they are can be of one: same number, no effect before its cause."""
    numbers = set(table[_SEQ].tolist()) - {MISSING}
    return len(numbers) <= 1 and bool(table[_ARRIVED].max() <= table[_DONE].min())
