"""Dot plots: numbers on a common axis, as wide as the place they are put in.

Where a mark lies is a percentage of the width, so one picture fits a phone and a desk; heights are px.
A mark's shape says where its number comes from, as everywhere: a disc is recorded, half a disc is
reconstructed, a diamond is a formula. `symbols` defines the shapes once for all pictures of a page.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from generator.publish.figures.markup import Canvas, element, number, text_width

#: Marks by the label of their number.
MARKS = {"recorded": "disc", "reconstructed": "half", "formula": "diamond"}
_RADIUS, _PITCH = 3.5, 8
#: The narrowest that a plot gets, px: marks that do not touch there touch nowhere.
_LEAST_PX = 300
#: Levels of marks in a strip. What finds no free place lies over others, and a number says how many.
_LEVELS = 5
_NAME_PX = 11
#: A dot nearer to zero than this part of the width does not stand out.
_NEAR = 0.03


@dataclass(frozen=True, slots=True)
class Axis:
    """A stretch of numbers over the whole width; what lies outside is drawn at its edge."""

    low: float
    high: float
    #: Where ticks are, and what they say.
    ticks: tuple[tuple[float, str], ...]
    logarithmic: bool = False

    def part(self, value: float) -> float:
        """Where a number lies, 0 at the left edge and 1 at the right."""
        low, high, at = self.low, self.high, value
        if self.logarithmic:
            low, high, at = math.log10(low), math.log10(high), math.log10(max(value, self.low))
        return min(1.0, max(0.0, (at - low) / (high - low)))


@dataclass(frozen=True, slots=True)
class Dot:
    """One number of a plot, with what it is of and its label (recorded, reconstructed, formula)."""

    value: float
    name: str
    label: str = "recorded"


def linear(values: Iterable[float], words: Callable[[float], str], *, most: int = 6) -> Axis:
    """An axis from and to round numbers around all values, with at most `most` ticks."""
    found = list(values)
    low, high = min(found), max(found)
    if low == high:
        low, high = low - 1, high + 1
    step = _round_up((high - low) / (most - 2))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = tuple(step * k for k in range(first, last + 1))
    return Axis(ticks[0], ticks[-1], tuple((t, words(t)) for t in ticks))


def logarithmic(low: int, high: int, words: Callable[[float], str]) -> Axis:
    """An axis from 10^low to 10^high with a tick at each power."""
    ticks = tuple(10.0**k for k in range(low, high + 1))
    return Axis(ticks[0], ticks[-1], tuple((t, words(t)) for t in ticks), logarithmic=True)


def _round_up(step: float) -> float:
    """The smallest of 1, 2, 5, 10, … times a power of ten that is no less."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(power * k for k in (1, 2, 5, 10) if power * k >= step * (1 - 1e-9))


# ---- pictures


def symbols() -> str:
    """The shapes of all marks; stands once on a page that has dot plots."""
    half = element("path", d="M0 -3.2a3.2 3.2 0 0 0 0 6.4z", cls="mk-half")
    shapes = {
        "disc": element("circle", r=_RADIUS, cls="mk-fill"),
        "half": element("circle", r=3.2, cls="mk-ring") + half,
        "diamond": element("path", d="M0 -4.2L4.2 0L0 4.2L-4.2 0z", cls="mk-ring"),
    }
    defined = "".join(element("g", shape, id=f"mark-{name}") for name, shape in shapes.items())
    return element(
        "svg", element("defs", defined), width=0, height=0, cls="dots-marks", aria_hidden="true"
    )  # fmt: skip


def axis_picture(axis: Axis) -> str:
    """Ticks and their words, for below a plot or above a column of them."""
    canvas = Canvas()
    for value, words in axis.ticks:
        x = axis.part(value)
        canvas.add("line", x1=_percent(x), x2=_percent(x), y1=0, y2=4, cls="tk")
        anchor = "start" if x < 0.04 else "end" if x > 0.96 else "middle"
        canvas.add("text", words, x=_percent(x), y=16, text_anchor=anchor, cls="t3")
    return _svg(canvas, 20)


def strip(
    axis: Axis,
    dots: Sequence[Dot],
    title: str,
    *,
    band: tuple[float, float] | None = None,
    named: int = 2,
    counted: str = "runs",
) -> str:
    """All numbers of one kind on an axis, side by side where they would cover each other.

    `band` is what is promised, shaded. Where dots lie over each other stands how many there are (of what
    `counted` says; not where it is empty), and the `named` outermost ones carry their name, if there is
    room for it.
    """
    canvas = Canvas()
    half = _LEVELS // 2 * _PITCH
    middle = half + _PITCH
    if band:
        left, right = axis.part(band[0]), axis.part(band[1])
        canvas.add("rect", x=_percent(left), width=_percent(right - left), y=0, height=2 * middle, cls="band")
    _grid(canvas, axis, 2 * middle)
    placed = _placed(axis, dots)
    for p in placed:
        _mark(canvas, p.part, middle + p.level * _PITCH, p.dot.label)
    words = _Words(placed)
    if counted:
        for count, part in _heaps(placed):
            words.add(f"{count} {counted}", part, 0, left=part > 0.85)
    for p in _outermost(placed, axis):
        named -= named > 0 and words.add(p.dot.name, p.part, p.level, left=p.part > 0.5)
    words.draw(canvas, middle)
    return _svg(canvas, 2 * middle, title)


def line(axis: Axis, dots: Sequence[Dot], title: str, *, span: tuple[float, float] | None = None) -> str:
    """A few numbers of one thing, joined, on a line of their own; `span` is a range drawn behind them."""
    canvas = Canvas()
    _grid(canvas, axis, 16)
    parts = [axis.part(d.value) for d in dots]
    if span:
        canvas.add("line", x1=_percent(axis.part(span[0])), x2=_percent(axis.part(span[1])), y1=8, y2=8,
                   cls="span")  # fmt: skip
    canvas.add("line", x1=_percent(min(parts)), x2=_percent(max(parts)), y1=8, y2=8, cls="rail")
    for dot, part in zip(dots, parts, strict=True):
        _mark(canvas, part, 8, dot.label)
    return _svg(canvas, 16, title)


def _mark(canvas: Canvas, part: float, y: float, label: str) -> None:
    canvas.add("use", href=f"#mark-{MARKS[label]}", x=_percent(part), y=number(y))


def _grid(canvas: Canvas, axis: Axis, height: int) -> None:
    """A hairline at each tick, the one at zero stronger."""
    for value, _ in axis.ticks:
        x = _percent(axis.part(value))
        canvas.add("line", x1=x, x2=x, y1=0, y2=height, cls="gl2" if value == 0 else "gl")


@dataclass(frozen=True, slots=True)
class _Placed:
    dot: Dot
    part: float
    #: 0 in the middle, then 1 below, −1 above, …
    level: int
    #: Whether it lies over another one.
    over: bool


def _placed(axis: Axis, dots: Sequence[Dot]) -> list[_Placed]:
    """Each dot with its place, from left to right."""
    levels = [0]
    for k in range(1, _LEVELS // 2 + 1):
        levels += [k, -k]
    last = dict.fromkeys(levels, -math.inf)
    placed = []
    for part, dot in sorted(((axis.part(d.value), d) for d in dots), key=lambda p: (p[0], p[1].name)):
        free = [level for level in levels if (part - last[level]) * _LEAST_PX >= _PITCH]
        level = free[0] if free else min(levels, key=lambda lv: (last[lv], abs(lv)))
        last[level] = part
        placed.append(_Placed(dot, part, level, over=not free))
    return placed


def _heaps(placed: Sequence[_Placed]) -> list[tuple[int, float]]:
    """Where dots lie over each other: how many there are within a dot's width, and the rightmost's place."""
    found: list[tuple[int, float]] = []
    end = -math.inf
    for first in (p for p in placed if p.over):
        if first.part < end:
            continue
        near = [p.part for p in placed if abs(p.part - first.part) * _LEAST_PX <= _PITCH]
        end = max(near) + _PITCH / _LEAST_PX
        found.append((len(near), max(near)))
    return found


def _outermost(placed: Sequence[_Placed], axis: Axis) -> list[_Placed]:
    """The dots that stand out, farthest from zero (or from the left edge) first."""
    zero = axis.part(0.0) if axis.low < 0 and not axis.logarithmic else 0.0
    far = [p for p in placed if abs(p.part - zero) > _NEAR]
    return sorted(far, key=lambda p: (-abs(p.part - zero), p.dot.name))


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    #: Where its mark is, and which part of the width it takes.
    part: float
    low: float
    high: float
    level: int


class _Words:
    """Words beside marks, each only where it covers neither a mark nor another word."""

    def __init__(self, placed: Sequence[_Placed]) -> None:
        self._placed = placed
        self._words: list[_Word] = []

    def add(self, text: str, part: float, level: int, *, left: bool) -> bool:
        """Put a word beside a mark; False where there is no room for it."""
        room = (text_width(text, _NAME_PX) + 14) / _LEAST_PX
        low, high = (part - room, part) if left else (part, part + room)
        if low < 0 or high > 1:
            return False
        marks = any(
            low <= p.part <= high and p.part != part and abs(p.level - level) < 2 for p in self._placed
        )  # fmt: skip
        if marks or any(w.low < high and low < w.high and abs(w.level - level) < 2 for w in self._words):
            return False
        self._words.append(_Word(text, part, low, high, level))
        return True

    def draw(self, canvas: Canvas, middle: float) -> None:
        for word in self._words:
            anchor, dx = ("end", -9) if word.low < word.part else ("start", 9)
            y = middle + word.level * _PITCH + 4
            canvas.add(
                "text", word.text, x=_percent(word.part), dx=dx, y=number(y), text_anchor=anchor, cls="halo"
            )


def _percent(part: float) -> str:
    return f"{number(100 * part)}%"


def _svg(canvas: Canvas, height: int, title: str = "") -> str:
    named: dict[str, object] = {"role": "img", "aria_label": title} if title else {"aria_hidden": "true"}
    return element("svg", canvas.markup(), width="100%", height=height, cls="dots", **named)
