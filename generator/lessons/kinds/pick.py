"""Kind `pick`: the reader points to an event, a rank or a gap in one of the page's figures.

Events and gaps are named by selections (generator.lessons.selections), a rank by an expression that gives
its number. Several events may be right; what a misconception points to is never among them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from generator.errors import Problems, UserError, did_you_mean
from generator.lessons.figures import TimelineFigure
from generator.lessons.kinds.common import (
    Misconception,
    Resolver,
    check_prompt,
    mistake,
    numbers_in,
    question_hash,
    read_misconceptions,
    take_id,
)
from generator.lessons.naming import name_events
from generator.lessons.picking import Marks, judge, marks_of, overlap, picks
from generator.lessons.predicates import EVENTS, GAPS
from generator.lessons.selections import candidates, parse_selection, select
from generator.lessons.tables import Table
from generator.timeline.spans import Timeline
from generator.units import kind_of, magnitude

#: What can be picked, and the language that says which.
LANGUAGES = {"event": EVENTS, "gap": GAPS}
WHAT = (*LANGUAGES, "rank")


@dataclass(frozen=True, slots=True)
class PickQuestion:
    id: str
    prompt: str
    #: One of WHAT.
    what: str
    #: Id of the figure; empty for the last one above.
    figure: str
    #: A selection, or of a rank an expression.
    answer: str
    hint: str
    explain: str
    misconceptions: tuple[Misconception, ...]
    line: int
    #: Where each key's value stands in the file.
    lines: dict[str, int] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class ResolvedWrongPick:
    marks: Marks
    say: str


@dataclass(frozen=True, slots=True)
class ResolvedPick:
    """A pick with all that is right, as marks in the figure."""

    key: str
    id: str
    prompt: str
    what: str
    #: The figure's id in the page, and its run and mode.
    figure: str
    run: str
    mode: str
    answer: Marks
    #: The answer in words.
    shown: str
    expression: str
    misconceptions: tuple[ResolvedWrongPick, ...]
    hint: str
    explain: str
    label: str
    hash: str
    line: int


def parse(table: Table) -> PickQuestion:
    """The question in a block. Problems go to the table's source."""
    what = table.text("what", required=f"one of {', '.join(WHAT)}")
    question = PickQuestion(
        id=take_id(table),
        prompt=table.text("prompt", required="it is the question"),
        what=what,
        figure=table.text("figure"),
        answer=table.text("answer", required="it says what is right"),
        hint=table.text("hint"),
        explain=table.text("explain", required="feedback always explains"),
        misconceptions=read_misconceptions(table, "it says what is picked in error"),
        line=table.source.line,
        lines={k: table.line_of(k) for k in ("prompt", "what", "figure", "answer", "hint", "explain")},
    )
    table.finish()
    check_prompt(table, question.prompt)
    if what and what not in WHAT:
        table.complain(f"unknown thing to pick '{what}'", did_you_mean(what, WHAT), key="what")
    _check_selection(table, what, question.answer, table.line_of("answer"))
    for wrong in question.misconceptions:
        _check_selection(table, what, wrong.value, wrong.value_line)
    return question


def _check_selection(table: Table, what: str, text: str, line: int) -> None:
    if what not in LANGUAGES:
        return
    try:
        parse_selection(text, path=table.source.path, line=line, language=LANGUAGES[what])
    except UserError as error:
        table.source.problems.append(error)


def resolve(question: PickQuestion, resolver: Resolver) -> ResolvedPick:
    """The question with its marks. Raises Problems."""
    problems: list[UserError] = []
    if question.what not in WHAT or not question.answer.strip():
        raise Problems(problems)  # parsing has complained
    try:
        figure = _figure(question, resolver)
        timeline = resolver.timeline(figure.run, figure.mode)
        find = _Finder(question, figure, timeline, resolver)
        answer, shown, label = find.marks(question.answer, question.lines.get("answer"))
    except UserError as error:
        raise Problems([error]) from None
    wrong = []
    for each in question.misconceptions:
        say = resolver.text(each.say, each.say_line)
        if not each.value.strip():
            continue
        try:
            wrong.append(ResolvedWrongPick(find.marks(each.value, each.value_line)[0], say))
        except UserError as error:
            problems.append(error)
    texts = {
        k: resolver.text(getattr(question, k), question.lines.get(k)) for k in ("prompt", "hint", "explain")
    }
    if problems:
        raise Problems(problems)
    return ResolvedPick(
        key=f"{resolver.slug}/{question.id}",
        id=question.id,
        what=question.what,
        figure=figure.id,
        run=figure.run,
        mode=figure.mode,
        answer=answer,
        shown=shown,
        expression=question.answer,
        misconceptions=tuple(wrong),
        label=label,
        line=question.line,
        hash=question_hash("pick", question.prompt, [question.what], [question.answer]),
        **texts,
    )


def _figure(question: PickQuestion, resolver: Resolver) -> TimelineFigure:
    """The figure that the reader points into. Raises UserError."""
    path, figures = resolver.path, resolver.figures
    if question.figure:
        line = question.lines.get("figure")
        found = [f for f in figures if f.id == question.figure]
        if not found:
            names = [f.id for f in figures]
            raise mistake(
                f"unknown figure '{question.figure}'", path, line, did_you_mean(question.figure, names)
            )
    else:
        line = question.line
        found = [f for f in figures if f.line < question.line]
        if not found:
            raise mistake(
                "no figure stands above the question", path, line, 'Add a timeline, or name one: figure = "…"'
            )
    if found[-1].until == question.id:
        raise mistake(
            "the figure is covered until this very question is answered",
            path,
            line,
            "Ask another question before, or uncover the figure.",
        )
    return found[-1]


@dataclass(frozen=True, slots=True)
class _Finder:
    """Finds in a figure's timeline what a question asks for."""

    question: PickQuestion
    figure: TimelineFigure
    timeline: Timeline
    resolver: Resolver

    def marks(self, text: str, line: int | None) -> tuple[Marks, str, str]:
        """The marks of a selection or of a rank, in words, and their label. Raises UserError."""
        what, path = self.question.what, self.resolver.path
        if what == "rank":
            return self._rank(text, line)
        selection = parse_selection(text, path=path, line=line, language=LANGUAGES[what])
        found = select(selection, self.timeline)
        if not found:
            raise mistake(
                f"'{text}' matches nothing in the run '{self.figure.run}'",
                path,
                line,
                "Ask for something that the run has.",
            )
        if len(found) == len(candidates(selection, self.timeline)):
            raise mistake(f"'{text}' matches everything", path, line, "Narrow it.")
        label = "recorded" if self.figure.mode == "recorded" else "reconstructed"
        return marks_of(what, found), name_events(found, self.timeline), label

    def _rank(self, expression: str, line: int | None) -> tuple[Marks, str, str]:
        path, ranks = self.resolver.path, [lane.rank for lane in self.timeline.ranks]
        if len(ranks) < 2:
            raise mistake(
                f"the run '{self.figure.run}' has one rank only",
                path,
                self.question.line,
                "Show another run.",
            )
        value = self.resolver.value(expression, line)
        if isinstance(value.result, bool) or kind_of(value.result) != "a pure number":
            raise mistake(
                f"'{expression}' does not give the number of a rank",
                path,
                line,
                "Write for example rank_of_max(busy(rank='each')).",
            )
        rank = magnitude(value.result)
        if rank not in ranks:
            raise mistake(
                f"'{expression}' gives {rank:g}, which is no rank of the run '{self.figure.run}'",
                path,
                line,
                f"Its ranks are {ranks[0]} to {ranks[-1]}.",
            )
        return ((int(rank),),), f"rank {int(rank)}", value.label


def check(question: PickQuestion, resolved: ResolvedPick, resolver: Resolver) -> Iterator[UserError]:
    """What is wrong with a question whose marks are known."""
    what = question.what
    key = {
        "what": what,
        "mode": resolved.mode,
        "answer": resolved.answer,
        "explain": "",
        "misconceptions": [{"at": m.marks, "say": str(i)} for i, m in enumerate(resolved.misconceptions)],
    }
    for i, wrong in enumerate(resolved.misconceptions):
        value, line = question.misconceptions[i].value, question.misconceptions[i].value_line
        if overlap(what, wrong.marks, resolved.answer):
            yield mistake(
                f"the misconception '{value}' holds something that is right",
                resolver.path,
                line,
                "Narrow it: rest(…) is all but the first.",
            )
        elif all(judge(key, pick).html != (str(i),) for pick in picks(what, wrong.marks, resolved.mode)):
            yield mistake(
                f"the misconception '{value}' is never met: those above it match all of it",
                resolver.path,
                line,
                "Put the narrower one first, or keep one of them.",
            )
    if what == "rank" and str(resolved.answer[0][0]) in numbers_in(resolved.hint):
        yield mistake(
            f"the hint gives the answer, {resolved.shown}, away",
            resolver.path,
            question.lines.get("hint"),
            "Say where to look, not what is found.",
        )
