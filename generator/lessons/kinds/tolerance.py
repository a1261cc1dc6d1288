"""How far a reader's number may be from the answer.

"5 %" is relative to the answer, "5 pp" is in points of a percentage, "2 ms" is a distance; a bare
number is a distance between pure numbers, and "0" asks for the exact count.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from generator.units import kind_of, magnitude, quantity, same_kind, unit

_FORM = re.compile(r"(\d+(?:\.\d+)?)\s*(\S*)")


@dataclass(frozen=True, slots=True)
class Tolerance:
    #: A share of the answer (0.05 for "5 %") where relative, else a distance in the question's unit.
    amount: float
    relative: bool

    def around(self, value: float) -> tuple[float, float]:
        """The lowest and highest number that is accepted for `value`, in the question's unit."""
        reach = abs(value) * self.amount if self.relative else self.amount
        return value - reach, value + reach


def read_tolerance(text: str, unit_text: str) -> Tolerance:
    """The tolerance of a question in `unit_text`. Raises ValueError with what cannot be used."""
    found = _FORM.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"the tolerance '{text}' is not a number with a unit")
    amount, of = float(found[1]), found[2]
    if of == "%":
        if not 0 < amount < 100:
            raise ValueError("a relative tolerance lies between 0 % and 100 %")
        return Tolerance(amount / 100, relative=True)
    if of == "pp" or unit_text == "%":
        if unit_text != "%" or of != "pp":
            raise ValueError(f"the tolerance '{text}' does not fit the unit '{unit_text}'")
        return Tolerance(amount, relative=False)
    try:
        distance = quantity(amount, of)
    except ValueError:
        raise ValueError(f"the tolerance '{text}' has no known unit") from None
    if not same_kind(distance, unit(unit_text)):
        raise ValueError(f"the tolerance is {kind_of(distance)} and the unit is '{unit_text}'")
    return Tolerance(float(magnitude(distance, unit_text)), relative=False)
