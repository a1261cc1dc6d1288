"""How pages write their numbers: the unit and the decimals of each kind; `generator.units` writes them.

Nothing is rounded before it is shown; rounding happens there and nowhere else.
"""

from __future__ import annotations

from generator.units import THIN_SPACE as THIN
from generator.units import fixed as number
from generator.units import scientific as power

__all__ = ["THIN", "integer", "megabytes", "metric", "metric_unit", "milliseconds", "minutes", "number",
           "percent", "power", "size", "time"]  # fmt: skip


#: Units of metrics with a larger one that they are shown in, and what a stored one is of that.
_RATES = {"FLOP": ("GFLOP", 1e-9), "FLOP/ns": ("GFLOP/s", 1.0), "B/ns": ("MB/s", 1e3)}


def integer(value: int) -> str:
    """A count, e.g. 6 857 216."""
    return number(value)


def milliseconds(ns: float, digits: int = 1) -> str:
    """A time given in ns, without its unit, in ms; short times keep two significant digits."""
    ms = ns / 1e6
    if ms and abs(ms) < 0.1 and digits < 3:
        digits = 3
    return number(ms, digits)


def time(ns: float, digits: int = 1) -> str:
    """A time given in ns, in ms with its unit, e.g. 526.1 ms."""
    return f"{milliseconds(ns, digits)}{THIN}ms"


def megabytes(count: float) -> str:
    """Bytes without their unit, in MB (10⁶ bytes)."""
    return number(count / 1e6, 2)


def size(count: float) -> str:
    """Bytes with a decimal unit of about three significant digits, e.g. 11.4 kB."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if abs(count) >= factor:
            scaled = count / factor
            return f"{number(scaled, 1 if scaled >= 10 else 2)}{THIN}{unit}"
    return f"{number(count)}{THIN}B"


def percent(fraction: float, digits: int = 1) -> str:
    """A fraction as per cent, e.g. 26.4 %."""
    return f"{number(fraction * 100, digits)}{THIN}%"


def minutes(count: int) -> str:
    """A reading time, e.g. 55 min or 1 h 50."""
    if count < 60:
        return f"{count}{THIN}min"
    hours, rest = divmod(count, 60)
    return f"{hours}{THIN}h{THIN}{rest:02d}" if rest else f"{hours}{THIN}h"


def metric(value: float, unit: str) -> str:
    """A metric's value without its unit, in the unit that `metric_unit` names."""
    if unit == "ns":
        return milliseconds(value)
    if unit == "B":
        return megabytes(value)
    if unit in _RATES:
        return number(value * _RATES[unit][1], 1)
    return integer(value) if isinstance(value, int) else number(value * 100, 1)


def metric_unit(value: float, unit: str) -> str:
    """The unit that a metric is shown in: ms, MB, MB/s, GFLOP, % or none (a count)."""
    if unit == "ns":
        return "ms"
    if unit == "B":
        return "MB"
    if unit in _RATES:
        return _RATES[unit][0]
    return "" if isinstance(value, int) else "%"
