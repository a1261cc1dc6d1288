"""Quantities with units, and how a reader sees them.

The registry knows only what the book speaks of: time, bytes, operations and pure numbers. It is loaded
when the first expression is evaluated, so that commands which evaluate none do not wait for pint.
"""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pint

THIN_SPACE = "\u2009"
MINUS = "\u2212"

#: What an author may write as a unit, and its definition for the registry ("" is a pure number).
#: Times are built from nanoseconds and sizes from bytes, the units in which runs are stored.
UNITS: dict[str, str] = {
    "ns": "nanosecond = [time]",
    "us": "microsecond = 1000 nanosecond",
    "ms": "millisecond = 1000000 nanosecond",
    "s": "second = 1000000000 nanosecond",
    "B": "byte = [information]",
    "kB": "kilobyte = 1000 byte",
    "MB": "megabyte = 1000000 byte",
    "GB": "gigabyte = 1000000000 byte",
    "KiB": "kibibyte = 1024 byte",
    "MiB": "mebibyte = 1048576 byte",
    "GiB": "gibibyte = 1073741824 byte",
    # Operations are counted, and a count has no dimension: they may stand beside any pure number.
    "FLOP": "flop = []",
    "MFLOP": "megaflop = 1000000 flop",
    "GFLOP": "gigaflop = 1000000000 flop",
    "TFLOP": "teraflop = 1000000000000 flop",
    "%": "percent = 0.01",
    "pp": "percentage_point = 0.01",
}

#: How a unit is printed where that differs from how it is written.
_PRINTED = {"us": "µs"}
_FLOP_NAMES = {definition.partition(" ")[0] for name, definition in UNITS.items() if name.endswith("FLOP")}
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@lru_cache(maxsize=1)
def registry() -> pint.UnitRegistry[Any]:
    """The one registry of the process; quantities of two registries do not mix."""
    import pint

    units: pint.UnitRegistry[Any] = pint.UnitRegistry(None)
    for definition in UNITS.values():
        units.define(definition)
    return units


def unit(text: str) -> pint.Unit:
    """The unit that an author wrote: one of UNITS, a rate such as "MB/s", or "" for a pure number.

    Raises ValueError for anything else.
    """
    known = registry()
    product = known.Unit("")
    for place, part in enumerate(text.split("/") if text else ()):
        definition = UNITS.get(part.strip())
        if definition is None or place > 1:
            raise ValueError(f"unknown unit '{text}'")
        one = known.Unit(definition.partition(" ")[0])
        product = product / one if place else one
    return product


def quantity(value: float, unit_text: str = "") -> pint.Quantity[Any]:
    """`value` in a unit; an int stays an int, so that counts stay exact."""
    return registry().Quantity(value, unit(unit_text))


def same_kind(a: Any, b: Any) -> bool:
    """Whether two quantities or units can be compared: both times, both sizes, both pure numbers."""
    return bool(a.dimensionality == b.dimensionality)


def magnitude(value: pint.Quantity[Any], unit_text: str = "") -> float:
    """The number of `value` in a unit; ints stay ints where no conversion is needed.

    Raises ValueError where the value is of another kind than the unit.
    """
    wanted = unit(unit_text)
    if not same_kind(value, wanted):
        raise ValueError(f"{kind_of(value)} cannot be given in {unit_text or 'a pure number'}")
    if value.units == wanted:
        return value.magnitude  # type: ignore[no-any-return]
    return value.to(wanted).magnitude  # type: ignore[no-any-return]


def kind_of(value: Any) -> str:
    """What a quantity or unit measures, in words: "a time", "a size", "a pure number", …"""
    dimensions = {str(k): float(v) for k, v in value.dimensionality.items()}
    named = {
        (): "a pure number",
        (("[time]", 1.0),): "a time",
        (("[information]", 1.0),): "a size in bytes",
        (("[information]", 1.0), ("[time]", -1.0)): "a rate",
        (("[time]", -1.0),): "a number per time",
    }
    return named.get(tuple(sorted(dimensions.items())), "a product of units")


def show(value: pint.Quantity[Any] | float, unit_text: str | None = None) -> str:
    """A quantity for a reader, e.g. "26.4 %" or "1 234 ms" (thin spaces, Unicode minus).

    Whole numbers are written whole, others with three significant digits, four where the first is a
    1; no digit before the point is ever dropped. Without a unit, a time or a size takes the one in
    which it reads best. Raises ValueError where the unit does not fit.
    """
    q: pint.Quantity[Any] = quantity(value) if isinstance(value, int | float) else value
    if unit_text is None:
        unit_text = _best_unit(q)
    if unit_text == "pp":
        unit_text = "%"
    number = show_number(magnitude(q, unit_text))
    return f"{number}{THIN_SPACE}{_PRINTED.get(unit_text, unit_text)}" if unit_text else number


def show_number(value: float) -> str:
    """A pure number for a reader; see `show`."""
    if not math.isfinite(value):
        return "–"
    nearest = round(value)
    if value == nearest or math.isclose(value, nearest, rel_tol=1e-12):
        return _grouped(Decimal(nearest))
    exact = Decimal(repr(float(value)))
    rounded = _significant(exact)
    if rounded == exact:  # nothing was lost, so no zeros need to say how far the digits are known
        rounded = exact.normalize()
    if abs(exact) < Decimal("1e-4"):
        return _scientific(rounded)
    return _grouped(rounded)


def fixed(value: float, places: int = 0) -> str:
    """A number with so many decimals, rounded half up: for columns, whose digits stand below each other."""
    if not math.isfinite(value):
        return "–"
    return _grouped(Decimal(repr(value)).quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_UP))


def scientific(value: float, places: int = 1) -> str:
    """A number as a power of ten, e.g. 1.6 × 10⁻⁷."""
    if not math.isfinite(value) or not value:
        return fixed(value)
    exact = Decimal(repr(value))
    return _scientific(
        exact.quantize(Decimal(1).scaleb(exact.adjusted() - places), rounding=ROUND_HALF_UP), places
    )


def _scientific(value: Decimal, places: int | None = None) -> str:
    mantissa, exponent = value.scaleb(-value.adjusted()), value.adjusted()
    if places is not None:  # rounding 9.99 leaves a digit more than was asked for
        mantissa = mantissa.quantize(Decimal(1).scaleb(-places))
    return f"{_grouped(mantissa)} × 10{str(exponent).translate(_SUPERSCRIPTS)}"


def _significant(exact: Decimal) -> Decimal:
    """Three significant digits, four after a leading 1, and all that stand before the point."""
    for _ in range(2):  # rounding 9.999 moves the point, and then a leading 1 asks for four digits
        digits = 4 if exact.as_tuple().digits[0] == 1 else 3
        places = max(0, digits - 1 - exact.adjusted())
        rounded = exact.quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_UP)
        if rounded.adjusted() == exact.adjusted():
            return rounded
        exact = rounded
    return rounded


def _grouped(value: Decimal) -> str:
    text = f"{abs(value):,f}".replace(",", THIN_SPACE)
    return MINUS + text if value < 0 else text


def _best_unit(value: pint.Quantity[Any]) -> str:
    scales = {
        "a time": ("s", "ms", "us", "ns"),
        "a size in bytes": ("GB", "MB", "kB", "B"),
        "a rate": ("GB/s", "MB/s", "kB/s", "B/s"),
        "a pure number": ("",),
    }
    units = scales.get(kind_of(value))
    if _counts_flops(value):
        units = ("TFLOP", "GFLOP", "MFLOP", "FLOP")
        if kind_of(value) == "a number per time":
            units = tuple(f"{u}/s" for u in units)
    if units is None:
        raise ValueError("a product of units cannot be shown")
    return next((u for u in units if abs(magnitude(value, u)) >= 1), units[-1])


def _counts_flops(value: pint.Quantity[Any]) -> bool:
    """Whether a quantity is a number of floating-point operations, or such a number per time."""
    powers = {name: power for name, power in value.unit_items() if name in _FLOP_NAMES}
    return sum(powers.values()) == 1 and kind_of(value) in ("a pure number", "a number per time")


def wire_bytes(op: str, payload: int, members: int) -> int | float:
    """Bytes that one rank sends for a call under the ring algorithm (mean over the group's ranks).

    `payload` is the full (gathered, unreduced) tensor in bytes. With n members: all-reduce
    2(n−1)/n·S; all-gather, reduce-scatter and all-to-all (n−1)/n·S; broadcast along a chain
    (n−1)/n·S; a send S on the sender, so nothing for its receive. An int where that is exact.
    Sources: Patarasuk and Yuan 2009 (ring); the factors are those of nccl-tests' bus bandwidth.
    Raises ValueError for an operation it does not know.
    """
    if members < 1:
        raise ValueError("a group has at least one member")
    ring = Fraction(members - 1, members)
    factors = {
        "all_reduce": 2 * ring,
        "all_gather": ring,
        "reduce_scatter": ring,
        "all_to_all": ring,
        "broadcast": ring,
        "barrier": Fraction(0),
        "send": Fraction(1),
        "recv": Fraction(0),
    }
    if op not in factors:
        raise ValueError(f"no ring algorithm is known for '{op}'")
    exact = factors[op] * payload
    return exact.numerator if exact.denominator == 1 else float(exact)
