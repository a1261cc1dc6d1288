"""Kind `choice`: the reader picks one option, or all that are right; every option has its reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from generator.errors import Problems, UserError
from generator.lessons.kinds.common import (
    Resolver,
    check_option,
    check_prompt,
    mistake,
    question_hash,
    take_id,
)
from generator.lessons.tables import Table


@dataclass(frozen=True, slots=True)
class Choice:
    text: str
    #: An expression that is true or false; "true" or "false" only where nothing can be computed.
    correct: str
    why: str
    line: int = field(default=0, compare=False)
    lines: dict[str, int] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class ChoiceQuestion:
    id: str
    prompt: str
    choices: tuple[Choice, ...]
    #: Whether more than one is right; the reader is told.
    many: bool
    hint: str
    explain: str
    line: int
    lines: dict[str, int] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class ResolvedOption:
    text: str
    correct: bool
    why: str


@dataclass(frozen=True, slots=True)
class ResolvedChoice:
    key: str
    id: str
    prompt: str
    options: tuple[ResolvedOption, ...]
    many: bool
    hint: str
    explain: str
    hash: str
    label: str
    line: int


def parse(table: Table) -> ChoiceQuestion:
    """The question in a block. Problems go to the table's source."""
    question = ChoiceQuestion(
        id=take_id(table),
        prompt=table.text("prompt", required="it is the question"),
        choices=tuple(_choice(t) for t in table.tables("choices")),
        many=table.flag("many"),
        hint=table.text("hint"),
        explain=table.text("explain", required="feedback always explains"),
        line=table.source.line,
        lines={k: table.line_of(k) for k in ("prompt", "many", "hint", "explain")},
    )
    table.finish()
    check_prompt(table, question.prompt)
    if len(question.choices) < 2:
        table.complain("a choice needs at least two options", "Add [[choices]] with text, correct and why.")
    texts = [c.text.strip() for c in question.choices]
    for i, choice in enumerate(question.choices):
        if choice.text.strip() and choice.text.strip() in texts[:i]:
            table.source.complain(
                f"the option '{choice.text}' is there twice", "Remove one.", line=choice.line
            )
    return question


def _choice(table: Table) -> Choice:
    text = table.text("text", required="it is what the reader picks")
    correct = table.ask("correct")
    if isinstance(correct, bool):
        # TOML has its own true and false; both ways of writing mean the same.
        correct = str(correct).lower()
    if not isinstance(correct, str) or not correct.strip():
        table.complain(
            "'correct' must be an expression that is true or false",
            'Write for example: correct = "exposed_comm() < comm_time()"',
            key="correct",
        )
        correct = "false"
    found = Choice(
        text,
        correct,
        table.text("why", required="every option has its own reason"),
        table.line,
        {k: table.line_of(k) for k in ("text", "correct", "why")},
    )
    table.finish()
    check_option(table, text)
    return found


def texts(question: ChoiceQuestion) -> Iterator[tuple[str, int]]:
    """The Markdown of a question, each with its line."""
    for key in ("prompt", "hint", "explain"):
        yield getattr(question, key), question.lines.get(key, question.line)
    for choice in question.choices:
        for key in ("text", "why"):
            yield getattr(choice, key), choice.lines.get(key, choice.line)


def resolve(question: ChoiceQuestion, resolver: Resolver) -> ResolvedChoice:
    """The question with its right options. Raises Problems."""
    problems: list[UserError] = []
    options, labels = [], set()
    for choice in question.choices:
        line = choice.lines.get("correct")
        correct = False
        try:
            value = resolver.value(choice.correct, line)
            if not isinstance(value.result, bool):
                raise mistake(
                    "'correct' gives a number, not true or false",
                    resolver.path,
                    line,
                    "Compare it with something.",
                )
            labels.add(value.label)
            correct = value.result
        except UserError as error:
            problems.append(error)
        options.append(
            ResolvedOption(
                resolver.text(choice.text, choice.lines.get("text")),
                correct,
                resolver.text(choice.why, choice.lines.get("why")),
            )
        )
    texts = {
        k: resolver.text(getattr(question, k), question.lines.get(k)) for k in ("prompt", "hint", "explain")
    }
    if problems:
        raise Problems(problems)
    label = next((name for name in ("reconstructed", "recorded") if name in labels), "formula")
    return ResolvedChoice(
        key=f"{resolver.slug}/{question.id}",
        id=question.id,
        options=tuple(options),
        many=question.many,
        label=label,
        line=question.line,
        hash=question_hash(
            "choice",
            question.prompt,
            [c.text for c in question.choices],
            [c.correct for c in question.choices],
        ),
        **texts,
    )


def check(question: ChoiceQuestion, resolved: ResolvedChoice, resolver: Resolver) -> Iterator[UserError]:
    """What is wrong with a question whose right options are known."""
    right = [o.text for o in resolved.options if o.correct]
    wrong = [o.text for o in resolved.options if not o.correct]
    many = question.lines.get("many", question.line)
    if not right:
        yield mistake(
            "no option is correct",
            resolver.path,
            question.line,
            "Check the expressions against the run with 'shardbook eval'.",
        )
    elif not wrong:
        yield mistake("every option is correct", resolver.path, question.line, "Add one that is wrong.")
    elif len(right) > 1 and not question.many:
        yield mistake(
            f"{len(right)} options are correct and the question takes one",
            resolver.path,
            many,
            "Add: many = true, or make the answer unique.",
        )
    elif len(right) == 1 and question.many:
        yield mistake(
            "the question takes many and one option is correct",
            resolver.path,
            many,
            "Remove: many = true, or add a second correct option.",
        )
    hint = resolved.hint.casefold()
    if any(t.casefold() in hint for t in right) and not any(t.casefold() in hint for t in wrong):
        yield mistake(
            "the hint gives the answer away",
            resolver.path,
            question.lines.get("hint"),
            "Say where to look, not what is found.",
        )
