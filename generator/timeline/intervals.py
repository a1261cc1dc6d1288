"""The algebra of sets of intervals on integer ns, half open: [start, end).

Everything that is measured is measured on unions: summing spans would count an instant twice where
two calls run at once. A set is an int64 array [n, 2], sorted, disjoint, without empty intervals.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Intervals = npt.NDArray[np.int64]
_Mask = npt.NDArray[np.bool_]

EMPTY: Intervals = np.zeros((0, 2), np.int64)


def union(starts: npt.ArrayLike, ends: npt.ArrayLike) -> Intervals:
    """The union of any intervals; those that end at or before their start are ignored."""
    first, last = np.asarray(starts, np.int64), np.asarray(ends, np.int64)
    some = last > first
    if not some.all():
        first, last = first[some], last[some]
    if not len(first):
        return EMPTY
    if (first[1:] < first[:-1]).any():
        order = np.argsort(first, kind="stable")
        first, last = first[order], last[order]
    reach = np.maximum.accumulate(last)
    # A new interval begins where a start lies beyond all that came before it.
    fresh = np.flatnonzero(first[1:] > reach[:-1])
    found = np.empty((len(fresh) + 1, 2), np.int64)
    found[0, 0], found[1:, 0] = first[0], first[fresh + 1]
    found[:-1, 1], found[-1, 1] = reach[fresh], reach[-1]
    return found


def merge(*sets: Intervals) -> Intervals:
    """The union of sets."""
    joined = np.concatenate([EMPTY, *sets])
    return union(joined[:, 0], joined[:, 1])


def length(a: Intervals) -> int:
    """Total length, ns."""
    return int((a[:, 1] - a[:, 0]).sum())


def intersect(a: Intervals, b: Intervals) -> Intervals:
    """What lies in both sets."""
    return _sweep(a, b, lambda in_a, in_b: in_a & in_b)


def subtract(a: Intervals, b: Intervals) -> Intervals:
    """What lies in `a` and not in `b`."""
    return _sweep(a, b, lambda in_a, in_b: in_a & ~in_b)


def clip(a: Intervals, start: int, end: int) -> Intervals:
    """What lies in `a` between two times."""
    return union(np.maximum(a[:, 0], start), np.minimum(a[:, 1], end))


def _sweep(a: Intervals, b: Intervals, keep: Callable[[_Mask, _Mask], _Mask]) -> Intervals:
    """Cut time at every edge of both sets and keep the pieces a rule asks for."""
    cuts = np.unique(np.concatenate([a.ravel(), b.ravel()]))
    if len(cuts) < 2:
        return EMPTY
    kept = keep(_covers(a, cuts[:-1]), _covers(b, cuts[:-1]))
    return union(cuts[:-1][kept], cuts[1:][kept])


def _covers(a: Intervals, times: npt.NDArray[np.int64]) -> _Mask:
    if not len(a):
        return np.zeros(len(times), bool)
    index = np.searchsorted(a[:, 0], times, side="right") - 1
    inside: _Mask = (index >= 0) & (times < a[np.maximum(index, 0), 1])
    return inside
