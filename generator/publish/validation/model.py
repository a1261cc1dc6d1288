"""The page of validation as plain data; see `generator.publish.model`."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from generator.publish.parts import Fact, Link, Promise


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """A run, or something else with an address or none, and its numbers."""

    name: str
    url: str
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ledger:
    """A table of numbers, a row a run: what a figure shows, for those who want or need the numbers."""

    caption: str
    #: Names of all columns.
    head: tuple[str, ...]
    rows: tuple[LedgerRow, ...]


@dataclass(frozen=True, slots=True)
class StripLine:
    name: str
    note: str
    picture: Markup


@dataclass(frozen=True, slots=True)
class DotFigure:
    """Strips of dots on one axis."""

    title: str
    note: str
    #: Where its numbers come from.
    labels: tuple[str, ...]
    lines: tuple[StripLine, ...]
    axis: Markup
    ledger: Ledger | None = None


@dataclass(frozen=True, slots=True)
class PlotRow:
    """A line of a table that has a plot in it."""

    name: str
    url: str
    picture: Markup
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlotTable:
    caption: str
    #: Names of the columns but the plot's, which has the axis.
    head: tuple[str, ...]
    axis: Markup
    rows: tuple[PlotRow, ...]


@dataclass(frozen=True, slots=True)
class FormulaRow:
    """One closed form against the runs in which both sides have the same values."""

    runs: tuple[Link, ...]
    formula: str
    measured: str
    label: str
    difference: str
    #: False where they should agree and do not.
    good: bool
    #: The difference on the group's axis; empty where all are equal.
    picture: Markup


@dataclass(frozen=True, slots=True)
class FormulaBlock:
    """A closed form, what it is held against, and what came of it."""

    what: str
    formula: str
    measured: str
    leaves_out: str
    rows: tuple[FormulaRow, ...]


@dataclass(frozen=True, slots=True)
class FormulaGroup:
    title: str
    note: str
    #: Of the differences' pictures; empty in a group that has none.
    axis: Markup
    blocks: tuple[FormulaBlock, ...]


@dataclass(frozen=True, slots=True)
class VerdictLine:
    name: str
    calls: str


@dataclass(frozen=True, slots=True)
class ReplaySection:
    error: DotFigure
    #: How far calls are moved, in a figure and in words; None where no run has calls.
    moved: DotFigure | None
    moved_words: str


@dataclass(frozen=True, slots=True)
class IsolatedSection:
    figure: DotFigure
    table: PlotTable
    words: str


@dataclass(frozen=True, slots=True)
class CoresSection:
    table: PlotTable
    words: str
    #: What the code says of itself that predicts: the one setting.
    setting: Markup


@dataclass(frozen=True, slots=True)
class MatchingSection:
    calls: str
    steps: str
    runs: int
    verdicts: tuple[VerdictLine, ...]
    words: tuple[str, ...]
    ledger: Ledger


@dataclass(frozen=True, slots=True)
class RepeatSection:
    figure: DotFigure
    note: Markup
    words: str


@dataclass(frozen=True, slots=True)
class PriceSection:
    figure: DotFigure
    words: str


@dataclass(frozen=True, slots=True)
class Unknown:
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class ValidationData:
    """What was checked, over all runs; a section is None where a book has nothing to show in it."""

    symbols: Markup
    facts: tuple[Fact, ...]
    promises: tuple[Promise, ...]
    replay: ReplaySection | None
    isolated: IsolatedSection | None
    cores: CoresSection | None
    matching: MatchingSection | None
    formulas: tuple[FormulaGroup, ...]
    losses: DotFigure | None
    repeatability: RepeatSection | None
    price: PriceSection | None
    unknown: tuple[Unknown, ...]
