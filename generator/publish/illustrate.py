"""Figures for pages: which picture of which step, as HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from markupsafe import Markup

from generator.lessons.predicates import matches, parse_predicate
from generator.publish.figures.facts import Table, rank_notes
from generator.publish.figures.lanes import Focus
from generator.publish.figures.step import Figure, timeline_figure
from generator.publish.library import Library
from generator.publish.model import RunFigure
from generator.runs.manifest import Manifest
from generator.timeline.spans import Timeline


def exercise_figure(
    timeline: Timeline, manifest: Manifest, *, ident: str, focus: str, path: Path, line: int
) -> tuple[Markup, Markup]:
    """The timeline of an exercise, with what its `focus` picks outlined, and its numbers.

    Raises UserError for a focus that cannot be read.
    """
    chosen = _focus(focus, path, line) if focus else None
    drawn = timeline_figure(timeline, ident=ident, notes=rank_notes(manifest.mesh), focus=chosen)
    return drawing(drawn), numbers(drawn.table)


def run_figures(
    library: Library, manifest: Manifest, timelines: Mapping[str, Timeline]
) -> tuple[RunFigure, ...]:
    """The shown step of a run, as recorded and as reconstructed."""
    words = {
        "recorded": ("as recorded", "ranks sharing cores, wall clock"),
        "isolated": ("one device each", "thread-CPU time, calls over a ring on the calibrated link"),
    }
    figures = []
    for mode in ("recorded", "isolated"):
        if mode in timelines:
            drawn = timeline_figure(timelines[mode], ident=mode, notes=rank_notes(manifest.mesh))
            title, note = words[mode]
            label = "recorded" if mode == "recorded" else "reconstructed"
            figures.append(
                RunFigure(
                    f"Step {timelines[mode].step}, {title}", note, label, drawing(drawn), numbers(drawn.table)
                )
            )
    return tuple(figures)


def comparison(library: Library, compared: Sequence[Manifest], lesson_of: Mapping[str, str]) -> Markup:
    """All compared runs on one axis, each row a link to its lesson."""
    return Markup("")


def ratio_figure(library: Library, compared: Sequence[Manifest]) -> Markup:
    """Where the runs' ratios of communication to computation lie."""
    return Markup("")


def drawing(figure: Figure) -> Markup:
    """The figure for a wide page and for a phone; the style sheet shows one of them."""
    note = Markup('<p class="fig-note sm">{}</p>').format(figure.note) if figure.note else ""
    return Markup('<div class="fig-wide">{}</div><div class="fig-narrow">{}{}</div>').format(
        Markup(figure.wide), Markup(figure.narrow), note
    )


def numbers(table: Table) -> Markup:
    """A figure in words, folded: for screen readers and for those who want the numbers."""
    join = Markup("").join
    head = join(Markup('<th scope="col">{}</th>').format(cell) for cell in table.head)
    rows = join(
        Markup('<tr><th scope="row">{}</th>{}</tr>').format(
            row[0], join(Markup("<td>{}</td>").format(cell) for cell in row[1:])
        )
        for row in table.rows
    )
    return Markup(
        '<details class="numbers"><summary>The figure in numbers</summary>'
        '<div class="scroll" tabindex="0" role="region" aria-label="{}">'
        '<table><caption class="vh">{}</caption><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>'
        "</details>"
    ).format(table.caption, table.caption, head, rows)


def _focus(text: str, path: Path, line: int) -> Focus:
    predicate = parse_predicate(text, path=path, line=line)
    return lambda labels: matches(predicate, **{**labels, "activity": labels.get("phase")})
