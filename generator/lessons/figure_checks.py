"""What is wrong with an exercise's figures, and with what text and questions want of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial

from generator.errors import UserError, did_you_mean
from generator.lessons.exercise import Exercise
from generator.lessons.figures import SHOW, TimelineFigure
from generator.lessons.scope import Scope
from generator.lessons.selections import parse_selection, select
from generator.runs.manifest import Manifest
from generator.runs.reader import Manifests

_LINK = re.compile(rf"\]\(#{SHOW}([^)\s]*)\)")


def check_run(
    exercise: Exercise, figure: TimelineFigure, manifests: Mapping[str, Manifest], runs: Manifests
) -> Iterator[UserError]:
    """Complain of a figure whose run is not there, or not the page's, or has no timeline."""
    here = partial(UserError, path=exercise.path, line=figure.lines.get("run", figure.line))
    if not figure.run:
        return
    if figure.run not in runs.ids:
        if figure.run not in exercise.runs:
            yield here(
                f"unknown run '{figure.run}'",
                remedy=did_you_mean(figure.run, runs.ids) if runs.ids else "Record it first.",
            )
    elif figure.run not in exercise.runs:
        yield here(f"the run '{figure.run}' is not one of the page's", remedy="Add it to 'runs'.")
    elif figure.run in manifests and not manifests[figure.run].has_steps:
        yield here(
            f"the run '{figure.run}' is a {manifests[figure.run].kind} and has no timeline",
            remedy="Show a training run.",
        )


def check_form(exercise: Exercise, texts: Iterable[tuple[str, int]]) -> Iterator[UserError]:
    """Complain of figures that wait for no question, and of links and views that miss each other."""
    questions = [q.id for q in exercise.questions]
    for figure in exercise.figures:
        if figure.covered and not figure.until:
            yield UserError(
                "the figure is covered until a question is answered, and none follows",
                path=exercise.path,
                line=figure.lines.get("blur"),
                remedy='Add a question, or name one: question = "…"',
            )
        elif figure.until and figure.until not in questions:
            yield UserError(
                f"unknown question '{figure.until}'",
                path=exercise.path,
                line=figure.lines.get("question"),
                remedy=did_you_mean(figure.until, questions),
            )
    views = {v.name: v for f in exercise.figures for v in f.views}
    led_to = set()
    for text, line in texts:
        for found in _LINK.finditer(text):
            led_to.add(found[1])
            if found[1] not in views:
                yield UserError(
                    f"the link '#{SHOW}{found[1]}' leads to no view of the page's figures",
                    path=exercise.path,
                    line=line + text.count("\n", 0, found.start()),
                    remedy=did_you_mean(found[1], views) if views else "Add [[views]] to a timeline.",
                )
    for name, view in views.items():
        if name and name not in led_to:
            yield UserError(
                f"nothing leads to the view '{name}'",
                path=exercise.path,
                line=view.line,
                remedy=f"Link it from a text: [words](#{SHOW}{name}), or remove it.",
            )


def check_pointing(exercise: Exercise, scope: Scope) -> Iterator[UserError]:
    """A figure that points to nothing would send the reader looking for it."""
    for figure in exercise.figures:
        if figure.run not in scope.manifests or not scope.manifests[figure.run].has_steps:
            continue
        pointers = [(key, getattr(figure, key), figure.lines.get(key)) for key in ("focus", "highlight")]
        pointers += [(f"view '{v.name}'", v.focus, v.lines.get("focus")) for v in figure.views]
        for what, text, line in pointers:
            try:
                if not text.strip() or select(
                    parse_selection(text), scope.timelines(figure.run, figure.mode)
                ):
                    continue
            except UserError as error:
                yield error
                continue
            yield UserError(
                f"the {what} matches nothing in the run '{figure.run}'",
                path=exercise.path,
                line=line,
                remedy="Ask for phases, layers and operations that the run has.",
            )
