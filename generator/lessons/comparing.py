"""Holding closed forms against runs. Both sides are expressions: nothing in a comparison is typed.

Which formula speaks of which measure of which run stands in `comparisons`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from generator.errors import UserError
from generator.lessons.expressions import Value, evaluate
from generator.lessons.scope import Scope, Timelines

if TYPE_CHECKING:
    from pint import Quantity

EXACT, CLOSE, IDEAL = "exact", "close", "ideal"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A closed form and what it speaks of, for each of some runs."""

    what: str
    formula: str
    measured: str
    runs: tuple[str, ...]
    #: Largest relative difference at which the two agree; 0 where they are equal, None where the formula
    #: speaks of an ideal that a run does not reach.
    within: float | None = 0.0
    #: What the formula leaves out; needed wherever they are not equal.
    leaves_out: str = ""
    #: Unit that both are shown in; empty for a pure number.
    unit: str = ""
    #: Measured on the recorded order of a pipeline's work at unit cost, not in isolated mode.
    at_unit_cost: bool = False

    @property
    def kind(self) -> str:
        if self.within is None:
            return IDEAL
        return CLOSE if self.within else EXACT


@dataclass(frozen=True, slots=True)
class Compared:
    """What a comparison came to for one run."""

    comparison: Comparison
    run: str
    formula: Quantity[Any]
    measured: Quantity[Any]
    #: Where the measured value comes from: recorded, reconstructed or formula.
    label: str

    @property
    def difference(self) -> float:
        """Measured over formula, minus one."""
        return float((self.measured / self.formula).to_root_units().magnitude) - 1

    @property
    def agrees(self) -> bool | None:
        """Whether they come as near as they should; None where no more than a look is meant."""
        within = self.comparison.within
        return None if within is None else abs(self.difference) <= within + 1e-12


def compare(comparisons: Iterable[Comparison], scope: Scope, at_unit_cost: Timelines) -> Iterator[Compared]:
    """Each comparison of each of its runs that the scope has and that has what both sides ask for.

    Somebody else's run of the same name may lack, say, memory or a pipeline. Raises UserError only for
    files that cannot be read. `at_unit_cost` gives a pipeline's timeline at unit cost whatever mode it is
    asked for.
    """
    for comparison in comparisons:
        for run in comparison.runs:
            found = _compared(comparison, run, scope, at_unit_cost) if run in scope.manifests else None
            if found:
                yield found


def _compared(comparison: Comparison, run: str, scope: Scope, at_unit_cost: Timelines) -> Compared | None:
    here = replace(scope, default_run=run)
    there = replace(here, timelines=at_unit_cost) if comparison.at_unit_cost else here
    try:
        formula = evaluate(comparison.formula, here)
        measured = evaluate(comparison.measured, there)
    except UserError as error:
        if error.path is not None:
            raise
        return None
    found = Compared(comparison, run, _number(formula), _number(measured), measured.label)
    return found if found.formula.magnitude else None


def _number(value: Value) -> Quantity[Any]:
    if isinstance(value.result, bool):
        raise TypeError("a comparison is of numbers")
    return value.result
