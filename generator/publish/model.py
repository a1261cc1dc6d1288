"""The pages of a site as plain data, before any template runs.

What a template shows is prepared here as text (`str`, escaped when it is rendered) or as HTML that the
generator made (`Markup`). Addresses are paths from the site's root; the renderer makes them relative.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from markupsafe import Markup

from generator.publish.parts import Fact as Fact
from generator.publish.parts import Link as Link
from generator.publish.parts import Promise as Promise
from generator.publish.validation.model import ValidationData

# ---- exercises


@dataclass(frozen=True, slots=True)
class ViewRow:
    """A place in a figure that links of the text lead to."""

    id: str
    name: str
    caption: Markup


@dataclass(frozen=True, slots=True)
class FigureRow:
    id: str
    title: str
    run: str
    run_url: str
    mode: str
    label: str
    svg: Markup
    #: The figure's table for screen readers.
    numbers: Markup
    caption: Markup
    #: "recorded" or "isolated": the mode that the interactive figure opens in.
    mode_id: str = ""
    #: The script with the run's data; empty where there is none, and the picture stays a picture.
    data_url: str = ""
    #: What is outlined and where the camera goes, as JSON.
    focus: str = ""
    views: tuple[ViewRow, ...] = ()
    #: Id and number of the question that the figure is covered until; 0 where it is not.
    until: str = ""
    until_number: int = 0
    kind: str = "figure"


@dataclass(frozen=True, slots=True)
class TextRow:
    id: str
    heading: Markup
    body: Markup
    kind: str = "text"


@dataclass(frozen=True, slots=True)
class Option:
    text: Markup
    why: Markup
    correct: bool


@dataclass(frozen=True, slots=True)
class QuestionRow:
    kind: str
    id: str
    #: Position among the page's questions, from 1.
    number: int
    key: str
    hash: str
    prompt: Markup
    hint: Markup
    explain: Markup
    label: str
    #: The answer key, encoded.
    answer: str
    #: How near counts as right; empty for a choice.
    within: str = ""
    #: Of a number its unit, and the answer as it is shown; of a pick the answer in words.
    unit: str = ""
    shown: str = ""
    #: Only of a pick: "event", "rank" or "gap", and the figure's id.
    what: str = ""
    figure: str = ""
    #: Only of a choice.
    many: bool = False
    options: tuple[Option, ...] = ()


Row = FigureRow | TextRow | QuestionRow


@dataclass(frozen=True, slots=True)
class Step:
    """One exercise of the chapter, in the page's header."""

    url: str
    title: str
    number: int
    current: bool
    #: Shown on a phone too: the exercise and its neighbours.
    near: bool
    #: "key hash key hash …" of its questions.
    questions: str


@dataclass(frozen=True, slots=True)
class ExerciseData:
    label: str
    chapter_url: str
    chapter_title: str
    minutes: str
    steps: tuple[Step, ...]
    #: "key hash" of each question.
    pips: tuple[str, ...]
    requires: tuple[Link, ...]
    intro: Markup
    facts: tuple[Fact, ...]
    rows: tuple[Row, ...]
    cluster: Markup
    sources: tuple[Markup, ...]
    runs: tuple[Link, ...]
    previous: Link | None
    next: Link | None


# ---- home


@dataclass(frozen=True, slots=True)
class ExerciseLine:
    url: str
    title: str
    summary: str
    questions: str


@dataclass(frozen=True, slots=True)
class ChapterLine:
    id: str
    letter: str
    title: str
    intro: Markup
    minutes: str
    exercises: tuple[ExerciseLine, ...]


@dataclass(frozen=True, slots=True)
class RatioLine:
    run: str
    url: str
    communication: str
    computation: str
    value: str


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """One run of the comparison: its picture and its numbers."""

    url: str
    name: str
    picture: Markup
    step: str
    speedup: str
    still: str
    exposed: str
    peak: str
    #: One thing to notice; a wide picture says it too.
    remark: str


@dataclass(frozen=True, slots=True)
class Compared:
    axis: Markup
    rows: tuple[ComparedRow, ...]
    legend: Markup


@dataclass(frozen=True, slots=True)
class HomeData:
    headline: str
    lead: str
    #: The figure that compares the runs; none in a book without any.
    comparison: Compared | None
    comparison_title: str
    comparison_note: str
    chapters: tuple[ChapterLine, ...]
    #: What the ratios of this book's runs are, in a sentence.
    ratio_range: str
    ratios: tuple[RatioLine, ...]
    #: How well a step is predicted that was not recorded.
    predicted: str
    checks: tuple[Promise, ...]
    contributing: str
    sample: Markup


# ---- runs


@dataclass(frozen=True, slots=True)
class RunFigure:
    title: str
    note: str
    label: str
    svg: Markup
    numbers: Markup
    #: As of a FigureRow; a strip of steps has no mode.
    mode_id: str = ""
    data_url: str = ""
    focus: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    what: str
    measured: str
    limit: str
    #: Where the measured value lies on a rail whose limit is at 100 px; None without a limit.
    at_px: int | None


@dataclass(frozen=True, slots=True)
class LossLine:
    step: int
    loss: str
    partner: str
    difference: str
    time: str
    use: str


@dataclass(frozen=True, slots=True)
class MetricLine:
    name: str
    unit: str
    values: tuple[str, ...]
    all: str
    label: str
    #: The same metric as the line above, in another mode.
    again: bool


@dataclass(frozen=True, slots=True)
class CalibrationLine:
    op: str
    #: How many, and on how many nodes where ranks share one.
    members: str
    payload: str
    median: str
    quartiles: str
    sent: str
    repeats: int


@dataclass(frozen=True, slots=True)
class FileLine:
    name: str
    url: str
    size: str
    events: str
    sha256: str


@dataclass(frozen=True, slots=True)
class RunData:
    id: str
    title: str
    text: str
    #: Address of its run.toml.
    manifest_url: str
    used_in: tuple[Link, ...]
    #: The runs before and after it in the list of all.
    neighbours: tuple[Link, ...]
    figures: tuple[RunFigure, ...]
    checks: tuple[Check, ...]
    losses: tuple[LossLine, ...]
    partner: Link | None
    what: tuple[Fact, ...]
    where: tuple[Fact, ...]
    step: int
    ranks: tuple[int, ...]
    metrics: tuple[MetricLine, ...]
    table: tuple[CalibrationLine, ...]
    files: tuple[FileLine, ...]
    command: str
    source_name: str
    source: Markup


@dataclass(frozen=True, slots=True)
class RunLine:
    id: str
    title: str
    url: str
    ranks: str
    isolated: str
    recorded: str
    link: str
    ratio: str
    #: Calls matched over all ranks, of how many; and how far the losses are from those of which run.
    matched: str
    loss: str
    partner: str


@dataclass(frozen=True, slots=True)
class RunsData:
    runs: tuple[RunLine, ...]


# ---- reference


@dataclass(frozen=True, slots=True)
class Term:
    id: str
    name: str
    text: Markup


@dataclass(frozen=True, slots=True)
class Symbol:
    """A letter of an equation, the parameter that it stands for, and what kind of quantity that is."""

    letter: Markup
    name: str
    unit: str


@dataclass(frozen=True, slots=True)
class Entry:
    """A metric, a fact or a formula."""

    name: str
    #: What stands behind the name in a call: "(rank, phase)".
    arguments: str
    unit: str
    #: First sentence, and the rest of what there is to say.
    summary: Markup
    doc: Markup
    #: Origin of its numbers, where it does not depend on the mode.
    label: str = ""
    #: Of a formula: its equation (MathML, empty where it is none), an example and where it comes from.
    equation: Markup = field(default_factory=Markup)
    #: Whether the equation may be wider than a phone, and so has to be scrolled there.
    wide: bool = False
    symbols: tuple[Symbol, ...] = ()
    example: str = ""
    value: str = ""
    source: Markup = field(default_factory=Markup)


@dataclass(frozen=True, slots=True)
class Subject:
    """Metrics or formulas that belong together."""

    id: str
    title: str
    intro: Markup
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class DefinitionsData:
    labels: tuple[Term, ...]
    terms: tuple[Term, ...]
    metrics: tuple[Subject, ...]
    facts: Subject
    formulas: tuple[Subject, ...]


@dataclass(frozen=True, slots=True)
class NotFoundData:
    pass


Data = ExerciseData | HomeData | RunData | RunsData | ValidationData | DefinitionsData | NotFoundData


@dataclass(frozen=True, slots=True)
class Page:
    url: str
    #: File name of the template.
    template: str
    title: str
    description: str
    data: Data


@dataclass(frozen=True, slots=True)
class Site:
    """All that a site consists of, but for its assets."""

    title: str
    description: str
    #: Public address with a slash at the end, or empty.
    url: str
    source: str
    #: Terms on which text and recordings are given; may be empty.
    licence: str
    pages: tuple[Page, ...]
    #: Address in the site to what lies there: its content, or the file that is copied.
    files: tuple[tuple[str, bytes | Path], ...]
    #: Runs that timelines can be compared with: id, and the script with its data.
    runs: tuple[tuple[str, str], ...] = ()
