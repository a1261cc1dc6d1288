"""What the kinds of questions share: ids, hints, and the hash that a reader's progress is kept by."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from generator.errors import UserError

if TYPE_CHECKING:
    from generator.lessons.expressions import Value
    from generator.lessons.figures import TimelineFigure
    from generator.lessons.tables import Table
    from generator.timeline.spans import Timeline

SLUG = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")

#: A lower-case "not" is only refused where it follows "which … is": elsewhere it may be needed.
_NEGATIVE_PROMPT = re.compile(
    r"\bNOT\b|(?i:\bwhich\b[^.?!]*?\bexcept\b)"
    r"|(?i:\b(?:which|what|who)\b[^.?!]*?\b(?:is|are|was|were|do|does|did|has|have|can)"
    r"(?:n['’]t|(?:\s+[\w-]+){0,2}?\s+not)\b)"
)
_NEGATIVE_OPTION = re.compile(
    r"\b(?:none|all|neither|both)\b\s+(?:of\s+)?(?:the\s+)?(?:above|these|those|others?)\b", re.IGNORECASE
)
_NUMBER = re.compile(r"[−-]?\d+(?:[\u2009\u00a0 ,]\d{3})*(?:\.\d+)?")


class Resolver(Protocol):
    """What a kind needs to turn expressions and texts into values."""

    @property
    def path(self) -> Path: ...

    @property
    def slug(self) -> str: ...

    def value(self, expression: str, line: int | None) -> Value:
        """The value of an expression. Raises UserError."""

    def text(self, markdown: str, line: int | None) -> str:
        """Markdown with its expressions replaced; what is wrong with them is kept by the resolver."""

    @property
    def figures(self) -> Sequence[TimelineFigure]:
        """The figures of the page, in order."""

    def timeline(self, run: str, mode: str) -> Timeline:
        """A run's representative step. Raises UserError."""


@dataclass(frozen=True, slots=True)
class Misconception:
    """A wrong way to the answer, and what to say to who went it."""

    #: An expression, or a selection of what is picked.
    value: str
    say: str
    value_line: int = field(default=0, compare=False)
    say_line: int = field(default=0, compare=False)


def read_misconceptions(table: Table, meaning: str) -> tuple[Misconception, ...]:
    """The misconceptions in a block; `meaning` says what the value of one is for."""
    return tuple(_misconception(each, meaning) for each in table.tables("misconceptions"))


def _misconception(table: Table, meaning: str) -> Misconception:
    found = Misconception(
        value=table.text("value", required=meaning),
        say=table.text("say", required="each misconception has its own reason"),
        value_line=table.line_of("value"),
        say_line=table.line_of("say"),
    )
    table.finish()
    return found


class Told(Protocol):
    """A question with misconceptions."""

    @property
    def line(self) -> int: ...

    @property
    def lines(self) -> dict[str, int]: ...

    @property
    def misconceptions(self) -> tuple[Misconception, ...]: ...


def texts(question: Told) -> Iterator[tuple[str, int]]:
    """The Markdown of a question, each with its line."""
    for key in ("prompt", "hint", "explain"):
        yield getattr(question, key), question.lines.get(key, question.line)
    for wrong in question.misconceptions:
        yield wrong.say, wrong.say_line


def take_id(table: Table) -> str:
    found = table.text("id", required="progress is kept by it")
    if found and not SLUG.fullmatch(found):
        table.complain(
            f"the id '{found}' is not made of lower-case words and hyphens",
            'Write for example: id = "exposed-share"',
            key="id",
        )
    return found


def check_prompt(table: Table, prompt: str) -> None:
    """Complain of a prompt that asks for the exception."""
    if found := _NEGATIVE_PROMPT.search(prompt):
        table.complain(
            f"the prompt asks in the negative ('{found[0]}')", "Ask for what is the case.", key="prompt"
        )


def check_option(table: Table, text: str) -> None:
    """Complain of an option that speaks of the others."""
    if found := _NEGATIVE_OPTION.search(text):
        table.complain(f"the option says '{found[0]}'", "Say in each option what it claims.", key="text")


def question_hash(kind: str, prompt: str, *parts: Sequence[str]) -> str:
    """16 hex digits over what was asked, as written, so that a re-recording does not change them."""
    written = json.dumps([kind, prompt, *[list(p) for p in parts]], ensure_ascii=False)
    return hashlib.sha256(written.encode()).hexdigest()[:16]


def numbers_in(text: str) -> Iterator[str]:
    """The numbers that stand in a text, without what groups their digits."""
    for found in _NUMBER.findall(text.replace("\\", "")):
        yield re.sub(r"[\u2009\u00a0 ,]", "", found).replace("−", "-")


def mistake(what: str, path: Path, line: int | None, remedy: str) -> UserError:
    return UserError(what, path=path, line=line, remedy=remedy)
