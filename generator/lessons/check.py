"""Everything that is wrong with the exercises of a book, found before a site is built of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from generator.book import Book
from generator.errors import UserError, did_you_mean
from generator.lessons.answers import PageResolver, ResolvedExercise, resolve_with
from generator.lessons.exercise import Exercise, Prose, TimelineFigure, find_exercises
from generator.lessons.expressions import references
from generator.lessons.figure_checks import check_form, check_pointing, check_run
from generator.lessons.figures import texts_of
from generator.lessons.kinds.choice import ChoiceQuestion
from generator.lessons.kinds.pick import PickQuestion
from generator.lessons.links import Targets, check_links, targets
from generator.lessons.questions import Question, ResolvedQuestion, kind_of
from generator.lessons.scope import Scope, Timelines
from generator.lessons.vocabulary import Vocabulary, default_vocabulary
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
        texts = list(_texts(exercise))
        problems += (p for text, line in texts for p in check_links(text, line, exercise.path, links))
        problems += check_form(exercise, texts)
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


def _texts(exercise: Exercise) -> Iterator[tuple[str, int]]:
    """Every Markdown of an exercise, each with its line."""
    for key in ("summary", "cluster"):
        yield getattr(exercise, key), exercise.lines.get(key, 1)
    yield from ((source, exercise.lines.get("sources", 1)) for source in exercise.sources)
    for block in exercise.blocks:
        if isinstance(block, Prose):
            yield block.markdown, block.line
        elif isinstance(block, TimelineFigure):
            yield from texts_of(block)
        else:
            yield from kind_of(block).texts(block)


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
            problems += check_run(exercise, block, manifests, runs)
        elif not isinstance(block, Prose):
            problems += _check_computed(exercise, block, vocabulary)
    # A run that cannot be read, or is not there, is one problem and not one for every expression.
    if len(manifests) < len(exercise.runs) or not exercise.runs:
        return None, problems
    scope = Scope(exercise.runs[0], manifests, timelines, vocabulary)
    resolver = PageResolver(exercise.path, exercise.slug, scope, exercise.figures)

    def check_question(question: Question, resolved: ResolvedQuestion) -> None:
        if sound:
            problems.extend(kind_of(question).check(question, resolved, resolver))

    resolved, wrong = resolve_with(exercise, resolver, check_question)
    problems += wrong
    if sound:
        problems += check_pointing(exercise, scope)
    return resolved, problems


def _check_computed(exercise: Exercise, question: Question, vocabulary: Vocabulary) -> Iterator[UserError]:
    """Answers and misconceptions are computed, never typed."""
    if isinstance(question, ChoiceQuestion) or (
        isinstance(question, PickQuestion) and question.what != "rank"
    ):
        return
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
