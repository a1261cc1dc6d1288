"""Answers: an exercise with every expression in it computed from the runs of its page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from generator.errors import Problems, UserError
from generator.lessons.exercise import Exercise, Prose, TimelineFigure
from generator.lessons.expressions import Value, evaluate
from generator.lessons.interpolate import interpolate
from generator.lessons.kinds.choice import ResolvedChoice, ResolvedOption
from generator.lessons.kinds.number import ResolvedMisconception, ResolvedNumber
from generator.lessons.questions import Question, ResolvedQuestion, kind_of
from generator.lessons.scope import Scope
from generator.timeline.spans import Timeline
from generator.units import show

__all__ = [
    "PageResolver",
    "ResolvedBlock",
    "ResolvedChoice",
    "ResolvedExercise",
    "ResolvedMisconception",
    "ResolvedNumber",
    "ResolvedOption",
    "resolve",
]

ResolvedBlock = Prose | TimelineFigure | ResolvedQuestion


@dataclass(frozen=True, slots=True)
class ResolvedExercise:
    """An exercise whose texts are Markdown with all numbers in place, and whose questions have answers."""

    #: As written.
    exercise: Exercise
    blocks: tuple[ResolvedBlock, ...]
    summary: str
    cluster: str


@dataclass(slots=True)
class PageResolver:
    """Values and texts of one page. What is wrong with a text is kept in `problems`."""

    path: Path
    slug: str
    scope: Scope
    figures: tuple[TimelineFigure, ...] = ()
    problems: list[UserError] = field(default_factory=list)

    def value(self, expression: str, line: int | None) -> Value:
        return evaluate(expression, self.scope, path=self.path, line=line)

    def timeline(self, run: str, mode: str) -> Timeline:
        return self.scope.timelines(run, mode)

    def text(self, markdown: str, line: int | None) -> str:
        try:
            return interpolate(markdown, self._shown, path=self.path, line=line)
        except Problems as found:
            self.problems.extend(found.problems)
            return markdown

    def _shown(self, expression: str, unit: str | None, line: int | None) -> str:
        result = self.value(expression, line).result
        if isinstance(result, bool):
            raise UserError(
                f"'{expression}' is true or false and cannot stand in a text",
                path=self.path,
                line=line,
                remedy="Write an expression that gives a number.",
            )
        try:
            return show(result, unit)
        except ValueError as error:
            raise UserError(
                f"'{expression}' cannot be shown: {error}",
                path=self.path,
                line=line,
                remedy="Give a unit that fits: {… | ms}.",
            ) from None


def _figure(figure: TimelineFigure, resolver: PageResolver) -> TimelineFigure:
    views = (replace(v, caption=resolver.text(v.caption, v.lines.get("caption"))) for v in figure.views)
    caption = resolver.text(figure.caption, figure.lines.get("caption"))
    return replace(figure, caption=caption, views=tuple(views))


def resolve(exercise: Exercise, scope: Scope) -> ResolvedExercise:
    """The exercise with its answers. Raises Problems with all that cannot be computed."""
    resolver = PageResolver(exercise.path, exercise.slug, scope, exercise.figures)
    resolved, problems = resolve_with(exercise, resolver)
    if problems:
        raise Problems(problems)
    return resolved


def resolve_with(
    exercise: Exercise,
    resolver: PageResolver,
    each: Callable[[Question, ResolvedQuestion], None] = lambda _question, _resolved: None,
) -> tuple[ResolvedExercise, tuple[UserError, ...]]:
    """What can be resolved of an exercise, and what is wrong with the rest.

    `each` is called with every question whose answer could be computed.
    """
    problems = resolver.problems
    blocks: list[ResolvedBlock] = []
    for block in exercise.blocks:
        if isinstance(block, Prose):
            blocks.append(replace(block, markdown=resolver.text(block.markdown, block.line)))
        elif isinstance(block, TimelineFigure):
            blocks.append(_figure(block, resolver))
        else:
            before = len(problems)
            try:
                found = kind_of(block).resolve(block, resolver)
            except Problems as wrong:
                problems.extend(wrong.problems)
                continue
            blocks.append(found)
            if len(problems) == before:
                each(block, found)
    resolved = ResolvedExercise(
        exercise,
        tuple(blocks),
        summary=resolver.text(exercise.summary, exercise.lines.get("summary")),
        cluster=resolver.text(exercise.cluster, exercise.lines.get("cluster")),
    )
    return resolved, tuple(problems)
