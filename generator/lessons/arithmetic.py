"""Arithmetic of the answers' language: operators and functions over quantities, with limits.

Values are pint quantities, true or false, or a list with one quantity a rank. What cannot be
computed raises Wrong; the evaluator adds where in the expression that was.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from generator.errors import UserError
from generator.units import kind_of, quantity, registry, same_kind

_MAX_EXPONENT = 64
_MAX_BASE = 1e9

#: A 0 as it was written: the one number that may be compared with a time or a size.
ZERO = object()


class Wrong(Exception):
    """Something that cannot be computed: what and the remedy; the evaluator knows where."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(what)
        self.what = what
        self.remedy = remedy


def guarded(compute: Callable[[], Any]) -> Any:
    """What `compute` gives; what it refuses becomes an error of the expression."""
    try:
        return compute()
    except UserError as error:
        # An error of a file keeps its own place; one about the question gets the expression's.
        if error.path is not None:
            raise
        raise Wrong(error.what, error.remedy) from None
    except ZeroDivisionError:
        raise Wrong("divides by zero", "Ask for something that the run has.") from None
    except (ValueError, ArithmeticError, LookupError) as error:
        raise Wrong(f"cannot be computed ({error})", "Ask for something that the run has.") from None


def exact(value: Any) -> float:
    """A metric's result as a Python number: an int stays exact, also one of numpy or a fraction."""
    try:
        return operator.index(value)
    except TypeError:
        return float(value)


def plain(value: Any) -> Any:
    """A filter's value as Python has it: text, or a whole number."""
    return value if isinstance(value, str) else _scalar(value).magnitude


def _scalar(value: Any) -> Any:
    if isinstance(value, str):
        raise Wrong("calculates with text", "Calculate with numbers.")
    if isinstance(value, list):
        raise Wrong("has one value a rank", "Take the min, max, sum or mean of them first.")
    if isinstance(value, bool):
        raise Wrong("calculates with true or false", "Calculate with numbers.")
    return quantity(0) if value is ZERO else value


def _kept(value: Any) -> Any:
    return value if value is ZERO else _scalar(value)


def bare(value: Any) -> float:
    """The number of a quantity in the units in which runs are stored; whole ones as an int."""
    number: float = _scalar(value).to_root_units().magnitude
    return int(number) if isinstance(number, float) and number.is_integer() else number


def _binary(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def call(a: Any, b: Any) -> Any:
        return guarded(lambda: function(_scalar(a), _scalar(b)))

    return call


def _alike(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """An operation on two values of one kind; pint lets some of the others pass."""

    def call(a: Any, b: Any) -> Any:
        if isinstance(a, bool) and isinstance(b, bool) and function in (operator.eq, operator.ne):
            return function(a, b)
        return guarded(lambda: function(*_same_unit([_kept(a), _kept(b)])))

    return call


def _same_unit(values: list[Any]) -> list[Any]:
    """The values in the unit of the first; a written 0 is 0 of whatever it stands beside."""
    measured = [v for v in values if v is not ZERO]
    if not measured:
        return [quantity(0) for _ in values]
    values = [0 * measured[0] if v is ZERO else v for v in values]
    for other in values[1:]:
        if not same_kind(values[0], other):
            raise Wrong(
                f"{kind_of(values[0])} and {kind_of(other)} are mixed",
                "Compare and add values of one kind only.",
            )
    return [v if v.units == values[0].units else v.to(values[0].units) for v in values]


def _power(a: Any, b: Any) -> Any:
    base, exponent = _scalar(a), _scalar(b)
    if kind_of(exponent) != "a pure number":
        raise Wrong("an exponent has a unit", "Use a pure number.")
    power = bare(exponent)
    if abs(power) > _MAX_EXPONENT or abs(base.magnitude) > _MAX_BASE:
        raise Wrong(
            "a power is too large", f"Keep exponents up to {_MAX_EXPONENT} and bases up to {_MAX_BASE:.0e}."
        )
    result = guarded(lambda: base**power)
    if isinstance(result.magnitude, complex):
        raise Wrong("the root of a negative number", "Take the root of a positive number.")
    return result


def _values(arguments: tuple[Any, ...]) -> list[Any]:
    flat = [v for a in arguments for v in (a if isinstance(a, list) else [a])]
    return _same_unit([_kept(v) for v in flat])


def _absolute(value: Any) -> Any:
    return abs(_scalar(value))


def _rounded(value: Any) -> Any:
    only = _scalar(value)
    if kind_of(only) != "a pure number":
        raise Wrong("rounds a value with a unit", "Leave it; nothing is rounded before it is shown.")
    return guarded(lambda: registry().Quantity(round(bare(only)), ""))


def _smallest(*values: Any) -> Any:
    return min(_values(values))


def _largest(*values: Any) -> Any:
    return max(_values(values))


def _total(*values: Any) -> Any:
    first, *rest = _values(values)
    for value in rest:
        first = first + value
    return first


def _average(*values: Any) -> Any:
    return _total(*values) / len(_values(values))


def _rank_of(best: Callable[[list[Any]], Any]) -> Callable[[Any], Any]:
    def call(value: Any) -> Any:
        if not isinstance(value, list):
            raise Wrong("has one value, not one a rank", "Ask for each: rank='each'.")
        values = _same_unit([_kept(v) for v in value])
        at = [i for i, v in enumerate(values) if v == best(values)]
        if len(at) > 1:
            raise Wrong(f"is the same on ranks {at[0]} and {at[1]}", "Ask for what tells one rank apart.")
        return quantity(at[0])

    return call


def _negated(value: Any) -> Any:
    return -_scalar(value)


def truth(value: Any) -> bool:
    """A value that decides something; numbers do not."""
    if not isinstance(value, bool):
        raise Wrong("a number stands where true or false is needed", "Compare it with something.")
    return value


def _inverted(value: Any) -> bool:
    return not truth(value)


OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: _alike(operator.add),
    ast.Sub: _alike(operator.sub),
    ast.Mult: _binary(operator.mul),
    ast.Div: _binary(operator.truediv),
    ast.FloorDiv: _alike(operator.floordiv),
    ast.Mod: _alike(operator.mod),
    ast.Pow: _power,
    ast.Eq: _alike(operator.eq),
    ast.NotEq: _alike(operator.ne),
    ast.Lt: _alike(operator.lt),
    ast.LtE: _alike(operator.le),
    ast.Gt: _alike(operator.gt),
    ast.GtE: _alike(operator.ge),
    ast.USub: _negated,
    ast.UAdd: _scalar,
    ast.Not: _inverted,
}

#: The functions that are not of the vocabulary. All but abs and round also take one value a rank, the last
#: two nothing else; they give the number of the rank.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": _absolute,
    "round": _rounded,
    "min": _smallest,
    "max": _largest,
    "sum": _total,
    "mean": _average,
    "rank_of_min": _rank_of(min),
    "rank_of_max": _rank_of(max),
}
