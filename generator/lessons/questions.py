"""The kinds of questions a book can ask. A new kind is a module of lessons/kinds and a line here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from generator.errors import UserError, did_you_mean
from generator.lessons.kinds import choice, number, pick
from generator.lessons.kinds.choice import ChoiceQuestion, ResolvedChoice
from generator.lessons.kinds.common import Resolver, texts
from generator.lessons.kinds.number import NumberQuestion, ResolvedNumber
from generator.lessons.kinds.pick import PickQuestion, ResolvedPick
from generator.lessons.tables import Table

Question = NumberQuestion | ChoiceQuestion | PickQuestion
ResolvedQuestion = ResolvedNumber | ResolvedChoice | ResolvedPick


@dataclass(frozen=True, slots=True)
class Kind:
    """What a kind of question can do."""

    #: The dataclass of a question as written.
    question: type[Question]
    #: From a block's table; problems go to the table's source.
    parse: Callable[[Table], Question]
    #: Computes the answer. Raises Problems.
    resolve: Callable[[Any, Resolver], ResolvedQuestion]
    #: What is wrong with a question whose answer is known.
    check: Callable[[Any, Any, Resolver], Iterator[UserError]]
    #: The Markdown of a question, each with its line.
    texts: Callable[[Any], Iterator[tuple[str, int]]]


KINDS: dict[str, Kind] = {
    "number": Kind(NumberQuestion, number.parse, number.resolve, number.check, texts),
    "choice": Kind(ChoiceQuestion, choice.parse, choice.resolve, choice.check, choice.texts),
    "pick": Kind(PickQuestion, pick.parse, pick.resolve, pick.check, texts),
}


def parse_question(table: Table) -> Question | None:
    """The question in a block, None where its kind is not known (a problem is added)."""
    kind = table.text("kind", required=f"one of {', '.join(KINDS)}")
    if kind in KINDS:
        return KINDS[kind].parse(table)
    if kind:
        table.complain(f"unknown kind '{kind}'", did_you_mean(kind, KINDS), key="kind")
    return None


def kind_of(question: Question) -> Kind:
    """The kind of a question that was read."""
    return next(k for k in KINDS.values() if k.question is type(question))
