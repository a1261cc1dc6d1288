"""Kind `number`: the reader types a number; misconceptions are numbers that have a reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from generator.errors import Problems, UserError
from generator.lessons.interpolate import expressions
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
from generator.lessons.kinds.tolerance import Tolerance, read_tolerance
from generator.lessons.tables import Table
from generator.units import UNITS, kind_of, magnitude, same_kind, show, unit

_TOLERANCE_REMEDY = (
    'Write "5 %" (of the answer), "5 pp" (points of a percentage) or a distance such as "2 ms".'
)


@dataclass(frozen=True, slots=True)
class NumberQuestion:
    id: str
    prompt: str
    #: A unit of generator.units, "" for a pure number.
    unit: str
    #: An expression.
    answer: str
    tolerance: str
    hint: str
    explain: str
    misconceptions: tuple[Misconception, ...]
    line: int
    #: Where each key's value stands in the file.
    lines: dict[str, int] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class ResolvedMisconception:
    low: float
    high: float
    shown: str
    say: str


@dataclass(frozen=True, slots=True)
class ResolvedNumber:
    """A number question with its answer; numbers are in the question's unit."""

    key: str
    id: str
    prompt: str
    unit: str
    value: float
    low: float
    high: float
    #: The answer for a reader, with its unit.
    shown: str
    label: str
    expression: str
    misconceptions: tuple[ResolvedMisconception, ...]
    hint: str
    explain: str
    hash: str
    line: int


def parse(table: Table) -> NumberQuestion:
    """The question in a block. Problems go to the table's source."""
    question = NumberQuestion(
        id=take_id(table),
        prompt=table.text("prompt", required="it is the question"),
        unit=table.text("unit"),
        answer=table.text("answer", required="it is the expression that computes the answer"),
        tolerance=table.text("tolerance", required="it says how exact a reader must be"),
        hint=table.text("hint"),
        explain=table.text("explain", required="feedback always explains"),
        misconceptions=read_misconceptions(table, "it is the expression that computes the wrong number"),
        line=table.source.line,
        lines={k: table.line_of(k) for k in ("prompt", "unit", "answer", "tolerance", "hint", "explain")},
    )
    table.finish()
    check_prompt(table, question.prompt)
    try:
        unit(question.unit)
        known = question.unit != "pp"
    except ValueError:
        known = False
    if not known:
        units = ", ".join(u for u in UNITS if u != "pp")
        table.complain(
            f"unknown unit '{question.unit}'", f"Known: {units}; leave it out for a pure number.", key="unit"
        )
    elif question.tolerance.strip():
        try:
            read_tolerance(question.tolerance, question.unit)
        except ValueError as error:
            table.complain(str(error), _TOLERANCE_REMEDY, key="tolerance")
    return question


def resolve(question: NumberQuestion, resolver: Resolver) -> ResolvedNumber:
    """The question with its numbers. Raises Problems; what parsing complained of is not told again."""
    problems: list[UserError] = []
    try:
        tolerance = read_tolerance(question.tolerance, question.unit)
    except ValueError:
        tolerance = None
    misconceptions = []
    answer = _number(question, question.answer, question.lines.get("answer"), resolver, problems)
    for wrong in question.misconceptions:
        number = _number(question, wrong.value, wrong.value_line, resolver, problems)
        say = resolver.text(wrong.say, wrong.say_line)
        if number is not None and tolerance is not None:
            low, high = tolerance.around(number[0])
            misconceptions.append(ResolvedMisconception(low, high, number[1], say))
    texts = {
        k: resolver.text(getattr(question, k), question.lines.get(k)) for k in ("prompt", "hint", "explain")
    }
    if answer is None or tolerance is None or problems:
        raise Problems(problems)
    value, shown, label = answer
    low, high = tolerance.around(value)
    return ResolvedNumber(
        key=f"{resolver.slug}/{question.id}",
        id=question.id,
        unit=question.unit,
        value=value,
        low=low,
        high=high,
        shown=shown,
        label=label,
        expression=question.answer,
        misconceptions=tuple(misconceptions),
        line=question.line,
        hash=question_hash("number", question.prompt, [], [question.answer]),
        **texts,
    )


def _number(
    question: NumberQuestion,
    expression: str,
    line: int | None,
    resolver: Resolver,
    problems: list[UserError],
) -> tuple[float, str, str] | None:
    """An expression's number in the question's unit, for a reader, and its label."""
    if not expression.strip():
        return None
    try:
        value = resolver.value(expression, line)
        if isinstance(value.result, bool):
            raise mistake(
                "the expression is true or false, not a number",
                resolver.path,
                line,
                "Write an expression that gives a number.",
            )
        try:
            asked = unit(question.unit)
        except ValueError:
            return None
        if not same_kind(value.result, asked):
            raise mistake(
                f"the expression gives {kind_of(value.result)} and the question's unit is "
                f"{question.unit or 'missing'}",
                resolver.path,
                line,
                "Change the unit or the expression.",
            )
        number = magnitude(value.result, question.unit)
        return float(number), show(value.result, question.unit), value.label
    except UserError as error:
        problems.append(error)
        return None


def check(question: NumberQuestion, resolved: ResolvedNumber, resolver: Resolver) -> Iterator[UserError]:
    """What is wrong with a question whose numbers are known."""
    path, lines = resolver.path, question.lines
    tolerance = read_tolerance(question.tolerance, question.unit)
    yield from _check_tolerance(question, resolved, tolerance, resolver)
    for i, wrong in enumerate(resolved.misconceptions):
        line = question.misconceptions[i].value_line
        centre = (wrong.low + wrong.high) / 2
        if resolved.low <= centre <= resolved.high or wrong.low <= resolved.value <= wrong.high:
            yield mistake(
                f"the misconception {wrong.shown} is within the tolerance of the answer {resolved.shown}",
                path,
                line,
                "Tighten the tolerance, or remove the misconception.",
            )
        for other in resolved.misconceptions[:i]:
            if other.low <= centre <= other.high or wrong.low <= (other.low + other.high) / 2 <= wrong.high:
                yield mistake(
                    f"the misconceptions {other.shown} and {wrong.shown} cannot be told apart",
                    path,
                    line,
                    "Tighten the tolerance, or keep one of them.",
                )
    if _gives_away(question, resolved, resolver):
        yield mistake(
            f"the hint gives the answer {resolved.shown} away",
            path,
            lines.get("hint"),
            "Say where to look, not what is found.",
        )


def _check_tolerance(
    question: NumberQuestion, resolved: ResolvedNumber, tolerance: Tolerance, resolver: Resolver
) -> Iterator[UserError]:
    line = question.lines.get("tolerance")
    if tolerance.relative and resolved.value == 0:
        yield mistake(
            "the answer is 0, and a share of 0 allows nothing else",
            resolver.path,
            line,
            'Give a distance, such as "1 pp" or "0.5 ms".',
        )
        return
    typed = float(next(numbers_in(resolved.shown), "nan"))
    if not resolved.low <= typed <= resolved.high:
        yield mistake(
            f"the tolerance is so tight that the shown answer {resolved.shown} is refused",
            resolver.path,
            line,
            "Widen it; a count may be asked for exactly.",
        )


def _gives_away(question: NumberQuestion, resolved: ResolvedNumber, resolver: Resolver) -> bool:
    shown = list(numbers_in(resolved.shown))[:1]
    if shown and shown[0] in numbers_in(resolved.hint):
        return True
    for expression in expressions(question.hint):
        value = resolver.value(expression, question.lines.get("hint")).result
        try:
            if not isinstance(value, bool) and (
                resolved.low <= magnitude(value, question.unit) <= resolved.high
            ):
                return True
        except ValueError:
            continue
    return False
