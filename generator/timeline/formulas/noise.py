"""What chance costs when all wait for the slowest."""

from __future__ import annotations

import math
from functools import lru_cache

from generator.timeline.formulas.entry import Number, formula

#: Integration of the slowest of n normal times: how far out, in deviations, and in how many steps.
_REACH, _STEPS = 9.0, 2000


@formula("", "derived here: integrated numerically", 8)
def expected_slowest(n: int) -> Number:
    """How many standard deviations the slowest of n normal times lies above the mean.

    The integral of 1 − Φ(x)ⁿ above zero less that of Φ(x)ⁿ below: 1.42 for 8, 2.34 for 64, 3.25 for 1024.
    """
    return _expected_slowest(int(n))


@lru_cache(maxsize=256)
def _expected_slowest(n: int) -> float:
    width = _REACH / _STEPS
    total = 0.0
    for i in range(_STEPS + 1):
        weight = (1 if i in (0, _STEPS) else 4 if i % 2 else 2) * width / 3  # Simpson's rule
        above, below = _normal(i * width), _normal(-i * width)
        total += weight * (1 - above**n - below**n)
    return total


def _normal(x: float) -> float:
    """The share of a normal distribution below x deviations."""
    return math.erfc(-x / math.sqrt(2)) / 2


@formula("", "derived here; checked by drawing", 0.05, 8, 4)
def sync_penalty(sigma: float, n: int, syncs: int = 1) -> Number:
    """How much longer a step is when n noisy ranks wait for each other k times: 1 + σ·e·√k.

    σ is the deviation of a rank's step over its mean, e that of the slowest of n ranks. Between two waits
    there is a k-th of the work and a √k-th of the noise, and the slowest decides each time.
    """
    return 1 + sigma * expected_slowest(n) * math.sqrt(syncs)


@formula("ns", "derived here; counted by brute force", 300_000_000, 50, 64, pause="ns")
def pause_time(pause: float, every: int, n: int) -> Number:
    """What unaligned pauses of n ranks cost a step: g·(1 − (1 − 1/K)ⁿ), one of g in K steps on each.

    If all ranks paused in the same step it were g/K, whatever n.
    """
    return pause * (1 - (1 - 1 / every) ** n)
