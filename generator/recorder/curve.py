"""Memory curves from the lives of storages. Nothing here knows PyTorch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from generator.recorder.log import MemorySample

#: Strongest first: what earns several is counted under the first.
CATEGORIES = ("parameters", "gradients", "optimizer", "activations", "communication", "other")
PARAMETERS, GRADIENTS, OPTIMIZER, ACTIVATIONS, COMMUNICATION, OTHER = range(len(CATEGORIES))


@dataclass(slots=True, eq=False)
class Holding:
    """The life of one storage during a step."""

    #: True if it was met, not seen being made: it may be older than the step.
    found: bool
    category: int = OTHER
    #: Times in ns and the size in bytes from each on.
    sizes: list[tuple[int, int]] = field(default_factory=list)
    gone: bool = False

    def earn(self, category: int) -> None:
        """Count it under the strongest category it was ever seen in."""
        self.category = min(self.category, category)

    def resize(self, time_ns: int, size: int) -> None:
        """Note its size from a time on."""
        if not self.sizes or self.sizes[-1][1] != size:
            self.sizes.append((time_ns, size))

    def end(self, time_ns: int) -> None:
        """Note that it is freed for good."""
        self.resize(time_ns, 0)
        self.gone = True

    def changes(self, begin_ns: int) -> list[tuple[int, int]]:
        """Times and bytes more. What was found and outlives the step was there from its begin."""
        result, before = [], 0
        for index, (time_ns, size) in enumerate(self.sizes):
            at_ns = begin_ns if index == 0 and self.found and not self.gone else time_ns
            result.append((at_ns, size - before))
            before = size
        return result


def memory_curve(holdings: Iterable[Holding], boundaries: Sequence[int], begin_ns: int) -> list[MemorySample]:
    """Bytes by category at the begin and each boundary, and at the largest and smallest total in between.

    A step changes its memory thousands of times; between two boundaries only the extremes are told.
    """
    changes = sorted(
        ((time_ns, h.category, more) for h in holdings for time_ns, more in h.changes(begin_ns)),
        key=lambda change: change[0],
    )
    held = [0] * len(CATEGORIES)
    samples: list[MemorySample] = []
    position = 0
    for boundary_ns in sorted((begin_ns, *boundaries)):
        between: list[tuple[int, list[int]]] = []
        while position < len(changes) and changes[position][0] <= boundary_ns:
            time_ns, category, more = changes[position]
            held[category] += more
            position += 1
            if time_ns > begin_ns:
                between.append((time_ns, held.copy()))
        if between:
            extremes = [f(range(len(between)), key=lambda i: sum(between[i][1])) for f in (max, min)]
            samples += [_sample(*between[i]) for i in sorted(set(extremes))]
        at_boundary = _sample(boundary_ns, held)
        # The curve is constant between samples, so an equal one says nothing.
        if not samples or samples[-1].by_category != at_boundary.by_category:
            samples.append(at_boundary)
    return samples


def _sample(time_ns: int, held: list[int]) -> MemorySample:
    return MemorySample(time_ns, dict(zip(CATEGORIES, held, strict=True)))
