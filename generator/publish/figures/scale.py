"""Time to pixels: the one place that turns one into the other."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from generator.publish.show import number

F64 = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TimeScale:
    """A stretch of time laid over whole pixel columns; column 0 begins at `left_px`."""

    begin_ns: int
    end_ns: int
    left_px: int
    width_px: int

    def __post_init__(self) -> None:
        if self.end_ns <= self.begin_ns or self.width_px < 1:
            raise ValueError("a time scale needs a positive time and a positive width")

    @property
    def ns_per_px(self) -> float:
        return (self.end_ns - self.begin_ns) / self.width_px

    @property
    def right_px(self) -> int:
        return self.left_px + self.width_px

    def x(self, time_ns: float) -> float:
        """Where an instant lies, px."""
        return self.left_px + (time_ns - self.begin_ns) / self.ns_per_px

    def px(self, time_ns: float) -> int:
        """Where an instant lies, to the whole pixel, rounded half up."""
        return math.floor(self.x(time_ns) + 0.5)

    def edges_ns(self) -> F64:
        """The instants between pixel columns, float64 [width_px + 1], ns."""
        return np.arange(self.width_px + 1, dtype=np.float64) * self.ns_per_px + self.begin_ns

    def ticks(self, least_px: int) -> tuple[int, ...]:
        """Round instants (1, 2 or 5 times a power of ten, ns) at least `least_px` apart."""
        step = nice_step(self.ns_per_px * least_px)
        first = -(-self.begin_ns // step)
        return tuple(step * k for k in range(first, self.end_ns // step + 1))


def nice_step(least_ns: float) -> int:
    """The smallest of 1, 2, 5, 10, 20, … ns that is no less than `least_ns`."""
    power: int = 10 ** max(0, math.floor(math.log10(max(least_ns, 1.0))))
    return next(power * k for k in (1, 2, 5, 10) if power * k >= least_ns)


def tick_words(tick_ns: int, scale: TimeScale, least_px: int) -> str:
    """What a tick says, in ms with as many decimals as its step needs; the unit stands at zero."""
    step = nice_step(scale.ns_per_px * least_px)
    digits = next((n for n in range(6) if step % 10 ** (6 - n) == 0), 6)
    return number(tick_ns / 1e6, digits) if tick_ns else "0\u2009ms"
