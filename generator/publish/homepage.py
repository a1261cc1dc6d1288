"""The first page: the comparison of all runs, the chapters, and how far to trust what is shown."""

from __future__ import annotations

from collections.abc import Sequence

from generator.book import FILE_NAME, Book
from generator.errors import UserError, did_you_mean, line_of
from generator.lessons.answers import ResolvedExercise
from generator.lessons.exercise import Chapter
from generator.publish import cluster, markdown, show
from generator.publish.illustrate import comparison
from generator.publish.library import Library
from generator.publish.model import ChapterLine, ExerciseLine, HomeData, Page, RatioLine
from generator.publish.pages import Context, question_marks
from generator.publish.promises import predicted, promises
from generator.publish.urls import HOME, chapter_id, exercise_url, run_url
from generator.runs.manifest import Manifest
from generator.texts import read_text

SAMPLE = """```toml question
id = "bubble"
kind = "number"
prompt = "What fraction of the pipeline is idle?"
unit = "%"
answer = "bubble_fraction()"
explain = "{bubble_fraction() | %} of all rank time."
[[misconceptions]]
value = "bubble_overhead()"
say = "That is idle over *ideal* time."
```"""
#: Tokens of a rank and step that the scale model is compared with.
_TOKENS = 8192
_WORDS = (
    "no",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
)


def home_page(book: Book, context: Context) -> Page:
    library, exercises = context.library, context.exercises
    compared = _chosen(book, library) or _compared(library, exercises)
    lesson_of = {
        run: exercise_url(r.exercise.slug) for r in reversed(exercises) for run in r.exercise.runs[:1]
    }
    data = HomeData(
        headline=book.headline or book.title,
        lead=book.lead or book.description,
        comparison=comparison(library, compared, lesson_of),
        comparison_title=f"One training step of one model, {_ways(len(compared))}",
        comparison_note=_note(library, compared),
        chapters=_chapters(context),
        ratio_range=_range([m.ratio.value for m in compared if m.ratio and m.world_size > 1]),
        ratios=tuple(
            RatioLine(
                run=m.id, url=run_url(m.id), communication=show.number(m.ratio.communication_ms, 1),
                computation=show.number(m.ratio.computation_ms, 1), value=show.number(m.ratio.value, 2),
            )
            for m in compared if m.ratio and m.world_size > 1
        ),
        predicted=predicted(library),
        checks=promises(library),
        contributing=f"{book.source.rstrip('/')}/blob/main/CONTRIBUTING.md" if book.source else "",
        sample=markdown.code(SAMPLE, "toml"),
    )  # fmt: skip
    return Page(url=HOME, template="home.html", title=book.title, description=book.description, data=data)


def _chosen(book: Book, library: Library) -> tuple[Manifest, ...]:
    """The runs that the book's own file asks to compare."""
    for run in book.compare:
        manifest = library.manifests.get(run)
        if manifest is None or not manifest.model:
            path = book.root / FILE_NAME
            raise UserError(
                f"there is no training run '{run}' to compare",
                path=path,
                line=line_of(read_text(path), f'"{run}"'),
                remedy=did_you_mean(run, [m.id for m in library.with_steps if m.model]),
            )
    return tuple(library.manifests[run] for run in book.compare)


def _compared(library: Library, exercises: tuple[ResolvedExercise, ...]) -> tuple[Manifest, ...]:
    """A run for each scheme, in the order of the course: the first that an exercise is about.

    Only runs of one model on one batch over one link are compared; the run alone on its device, which
    has no link, comes first. A book without exercises compares all its runs.
    """
    trained = [m for m in library.with_steps if m.model]
    taught = dict.fromkeys(run for r in exercises for run in r.exercise.runs[:1])
    order = [library.manifests[run] for run in taught if library.manifests[run].model] or trained
    rows: dict[str, Manifest] = {}
    # Alone on its device, the run that the first one is held against is the measure of all.
    reference = library.manifests.get(order[0].partner) if order else None
    for manifest in sorted([*([reference] if reference else []), *order], key=lambda m: m.world_size > 1):
        if _alike(manifest, next(iter(rows.values()), manifest)):
            rows.setdefault(manifest.scheme, manifest)
    return tuple(rows.values())


def _alike(a: Manifest, b: Manifest) -> bool:
    """Whether two runs may be compared: one model, one batch, and one link where both have one."""
    assert a.model
    assert b.model
    sizes = [(m.d_model, m.layers, m.heads, m.vocabulary) for m in (a.model, b.model)]
    batches = [(m.batch.sequences, m.batch.tokens) for m in (a, b) if m.batch]
    links = [(m.link.rate_mbit, m.link.ranks_per_node) for m in (a, b) if m.world_size > 1]
    return all(len(set(each)) <= 1 for each in (sizes, batches, links))


def _range(ratios: list[float]) -> str:
    """The ratio of a well-known kind of cluster, derived in `cluster`, and those of this book's runs."""
    there = show.number(cluster.data_parallel_ratio(_TOKENS), 2)
    clusters = (
        f"Data parallelism in bf16 with {show.integer(_TOKENS)} tokens a rank, at 400{show.THIN}TFLOP/s and "
        f"50{show.THIN}GB/s, has {there}."
    )
    low, high = (show.number(r, 2) for r in (min(ratios, default=0.0), max(ratios, default=0.0)))
    if not ratios:
        return clusters
    return f"{clusters} These runs have {low if low == high else f'{low} to {high}'}."


def _ways(count: int) -> str:
    words = _WORDS[count] if count < len(_WORDS) else show.integer(count)
    return f"{words} way" if count == 1 else f"{words} ways"


def _note(library: Library, manifests: Sequence[Manifest]) -> str:
    """What the compared runs share, as far as their manifests agree."""
    shared: list[str] = []
    models = {m.model.parameters for m in manifests if m.model}
    if len(models) == 1:
        shared.append(f"{show.number(models.pop() / 1e6, 1)} M parameters")
    batches = {(m.batch.sequences, m.batch.tokens) for m in manifests if m.batch}
    if len(batches) == 1:
        sequences, tokens = batches.pop()
        shared.append(f"the same {sequences} × {tokens} tokens")
    differences = [d for m in manifests if (d := library.validation(m.id).loss_difference) is not None]
    if differences:
        shared.append(f"the same loss to {show.power(max(differences))}")
    if not shared:
        return ""
    text = ", ".join(shared)
    return f"{text[:1].upper()}{text[1:]}. One row a rank; each links to its lesson or its run."


def _chapters(context: Context) -> tuple[ChapterLine, ...]:
    grouped: dict[str, tuple[Chapter, list[ResolvedExercise]]] = {}
    for resolved in context.exercises:
        chapter = resolved.exercise.chapter
        grouped.setdefault(chapter.slug, (chapter, []))[1].append(resolved)
    lines = []
    for chapter, members in grouped.values():
        lines.append(
            ChapterLine(
                id=chapter_id(chapter.slug),
                letter=chapter.letter,
                title=chapter.title,
                intro=markdown.block(chapter.intro, context.links.resolver(HOME, chapter.path, chapter.line)),
                minutes=show.minutes(sum(r.exercise.minutes for r in members)),
                exercises=tuple(
                    ExerciseLine(
                        url=exercise_url(r.exercise.slug),
                        title=r.exercise.title,
                        summary=markdown.plain(r.summary),
                        questions=" ".join(question_marks(r)),
                    )
                    for r in members
                ),
            )
        )
    return tuple(lines)
