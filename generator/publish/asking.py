"""Questions to rows of a page, and the key that grades each in the browser."""

from __future__ import annotations

from functools import partial
from typing import Protocol

from markupsafe import Markup

from generator.lessons.kinds.choice import ResolvedChoice
from generator.lessons.kinds.number import ResolvedNumber
from generator.lessons.kinds.pick import ResolvedPick
from generator.lessons.questions import ResolvedQuestion
from generator.publish import show
from generator.publish.keys import encode
from generator.publish.model import Option, QuestionRow


class Writer(Protocol):
    """Turns an author's Markdown into HTML of a page."""

    def block(self, text: str, line: int | None) -> Markup: ...

    def inline(self, text: str, line: int | None) -> Markup: ...

    def computed(self, expression: str, run: str = "") -> Markup:
        """How an answer was computed, on the page's own run where none is named."""


def question_row(question: ResolvedQuestion, number: int, tolerance: str, write: Writer) -> QuestionRow:
    """A question as a row; `tolerance` as its author wrote it, where it has one."""
    text = partial(write.block, line=question.line)
    explain = text(question.explain)
    row = partial(
        QuestionRow,
        id=question.id,
        number=number,
        key=question.key,
        hash=question.hash,
        prompt=text(question.prompt),
        hint=text(question.hint),
        explain=explain,
        label=question.label,
    )
    if isinstance(question, ResolvedNumber):
        key = _number_key(question, write)
        answer, within = encode(key | {"explain": explain}, question.key), _within(tolerance)
        return row("number", answer=answer, unit=question.unit, shown=question.shown, within=within)
    if isinstance(question, ResolvedPick):
        key = _pick_key(question, write)
        answer = encode(key | {"explain": explain}, question.key)
        return row("pick", answer=answer, shown=question.shown, what=question.what, figure=question.figure)
    options = _options(question, write)
    key = _choice_key(question, options)
    answer = encode(key | {"explain": explain}, question.key)
    return row("choice", answer=answer, many=question.many, options=options)


def _options(question: ResolvedChoice, write: Writer) -> tuple[Option, ...]:
    text = partial(write.inline, line=question.line)
    return tuple(Option(text(o.text), text(o.why), o.correct) for o in question.options)


def _number_key(question: ResolvedNumber, write: Writer) -> dict[str, object]:
    return {
        "kind": "number",
        "unit": question.unit,
        "value": question.value,
        "low": question.low,
        "high": question.high,
        "shown": question.shown,
        "computed": write.computed(question.expression),
        "misconceptions": [
            {"low": m.low, "high": m.high, "shown": m.shown, "say": write.block(m.say, question.line)}
            for m in question.misconceptions
        ],
    }


def _choice_key(question: ResolvedChoice, options: tuple[Option, ...]) -> dict[str, object]:
    return {
        "kind": "choice",
        "many": question.many,
        "correct": [o.correct for o in options],
        "why": [o.why for o in options],
        "computed": "",
    }


def _pick_key(question: ResolvedPick, write: Writer) -> dict[str, object]:
    return {
        "kind": "pick",
        "what": question.what,
        "figure": question.figure,
        "mode": question.mode,
        "answer": question.answer,
        "shown": question.shown,
        "computed": write.computed(question.expression, question.run),
        "misconceptions": [
            {"at": m.marks, "say": write.block(m.say, question.line)} for m in question.misconceptions
        ],
    }


def _within(tolerance: str) -> str:
    """How near counts, as the author wrote it: a distance in numbers would give the answer away."""
    amount, _, unit = tolerance.strip().partition(" ")
    if not amount.strip("0."):
        return "Counted exactly."
    if unit == "pp":
        unit = "point" if amount == "1" else "points"
    return f"Right within {amount}{show.THIN}{unit}.".replace(f"{show.THIN}.", ".")
