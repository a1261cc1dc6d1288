"""How a formula enters the book."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass

Number = int | float

#: The modules of this package, and the heading that their formulas stand under.
SUBJECTS = {
    "compute": "Operations and recomputation",
    "memory": "Memory",
    "collectives": "Collectives",
    "data_parallel": "Data parallelism and sharding",
    "tensor": "Tensor and sequence parallelism",
    "context": "Context parallelism",
    "experts": "Expert parallelism",
    "pipeline": "Pipelines",
    "noise": "Stragglers and noise",
}


@dataclass(frozen=True, slots=True)
class Formula:
    name: str
    function: Callable[..., Number]
    #: "ns", "B", "FLOP" or "" (a pure number).
    unit: str
    summary: str
    doc: str
    #: Where it stands, or "derived here", and how it was checked.
    source: str
    parameters: tuple[str, ...]
    #: Of each parameter: "ns", "B", "FLOP", a rate such as "B/ns", or "".
    units: Mapping[str, str]
    #: Values of the first parameters, in these units.
    example: tuple[Number, ...]
    #: One of SUBJECTS' headings.
    subject: str


FORMULAS: dict[str, Formula] = {}


def formula(
    unit: str, source: str, *example: Number, **units: str
) -> Callable[[Callable[..., Number]], Callable[..., Number]]:
    """Enter a function into the book's closed forms. `units` are those of its parameters that have one."""

    def enter(function: Callable[..., Number]) -> Callable[..., Number]:
        doc = inspect.getdoc(function) or ""
        parameters = tuple(inspect.signature(function).parameters)
        if unknown := set(units) - set(parameters):
            raise ValueError(f"{function.__name__} has no {', '.join(sorted(unknown))}")
        FORMULAS[function.__name__] = Formula(
            name=function.__name__,
            function=function,
            unit=unit,
            source=source,
            doc=doc,
            summary=doc.split("\n\n")[0].replace("\n", " "),
            parameters=parameters,
            units={p: units.get(p, "") for p in parameters},
            example=example,
            subject=SUBJECTS[function.__module__.rpartition(".")[2]],
        )
        return function

    return enter
