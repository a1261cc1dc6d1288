"""The block `toml timeline`: a figure of one run on all ranks, and what it points to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from generator.errors import UserError, did_you_mean
from generator.lessons.kinds.common import SLUG
from generator.lessons.selections import parse_selection
from generator.lessons.tables import Table
from generator.lessons.vocabulary import MODES

#: How ids begin that are made for figures.
FIGURE_ID = "figure-"
#: A link to one of the page's views begins so.
SHOW = "show:"
_COVERED = "until predicted"
B = TypeVar("B")
_TEXTS = ("id", "run", "mode", "focus", "highlight", "blur", "question", "title", "caption")


@dataclass(frozen=True, slots=True)
class View:
    """A place in a figure that the text leads to by a link to #show:<name>."""

    name: str
    #: A selection; the camera goes there and outlines it.
    focus: str
    #: Markdown, shown while the view is.
    caption: str
    line: int
    lines: dict[str, int] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class TimelineFigure:
    """A timeline of one run on all ranks."""

    run: str
    mode: str
    #: A selection (lessons.selections) that is outlined, and that the camera starts at. May be empty.
    focus: str
    title: str
    caption: str
    line: int
    #: Where each key's value stands in the file.
    lines: dict[str, int] = field(default_factory=dict, compare=False)
    #: Its id in the page.
    id: str = ""
    #: A selection that is outlined where the camera is anyway. May be empty.
    highlight: str = ""
    #: Whether the figure is covered until a question is answered or given up, and that question's id.
    covered: bool = False
    until: str = ""
    views: tuple[View, ...] = ()


def parse_timeline(table: Table, runs: Sequence[str]) -> TimelineFigure:
    """The figure in a block. Problems go to the table's source."""
    blur, question = table.text("blur"), table.text("question")
    figure = TimelineFigure(
        run=table.text("run", default=runs[0] if runs else ""),
        mode=table.text("mode", default=MODES[0]),
        focus=table.text("focus"),
        title=table.text("title"),
        caption=table.text("caption"),
        line=table.source.line,
        lines={k: table.line_of(k) for k in _TEXTS},
        id=table.text("id"),
        highlight=table.text("highlight"),
        covered=bool(blur),
        until=question,
        views=tuple(_view(t) for t in table.tables("views")),
    )
    table.finish()
    if figure.id and not SLUG.fullmatch(figure.id):
        table.complain(
            f"the id '{figure.id}' is not made of lower-case words and hyphens",
            'Write for example: id = "whole-step"',
            key="id",
        )
    if figure.mode not in MODES:
        table.complain(f"unknown mode '{figure.mode}'", did_you_mean(figure.mode, MODES), key="mode")
    if blur and blur != _COVERED:
        table.complain(f"unknown blur '{blur}'", f'Write: blur = "{_COVERED}"', key="blur")
    if question and not blur:
        table.complain("'question' is there without 'blur'", f'Add: blur = "{_COVERED}"', key="question")
    for key in ("focus", "highlight"):
        _check_selection(table, getattr(figure, key), key)
    return figure


def _view(table: Table) -> View:
    view = View(
        name=table.text("name", required="links lead to it"),
        focus=table.text("focus", required="it says what is shown"),
        caption=table.text("caption", required="it says what is to be seen there"),
        line=table.line,
        lines={k: table.line_of(k) for k in ("name", "focus", "caption")},
    )
    table.finish()
    if view.name and not SLUG.fullmatch(view.name):
        table.complain(
            f"the name '{view.name}' is not made of lower-case words and hyphens",
            'Write for example: name = "last-bucket"',
            key="name",
        )
    _check_selection(table, view.focus, "focus")
    return view


def _check_selection(table: Table, text: str, key: str) -> None:
    try:
        parse_selection(text, path=table.source.path, line=table.line_of(key))
    except UserError as error:
        table.source.problems.append(error)


def placed(blocks: Sequence[B | TimelineFigure]) -> Iterator[B | TimelineFigure]:
    """The blocks of a page, its figures with their ids and with the questions that they wait for."""
    number = 0
    for i, block in enumerate(blocks):
        if not isinstance(block, TimelineFigure):
            yield block
            continue
        number += 1
        until = block.until
        if block.covered and not until:
            asked = (getattr(b, "id", "") for b in blocks[i:] if not isinstance(b, TimelineFigure))
            until = next(filter(None, asked), "")
        yield replace(block, id=block.id or f"{FIGURE_ID}{number}", until=until)


def texts_of(figure: TimelineFigure) -> Iterator[tuple[str, int]]:
    """The Markdown of a figure, each with its line."""
    yield figure.caption, figure.lines.get("caption", figure.line)
    for view in figure.views:
        yield view.caption, view.lines.get("caption", view.line)
