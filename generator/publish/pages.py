"""Exercises to pages: text, figures and questions in rows, with the facts of their runs beside them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from markupsafe import Markup

from generator.lessons.answers import ResolvedExercise
from generator.lessons.exercise import PAGE_IDS, Exercise, Prose, TimelineFigure
from generator.lessons.figures import SHOW
from generator.lessons.links import Targets
from generator.lessons.questions import ResolvedQuestion
from generator.publish import markdown, show
from generator.publish.asking import question_row
from generator.publish.illustrate import exercise_figure
from generator.publish.library import Library
from generator.publish.model import (
    ExerciseData,
    Fact,
    FigureRow,
    Link,
    Page,
    Row,
    Step,
    TextRow,
    ViewRow,
)
from generator.publish.pointing import pointing
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
    return tuple(f"{b.key} {b.hash}" for b in resolved.blocks if isinstance(b, ResolvedQuestion))


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
        numbers = {q.id: i for i, q in enumerate(resolved.exercise.questions, 1)}
        for item in resolved.blocks:
            if isinstance(item, Prose):
                for part in self._text(item):
                    if part.heading or rows:
                        rows.append(part)
                    else:
                        intro.append(part.body)
            elif isinstance(item, TimelineFigure):
                rows.append(self._figure(item, numbers.get(item.until, 0)))
            else:
                tolerance = getattr(self._given[item.id], "tolerance", "")
                rows.append(question_row(item, numbers[item.id], tolerance, self))
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

    def _figure(self, figure: TimelineFigure, until: int) -> FigureRow:
        """A figure as a row; `until`: the number of the question that it is covered until, or 0."""
        library = self._context.library
        recorded = figure.mode == "recorded"
        timeline, manifest = library.timeline(figure.run, figure.mode), library.manifests[figure.run]
        points = pointing(figure, timeline)
        svg, numbers = exercise_figure(timeline, manifest, ident=figure.id, pointing=points)
        return FigureRow(
            id=figure.id,
            title=figure.title or manifest.title,
            run=figure.run,
            run_url=run_url(figure.run),
            mode="as recorded, ranks sharing cores" if recorded else "one device each",
            label="recorded" if recorded else "reconstructed",
            svg=svg,
            numbers=numbers,
            caption=self.inline(figure.caption, figure.line),
            mode_id=figure.mode,
            data_url=library.data_url(figure.run),
            focus=points.data,
            views=tuple(
                ViewRow(f"{SHOW}{v.name}", v.name, self.inline(v.caption, v.line)) for v in figure.views
            ),
            until=figure.until,
            until_number=until,
        )

    def computed(self, expression: str, run: str = "") -> Markup:
        """How an answer was computed, shown once it is known."""
        return Markup('Computed as <code>{}</code> on run {}. <a href="{}">Definitions</a>').format(
            expression, run or self._exercise.runs[0], relative(self._url, f"{DEFINITIONS}#metrics")
        )
