"""Closed forms in expressions: given quantities of the kinds that they ask for, they give one.

A formula whose parameters have no units but times may also be asked at unit cost: with pure numbers for
all of them. Then a pure number comes out.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from generator.lessons.arithmetic import ZERO, Wrong, bare, exact, guarded
from generator.lessons.vocabulary import Measure
from generator.units import kind_of, quantity, same_kind, unit

_TIME = "ns"


def closed_form(name: str, formula: Measure) -> Callable[..., Any]:
    """A formula as a function of quantities. It raises Wrong where it is given, say, a time for a size."""
    units: Mapping[str, str] = getattr(formula, "units", {})
    names = tuple(inspect.signature(formula.function).parameters)

    def call(*values: Any, **named: Any) -> Any:
        given = dict(zip(names, values, strict=False)) | named
        unit_cost = _at_unit_cost(given, units)
        if not unit_cost:
            for parameter in (p for p in given if p in units):
                _check_kind(name, parameter, given[parameter], units[parameter])
        # What is computed with are bare numbers: pure, or in the units in which runs are stored.
        numbers = {parameter: bare(value) for parameter, value in given.items()}
        shown = "" if unit_cost and formula.unit == _TIME else formula.unit
        return guarded(lambda: quantity(exact(formula.function(**numbers)), shown))

    return call


def _at_unit_cost(given: Mapping[str, Any], units: Mapping[str, str]) -> bool:
    only_times = _TIME in units.values() and set(units.values()) <= {"", _TIME}
    return only_times and all(_is_pure(value) for value in given.values())


def _is_pure(value: Any) -> bool:
    return value is ZERO or (not _is_no_quantity(value) and same_kind(value, quantity(0)))


def _is_no_quantity(value: Any) -> bool:
    """Text, one value a rank, true or false: refused where the number of it is asked for."""
    return isinstance(value, str | list | bool)


def _check_kind(name: str, parameter: str, value: Any, unit_text: str) -> None:
    wanted = unit(unit_text)
    if value is ZERO or _is_no_quantity(value) or same_kind(value, wanted):
        return
    remedy = f"Give it with a unit, such as 1 * {unit_text.replace('/', ' / ')}." if unit_text else "Divide."
    raise Wrong(f"{parameter} of {name} is {kind_of(wanted)}, not {kind_of(value)}", remedy)
