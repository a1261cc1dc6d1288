"""Everything that is wrong with the exercises of a book, found before a site is built of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from generator.book import Book
from generator.errors import UserError, did_you_mean
from generator.lessons.answers import PageResolver, ResolvedExercise, resolve_with
from generator.lessons.exercise import Exercise, Prose, TimelineFigure, find_exercises
from generator.lessons.expressions import references
from generator.lessons.kinds.number import NumberQuestion
from generator.lessons.links import Targets, check_links, targets
from generator.lessons.predicates import matches_any, parse_predicate
from generator.lessons.questions import Question, ResolvedQuestion, kind_of
from generator.lessons.scope import Scope, Timelines
from generator.lessons.vocabulary import Vocabulary, default_vocabulary
from generator.runs.manifest import Manifest
from generator.runs.reader import Manifests


@dataclass(frozen=True, slots=True)
class Examined:
    """The exercises of a book in reading order, with their answers, and all that is wrong with them."""

    exercises: tuple[ResolvedExercise, ...]
    #: By file and line; where there are any, `exercises` is not complete.
    problems: tuple[UserError, ...]
    links: Targets


def examine(
    book: Book, runs: Manifests, timelines: Timelines, vocabulary: Vocabulary | None = None
) -> Examined:
    """Read a book's exercises and compute their answers. A site can be built where no problem is found."""
    words = vocabulary or default_vocabulary()
    exercises, found = find_exercises(book)
    links = targets(book, frozenset(runs.ids), frozenset(words.metrics))
    problems, resolved = [*found, *runs.problems], list[ResolvedExercise]()
    for exercise in exercises:
        problems += _check_requires(exercise, links.names["exercise"])
        problems += _check_links(exercise, links)
        sound = all(p.path != exercise.path for p in found)
        answered, wrong = _answers(exercise, runs, timelines, words, sound)
        problems += wrong
        resolved += [answered] if answered else []
    for chapter in {e.chapter.path: e.chapter for e in exercises}.values():
        problems += check_links(chapter.intro, chapter.line, chapter.path, links)
    return Examined(tuple(resolved), _in_order(problems), links)


def _check_requires(exercise: Exercise, slugs: frozenset[str]) -> Iterator[UserError]:
    for slug in exercise.requires:
        here = partial(UserError, path=exercise.path, line=exercise.lines.get("requires"))
        if slug == exercise.slug:
            yield here("an exercise requires itself", remedy="Remove it from 'requires'.")
        elif slug not in slugs:
            yield here(f"unknown exercise '{slug}'", remedy=did_you_mean(slug, slugs))


def _check_links(exercise: Exercise, links: Targets) -> Iterator[UserError]:
    texts: list[tuple[str, int]] = [
        (exercise.summary, exercise.lines.get("summary", 1)),
        (exercise.cluster, exercise.lines.get("cluster", 1)),
        *((s, exercise.lines.get("sources", 1)) for s in exercise.sources),
    ]
    for block in exercise.blocks:
        if isinstance(block, Prose):
            texts.append((block.markdown, block.line))
        elif isinstance(block, TimelineFigure):
            texts.append((block.caption, block.lines.get("caption", block.line)))
        else:
            texts += [
                (getattr(block, k), block.lines.get(k, block.line)) for k in ("prompt", "hint", "explain")
            ]
            if isinstance(block, NumberQuestion):
                texts += [(m.say, m.say_line) for m in block.misconceptions]
            else:
                texts += [
                    (t, c.lines.get(k, c.line))
                    for c in block.choices
                    for k, t in (("text", c.text), ("why", c.why))
                ]
    for text, line in texts:
        yield from check_links(text, line, exercise.path, links)


def _answers(
    exercise: Exercise, runs: Manifests, timelines: Timelines, vocabulary: Vocabulary, sound: bool
) -> tuple[ResolvedExercise | None, list[UserError]]:
    """The exercise with its answers, and what cannot be computed.

    Where the file is sound in form, also what the values show to be wrong.
    """
    line = exercise.lines.get("runs")
    manifests = {r: runs.by_id[r] for r in exercise.runs if r in runs.by_id}
    problems = [
        UserError(
            f"unknown run '{run}'",
            path=exercise.path,
            line=line,
            remedy=did_you_mean(run, runs.ids) if runs.ids else "The book has no runs: record some.",
        )
        for run in exercise.runs
        if run not in runs.ids
    ]
    first = manifests.get(exercise.runs[0]) if exercise.runs else None
    if first and not first.has_steps:
        problems.append(
            UserError(
                f"the first run, '{first.id}', is a {first.kind} and has no steps",
                path=exercise.path,
                line=line,
                remedy="Name a run with steps first: expressions that name no run mean it.",
            )
        )
        return None, problems
    for block in exercise.blocks:
        if isinstance(block, TimelineFigure):
            problems += _check_figure(exercise, block, manifests, runs)
        elif isinstance(block, NumberQuestion):
            problems += _check_computed(exercise, block, vocabulary)
    # A run that cannot be read, or is not there, is one problem and not one for every expression.
    if len(manifests) < len(exercise.runs) or not exercise.runs:
        return None, problems
    scope = Scope(exercise.runs[0], manifests, timelines, vocabulary)
    resolver = PageResolver(exercise.path, exercise.slug, scope)

    def check_question(question: Question, resolved: ResolvedQuestion) -> None:
        if sound:
            problems.extend(kind_of(question).check(question, resolved, resolver))

    resolved, wrong = resolve_with(exercise, resolver, check_question)
    problems += wrong
    if sound:
        problems += _check_focus(exercise, scope)
    return resolved, problems


def _check_focus(exercise: Exercise, scope: Scope) -> Iterator[UserError]:
    """A figure that points to nothing would send the reader looking for it."""
    for figure in exercise.blocks:
        if not isinstance(figure, TimelineFigure) or not figure.focus.strip():
            continue
        if figure.run not in scope.manifests or not scope.manifests[figure.run].has_steps:
            continue
        try:
            found = matches_any(parse_predicate(figure.focus), scope.timelines(figure.run, figure.mode))
        except UserError as error:
            yield error
            continue
        if not found:
            yield UserError(
                f"the focus matches nothing in the run '{figure.run}'",
                path=exercise.path,
                line=figure.lines.get("focus"),
                remedy="Ask for phases, layers and operations that the run has.",
            )


def _check_figure(
    exercise: Exercise, figure: TimelineFigure, manifests: Mapping[str, Manifest], runs: Manifests
) -> Iterator[UserError]:
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


def _check_computed(
    exercise: Exercise, question: NumberQuestion, vocabulary: Vocabulary
) -> Iterator[UserError]:
    """Answers and misconceptions are computed, never typed."""
    written = [("answer", question.answer, question.lines.get("answer"))]
    written += [("misconception", m.value, m.value_line) for m in question.misconceptions]
    for what, expression, line in written:
        try:
            typed = bool(expression.strip()) and not references(expression, vocabulary)
        except UserError:
            continue  # told where the expression is evaluated
        if typed:
            yield UserError(
                f"the {what} '{expression}' is typed, not computed",
                path=exercise.path,
                line=line,
                remedy="Write an expression over a metric, a fact or a formula.",
            )


def _in_order(problems: list[UserError]) -> tuple[UserError, ...]:
    """By file and line, each once: one broken run would else be told of by every expression."""
    unique = {str(p): p for p in problems}
    return tuple(sorted(unique.values(), key=lambda p: (str(p.path or ""), p.line or 0)))
