"""Remember what was made of a trace, a run or a timeline for as long as it lives.

Cutting a step into a program and matching its calls are asked for by every timeline, by validation and
by the memory curves of the same run; the calls of a timeline are asked for by every metric. They depend on
nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

Owner = TypeVar("Owner")
Result = TypeVar("Result")


def once(function: Callable[[Owner], Result]) -> Callable[[Owner], Result]:
    """A function of an object that computes its result once."""
    kept: WeakKeyDictionary[Owner, Result] = WeakKeyDictionary()

    @wraps(function)
    def remembered(owner: Owner) -> Result:
        if owner not in kept:
            kept[owner] = function(owner)
        return kept[owner]

    return remembered


def once_a_step(function: Callable[[Owner, int], Result]) -> Callable[[Owner, int], Result]:
    """A function of an object and a step that computes each result once."""
    kept: WeakKeyDictionary[Owner, dict[int, Result]] = WeakKeyDictionary()

    @wraps(function)
    def remembered(owner: Owner, step: int) -> Result:
        results = kept.setdefault(owner, {})
        if step not in results:
            results[step] = function(owner, step)
        return results[step]

    return remembered
