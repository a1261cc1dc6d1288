"""Everything that is wrong with the exercises of a book, found before a site is built of it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from generator.book import Book
from generator.errors import UserError, did_you_mean
from generator.lessons.answers import PageResolver, resolve_with
from generator.lessons.exercise import Exercise, Prose, TimelineFigure, find_exercises
from generator.lessons.expressions import references
from generator.lessons.kinds.number import NumberQuestion
from generator.lessons.links import Targets, check_links, targets
from generator.lessons.predicates import matches_any, parse_predicate
from generator.lessons.questions import Question, ResolvedQuestion, kind_of
from generator.lessons.scope import BookTimelines, Scope, Timelines
from generator.lessons.vocabulary import Vocabulary, default_vocabulary
from generator.runs.manifest import FILE_NAME, Manifest, read_manifest


def check(
    book: Book, *, timelines: Timelines | None = None, vocabulary: Vocabulary | None = None
) -> tuple[UserError, ...]:
    """All problems of a book's exercises, by file and line; empty when a site can be built.

    Timelines are read and reconstructed once for each run and mode, unless `timelines` gives them.
    """
    words = vocabulary or default_vocabulary()
    exercises, found = find_exercises(book)
    problems = list(found)
    manifests, ids = _read_manifests(book, problems)
    links = targets(book, exercises, frozenset(ids), frozenset(words.metrics))
    slugs = {e.slug for e in exercises}
    make = timelines or BookTimelines(book.runs)
    for exercise in exercises:
        problems += _check_requires(exercise, slugs)
        problems += _check_links(exercise, links)
        sound = all(p.path != exercise.path for p in found)
        problems += _check_answers(exercise, manifests, ids, make, words, sound)
    for chapter in dict.fromkeys(e.chapter.path for e in exercises):
        intro = next(e.chapter for e in exercises if e.chapter.path == chapter)
        problems += check_links(
            intro.intro, _intro_line(intro.path.read_text("utf-8"), intro.intro), intro.path, links
        )
    return _in_order(problems)


def scope_of(
    exercise: Exercise, manifests: dict[str, Manifest], timelines: Timelines, vocabulary: Vocabulary
) -> Scope:
    """What an exercise's expressions can see: the runs that its page names and no others."""
    return Scope(
        exercise.runs[0] if exercise.runs else "",
        {r: manifests[r] for r in exercise.runs if r in manifests},
        timelines,
        vocabulary,
    )


def _read_manifests(book: Book, problems: list[UserError]) -> tuple[dict[str, Manifest], list[str]]:
    """Manifests by id, and the ids of all runs, also of those whose manifest cannot be read."""
    manifests, ids = {}, []
    folders = sorted(book.runs.iterdir()) if book.runs.is_dir() else []
    for folder in folders:
        if folder.is_dir() and not folder.name.startswith("."):
            ids.append(folder.name)
            try:
                manifests[folder.name] = read_manifest(folder / FILE_NAME)
            except UserError as error:
                problems.append(error)
    return manifests, ids


def _check_requires(exercise: Exercise, slugs: set[str]) -> Iterator[UserError]:
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


def _check_answers(
    exercise: Exercise,
    manifests: dict[str, Manifest],
    ids: list[str],
    timelines: Timelines,
    vocabulary: Vocabulary,
    sound: bool,
) -> Iterator[UserError]:
    """What cannot be computed and, where the file is sound in form, what the values show to be wrong."""
    line = exercise.lines.get("runs")
    unread = False
    for run in exercise.runs:
        if run not in ids:
            yield UserError(
                f"unknown run '{run}'",
                path=exercise.path,
                line=line,
                remedy=did_you_mean(run, ids) if ids else "The book has no runs: record some.",
            )
        # A run that cannot be read, or is not there, is one problem and not one for every expression.
        unread = unread or run not in manifests
    for block in exercise.blocks:
        if isinstance(block, TimelineFigure):
            yield from _check_figure(exercise, block, manifests, ids)
        elif isinstance(block, NumberQuestion):
            yield from _check_computed(exercise, block, vocabulary)
    if unread or not exercise.runs:
        return
    resolver = PageResolver(
        exercise.path, exercise.slug, scope_of(exercise, manifests, timelines, vocabulary)
    )
    wrong: list[UserError] = []

    def check_question(question: Question, resolved: ResolvedQuestion) -> None:
        if sound:
            wrong.extend(kind_of(question).check(question, resolved, resolver))

    _, problems = resolve_with(exercise, resolver, check_question)
    yield from wrong
    yield from problems
    if sound:
        yield from _check_focus(exercise, resolver.scope)


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
    exercise: Exercise, figure: TimelineFigure, manifests: dict[str, Manifest], ids: list[str]
) -> Iterator[UserError]:
    here = partial(UserError, path=exercise.path, line=figure.lines.get("run", figure.line))
    if not figure.run:
        return
    if figure.run not in ids:
        if figure.run not in exercise.runs:
            yield here(
                f"unknown run '{figure.run}'",
                remedy=did_you_mean(figure.run, ids) if ids else "Record it first.",
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


def _intro_line(text: str, intro: str) -> int:
    return text[: text.find(intro)].count("\n") + 1 if intro else 1


def _in_order(problems: list[UserError]) -> tuple[UserError, ...]:
    """By file and line, each once: one broken run would else be told of by every expression."""
    unique = {str(p): p for p in problems}
    return tuple(sorted(unique.values(), key=lambda p: (str(p.path or ""), p.line or 0)))
