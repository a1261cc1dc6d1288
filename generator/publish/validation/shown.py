"""How the page of validation writes and draws what it shows."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from generator.publish import show
from generator.publish.figures import dots
from generator.publish.figures.dots import Axis, Dot
from generator.publish.urls import run_url
from generator.publish.validation.model import Ledger, LedgerRow, StripLine

RECORDED, RECONSTRUCTED = "recorded", "reconstructed"


def signed(fraction: float, digits: int = 1) -> str:
    """A difference as per cent with its sign, e.g. +1.4 %; none where it is nothing at all."""
    text = show.percent(fraction, digits)
    return f"+{text}" if fraction > 0 and any(c in "123456789" for c in text) else text


def axis_percent(fraction: float) -> str:
    return "0" if abs(fraction) < 1e-9 else signed(fraction, 0 if abs(fraction) >= 0.01 else 1)


def strip_line(
    name: str, note: str, axis: Axis, found: Sequence[Dot], title: str, *,
    band: tuple[float, float] | None = None,
) -> StripLine:  # fmt: skip
    """A strip with a dot a run."""
    return StripLine(name, note, Markup(dots.strip(axis, found, title, band=band)))


def ledger(caption: str, head: tuple[str, ...], rows: Sequence[tuple[str, tuple[str, ...]]]) -> Ledger:
    """A table with a row a run, each a link to the run's page."""
    found = tuple(LedgerRow(name, run_url(name), cells) for name, cells in rows)
    return Ledger(caption, ("run", *head), found)


def prose(text: str) -> str:
    """Words for a paragraph: no line ends between a number and its unit, or within a number."""
    return text.replace(show.THIN, "\u202f")


def runs(count: int) -> str:
    return "1 run" if count == 1 else f"{show.integer(count)} runs"


def axis_ms(ms: float) -> str:
    return show.number(ms, 0 if ms == round(ms) else 1) + (f"{show.THIN}ms" if not ms else "")


def range_words(what: str, found: Sequence[Dot]) -> str:
    values = [d.value for d in found]
    return f"{what}, {runs(len(values))}: {signed(min(values), 2)} to {signed(max(values), 2)}"
