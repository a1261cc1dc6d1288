"""Figures outside of pages: a timeline as an SVG file of its own, and the book's mark."""

from __future__ import annotations

import re

from generator.publish.figures.lanes import Focus
from generator.publish.figures.layout import WIDE
from generator.publish.figures.markup import Canvas, boxes, decoration
from generator.publish.figures.step import draw
from generator.timeline.spans import Timeline

_MARGIN = 24


def standalone(
    timeline: Timeline, *, css: str, notes: tuple[str, ...] = (), focus: Focus | None = None
) -> str:
    """A timeline as an SVG document that follows the viewer's light or dark theme.

    `css` is the text of templates/css/tokens.css and figure.css, one after the other.
    """
    return (
        draw(timeline, WIDE, ident=timeline.run, notes=notes, focus=focus, style=compact(css), margin=_MARGIN)
        + "\n"
    )


def compact(css: str) -> str:
    """A stylesheet without comments and needless space."""
    return re.sub(r"\s+", " ", re.sub(r"/\*.*?\*/", "", css, flags=re.DOTALL)).strip()


def logo() -> str:
    """The book's mark: three ranks of a pipeline, each later than the one above, then turning back."""
    canvas = Canvas()
    for row, (forward, backward) in enumerate((((0, 7), (11, 18)), ((3, 8), (9, 16)), ((6, 9), (10, 14)))):
        canvas.path(boxes([forward], 1 + 5 * row, 4), "F k")
        canvas.path(boxes([backward], 1 + 5 * row, 4), "B k")
    return decoration(canvas, width=18, height=16, cls="logo")
