"""Closed forms against runs, computed while the site is built."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from markupsafe import Markup

from generator.lessons.comparing import CLOSE, EXACT, IDEAL, Compared, Comparison, compare
from generator.lessons.comparisons import COMPARISONS
from generator.lessons.scope import Scope
from generator.lessons.vocabulary import default_vocabulary
from generator.publish.figures import dots
from generator.publish.figures.dots import Axis, Dot
from generator.publish.library import Library
from generator.publish.parts import Link
from generator.publish.urls import run_url
from generator.publish.validation.model import FormulaBlock, FormulaGroup, FormulaRow
from generator.publish.validation.shown import axis_percent, signed
from generator.units import show as show_quantity

_GROUPS = {
    EXACT: ("Equal", "counts, bytes, and schedules at unit cost"),
    CLOSE: ("Near", "the formula leaves a little out, or the run adds it"),
    IDEAL: (
        "An ideal beside a run",
        "no more than a look: what the formula leaves out is what there is to learn",
    ),
}
_ROUNDING = 1e-12


def formula_groups(library: Library) -> tuple[FormulaGroup, ...]:
    """All comparisons whose runs the book has, by how near the two should come."""
    scope = Scope("", library.manifests, library.timeline, default_vocabulary())
    found = list(compare(COMPARISONS, scope, lambda run, *_: library.unit_cost(run)))
    groups = []
    for kind, (title, note) in _GROUPS.items():
        members = [c for c in found if c.comparison.kind == kind]
        if members:
            groups.append(_group(title, note, members, drawn=kind == IDEAL))
    return tuple(groups)


def _group(title: str, note: str, found: Sequence[Compared], *, drawn: bool) -> FormulaGroup:
    axis = dots.linear([0.0, *(c.difference for c in found)], axis_percent) if drawn else None
    blocks = [
        _block(comparison, list(members), axis)
        for comparison, members in groupby(found, key=lambda c: c.comparison)
    ]
    return FormulaGroup(title, note, Markup(dots.axis_picture(axis) if axis else ""), tuple(blocks))


def _block(comparison: Comparison, found: Sequence[Compared], axis: Axis | None) -> FormulaBlock:
    alike: dict[tuple[str, ...], list[Compared]] = {}
    for each in found:
        alike.setdefault(_shown(each), []).append(each)
    return FormulaBlock(
        what=comparison.what,
        formula=comparison.formula,
        measured=comparison.measured,
        leaves_out=comparison.leaves_out,
        rows=tuple(_row(shown, members, axis) for shown, members in alike.items()),
    )


def _shown(found: Compared) -> tuple[str, ...]:
    """Both values, where the measured one comes from, and the difference, as text."""
    unit = found.comparison.unit
    equal = abs(found.difference) < _ROUNDING
    return (
        _quantity(found.formula, unit),
        _quantity(found.measured, unit),
        found.label,
        "none" if equal else signed(found.difference, 3 if abs(found.difference) < 0.001 else 1),
    )


def _row(shown: tuple[str, ...], found: Sequence[Compared], axis: Axis | None) -> FormulaRow:
    formula, measured, label, difference = shown
    picture = ""
    if axis:
        # Runs in one row differ by less than is shown.
        picture = dots.line(axis, [Dot(0.0, "formula", "formula"), Dot(found[0].difference, label, label)],
                            f"measured {difference} from the formula")  # fmt: skip
    return FormulaRow(
        runs=tuple(Link(run_url(c.run), c.run) for c in found),
        formula=formula,
        measured=measured,
        label=label,
        difference=difference,
        good=all(c.agrees is not False for c in found),
        picture=Markup(picture),
    )


def _quantity(value: Any, unit: str) -> str:
    return show_quantity(value, unit)
