"""How a metric enters the vocabulary."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from generator.timeline.spans import Timeline

Number = int | float

#: The modules of this package, and the heading that their metrics stand under.
SUBJECTS = {
    "time": "Time",
    "communication": "Communication",
    "volume": "Bytes and rates",
    "pipeline": "Pipeline",
    "memory": "Memory",
    "compute": "Operations",
}


@dataclass(frozen=True, slots=True)
class Metric:
    """A measure that expressions may name."""

    name: str
    function: Callable[..., Number]
    #: "ns", "B", "FLOP", a rate such as "B/ns", or "" (a pure number).
    unit: str
    #: First sentence of the docstring, and all of it (Markdown).
    summary: str
    doc: str
    #: Names of the filters it takes.
    parameters: tuple[str, ...]
    #: Origin of its value whatever the mode, where it has one: "recorded" or
    #: "formula"; "" where the mode decides.
    label: str
    #: One of SUBJECTS' headings.
    subject: str
    #: Whether it says something of a whole run, without a filter.
    of_a_run: bool

    def __call__(self, timeline: Timeline, **filters: Any) -> Number:
        return self.function(timeline, **filters)


METRICS: dict[str, Metric] = {}

Measure = Callable[..., Number]


def metric(unit: str, label: str = "", *, of_a_run: bool = True) -> Callable[[Measure], Measure]:
    """Enter a function into the vocabulary."""

    def enter(function: Measure) -> Measure:
        doc = inspect.getdoc(function) or ""
        METRICS[function.__name__] = Metric(
            name=function.__name__,
            function=function,
            unit=unit,
            doc=doc,
            summary=doc.split("\n\n")[0].replace("\n", " "),
            parameters=tuple(inspect.signature(function).parameters)[1:],
            label=label,
            subject=SUBJECTS[function.__module__.rpartition(".")[2]],
            of_a_run=of_a_run,
        )
        return function

    return enter
