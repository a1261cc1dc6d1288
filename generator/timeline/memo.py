"""Remember what was made of a trace or a run for as long as it lives.

Cutting a step into a program and matching its calls are asked for by every timeline, by validation and
by the memory curves of the same run; they depend on nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

Owner = TypeVar("Owner")
Result = TypeVar("Result")


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
