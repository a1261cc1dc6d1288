"""Exercises to pages: text, figures and questions in rows, with the facts of their runs beside them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from markupsafe import Markup

from generator.lessons.answers import ResolvedExercise
from generator.lessons.exercise import PAGE_IDS, Exercise, Prose, TimelineFigure
from generator.lessons.kinds.choice import ResolvedChoice
from generator.lessons.kinds.number import ResolvedNumber
from generator.lessons.links import Targets
from generator.lessons.questions import ResolvedQuestion
from generator.publish import markdown, show
from generator.publish.illustrate import exercise_figure
from generator.publish.keys import encode
from generator.publish.library import Library
from generator.publish.model import (
    ExerciseData,
    Fact,
    FigureRow,
    Link,
    Option,
    Page,
    QuestionRow,
    Row,
    Step,
    TextRow,
)
from generator.publish.runpages import link_rate
from generator.publish.urls import DEFINITIONS, HOME, address, chapter_id, exercise_url, relative, run_url

#: Where in the book something was written: the file and, where it is known, the line.
Origin = tuple[Path, int | None]


@dataclass(frozen=True, slots=True)
class Links:
    """Turns what authors link to into links of the site, and notes where each was written."""

    targets: Targets
    #: By page and href.
    origins: dict[tuple[str, str], Origin] = field(default_factory=dict)

    def resolver(self, page: str, path: Path, line: int | None) -> markdown.Resolve:
        """Gives the href to write into `page` for one in the file `path`. It raises UserError."""

        def resolve(href: str) -> str:
            place = self.targets.follow(href, path=path, line=line)
            if place.kind == "web":
                return place.name
            link = relative(page, address(place, page))
            self.origins.setdefault((page, link), (path, line))
            return link

        return resolve


@dataclass(frozen=True, slots=True)
class Context:
    """What the pages of a book share."""

    library: Library
    links: Links
    #: All exercises of the book in reading order, resolved.
    exercises: tuple[ResolvedExercise, ...]


def label(exercise: Exercise) -> str:
    """Chapter letter and number, e.g. E25."""
    return f"{exercise.chapter.letter}{exercise.number}"


def link_to(exercise: Exercise) -> Link:
    return Link(exercise_url(exercise.slug), exercise.title, label(exercise))


def question_marks(resolved: ResolvedExercise) -> tuple[str, ...]:
    """'key hash' of each question: what progress is kept by."""
    return tuple(
        f"{b.key} {b.hash}" for b in resolved.blocks if isinstance(b, ResolvedNumber | ResolvedChoice)
    )


def exercise_page(resolved: ResolvedExercise, context: Context) -> Page:
    """The page of one exercise. Raises UserError for a link that leads nowhere."""
    exercise = resolved.exercise
    writer = _Writer(exercise, context)
    order = [e.exercise for e in context.exercises]
    at = [e.slug for e in order].index(exercise.slug)
    by_slug = {e.slug: e for e in order}
    intro, rows = writer.rows(resolved)
    data = ExerciseData(
        label=label(exercise),
        chapter_url=f"{HOME}#{chapter_id(exercise.chapter.slug)}",
        chapter_title=exercise.chapter.title,
        minutes=show.minutes(exercise.minutes),
        steps=_steps(exercise, context),
        pips=question_marks(resolved),
        requires=tuple(link_to(by_slug[slug]) for slug in exercise.requires if slug in by_slug),
        intro=intro,
        facts=_facts(exercise, context.library),
        rows=rows,
        cluster=writer.block(resolved.cluster, None),
        sources=tuple(writer.inline(source, None) for source in exercise.sources),
        runs=tuple(Link(run_url(run), run) for run in exercise.runs),
        previous=link_to(order[at - 1]) if at else None,
        next=link_to(order[at + 1]) if at + 1 < len(order) else None,
    )
    return Page(
        url=exercise_url(exercise.slug), template="exercise.html", title=exercise.title,
        description=markdown.plain(resolved.summary), data=data,
    )  # fmt: skip


def _steps(exercise: Exercise, context: Context) -> tuple[Step, ...]:
    chapter = [r for r in context.exercises if r.exercise.chapter.slug == exercise.chapter.slug]
    here = [r.exercise.slug for r in chapter].index(exercise.slug)
    return tuple(
        Step(
            url=exercise_url(r.exercise.slug),
            title=r.exercise.title,
            number=r.exercise.number,
            current=i == here,
            near=abs(i - here) <= 1,
            questions=" ".join(question_marks(r)),
        )
        for i, r in enumerate(chapter)
    )


def _facts(exercise: Exercise, library: Library) -> tuple[Fact, ...]:
    """What the reader must know of the page's runs; of the first in full, of the others their names."""
    first, *others = exercise.runs
    manifest, timeline = library.manifests[first], library.timeline(first, "isolated")
    size = [Fact("ranks", str(manifest.world_size))]
    if timeline.stages > 1:
        size = [Fact("stages", str(timeline.stages)), Fact("micro-batches", str(timeline.microbatches))]
    facts = [
        Fact("run", first, f"step {timeline.step}", run_url(first)),
        *size,
        Fact("step", show.time(timeline.step_ns), label="reconstructed"),
    ]
    if manifest.world_size > 1:
        facts.append(Fact("link", link_rate(manifest)))
    if manifest.batch:
        facts.append(Fact("batch", f"{manifest.batch.sequences} × {manifest.batch.tokens} tokens"))
    facts += [Fact("compared with", other, url=run_url(other)) for other in others]
    return tuple(facts)


class _Writer:
    """Turns the blocks of one exercise into rows; knows where its links start from."""

    def __init__(self, exercise: Exercise, context: Context) -> None:
        self._exercise = exercise
        self._context = context
        self._url = exercise_url(exercise.slug)
        self._ids: set[str] = set()
        self._given = {getattr(b, "id", ""): b for b in exercise.blocks}

    def block(self, text: str, line: int | None) -> Markup:
        return markdown.block(text, self._resolver(line))

    def inline(self, text: str, line: int | None) -> Markup:
        return markdown.inline(text, self._resolver(line))

    def _resolver(self, line: int | None) -> markdown.Resolve:
        return self._context.links.resolver(self._url, self._exercise.path, line)

    def rows(self, resolved: ResolvedExercise) -> tuple[Markup, tuple[Row, ...]]:
        """The introduction (text before the first figure, question or heading) and all that follows."""
        intro: list[Markup] = []
        rows: list[Row] = []
        figures = questions = 0
        for item in resolved.blocks:
            if isinstance(item, Prose):
                for part in self._text(item):
                    if part.heading or rows:
                        rows.append(part)
                    else:
                        intro.append(part.body)
            elif isinstance(item, TimelineFigure):
                figures += 1
                rows.append(self._figure(item, figures))
            else:
                questions += 1
                rows.append(self._question(item, questions))
        return Markup("").join(intro), tuple(rows)

    def _text(self, prose: Prose) -> Sequence[TextRow]:
        parts = markdown.sections(prose.markdown, self._resolver(prose.line))
        return [TextRow(id=self._free_id(p.id), heading=p.heading, body=p.body) for p in parts]

    def _free_id(self, wanted: str) -> str:
        """An id for a heading: of two that are the same the second gets a number."""
        taken = self._ids | {*self._given, *PAGE_IDS}
        found = next(i for i in itertools.chain([wanted], (f"{wanted}-{n}" for n in itertools.count(2)))
                     if i not in taken) if wanted else ""  # fmt: skip
        self._ids.add(found)
        return found

    def _figure(self, figure: TimelineFigure, number: int) -> FigureRow:
        library = self._context.library
        recorded = figure.mode == "recorded"
        svg, numbers = exercise_figure(
            library.timeline(figure.run, figure.mode),
            library.manifests[figure.run],
            ident=f"figure-{number}",
            focus=figure.focus,
            path=self._exercise.path,
            line=figure.line,
        )
        return FigureRow(
            id=f"figure-{number}",
            title=figure.title or library.manifests[figure.run].title,
            run=figure.run,
            run_url=run_url(figure.run),
            mode="as recorded, ranks sharing cores" if recorded else "one device each",
            label="recorded" if recorded else "reconstructed",
            svg=svg,
            numbers=numbers,
            caption=self.inline(figure.caption, figure.line),
            mode_id=figure.mode,
            data_url=library.data_url(figure.run),
        )  # fmt: skip

    def _question(self, question: ResolvedQuestion, number: int) -> QuestionRow:
        explain = self.block(question.explain, question.line)
        answer = (
            self._number_key(question, explain)
            if isinstance(question, ResolvedNumber)
            else self._choice_key(question, explain)
        )
        row = QuestionRow(
            kind=str(answer["kind"]),
            id=question.id,
            number=number,
            key=question.key,
            hash=question.hash,
            prompt=self.block(question.prompt, question.line),
            hint=self.block(question.hint, question.line),
            explain=explain,
            label=question.label,
            answer=encode(answer, question.key),
        )
        if isinstance(question, ResolvedNumber):
            within = _within(getattr(self._given[question.id], "tolerance", ""))
            return replace(row, unit=question.unit, shown=question.shown, within=within)
        return replace(row, many=question.many, options=self._options(question))

    def _options(self, question: ResolvedChoice) -> tuple[Option, ...]:
        return tuple(
            Option(self.inline(o.text, question.line), self.inline(o.why, question.line), o.correct)
            for o in question.options
        )

    def _number_key(self, question: ResolvedNumber, explain: Markup) -> dict[str, object]:
        return {
            "kind": "number",
            "unit": question.unit,
            "value": question.value,
            "low": question.low,
            "high": question.high,
            "shown": question.shown,
            "explain": explain,
            "computed": self._computed(question.expression),
            "misconceptions": [
                {"low": m.low, "high": m.high, "shown": m.shown, "say": self.block(m.say, question.line)}
                for m in question.misconceptions
            ],
        }

    def _choice_key(self, question: ResolvedChoice, explain: Markup) -> dict[str, object]:
        options = self._options(question)
        return {
            "kind": "choice",
            "many": question.many,
            "correct": [o.correct for o in options],
            "why": [o.why for o in options],
            "explain": explain,
            "computed": "",
        }

    def _computed(self, expression: str) -> Markup:
        """How an answer was computed, shown once it is known."""
        return Markup('Computed as <code>{}</code> on run {}. <a href="{}">Definitions</a>').format(
            expression, self._exercise.runs[0], relative(self._url, f"{DEFINITIONS}#metrics")
        )


def _within(tolerance: str) -> str:
    """How near counts, as the author wrote it: a distance in numbers would give the answer away."""
    amount, _, unit = tolerance.strip().partition(" ")
    if not amount.strip("0."):
        return "Counted exactly."
    if unit == "pp":
        unit = "point" if amount == "1" else "points"
    return f"Right within {amount}{show.THIN}{unit}.".replace(f"{show.THIN}.", ".")
