"""Computed values in an author's Markdown: {expression} or {expression | unit}.

Two braces stand for one. Code spans, code blocks and $mathematics$ are left as they are, so that
their braces mean what they mean there. What is put in is text: no character of it can be markup.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from generator.errors import Problems, UserError

#: Gives the text for an expression and a unit (None where none is written) at a line.
Insert = Callable[[str, str | None, int | None], str]

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+\-!|~$&:@^\"'=])")
_FENCE = re.compile(r"(?m)^ {0,3}(`{3,}|~{3,})[^\n]*$")
_MATHS = re.compile(r"\$\$.+?\$\$|\$(?![\s$])(?:\\.|(?!\n\n)[^$\\])*?(?<!\s)\$(?!\d)", re.DOTALL)
_LINE_START = re.compile(r" {0,3}(?:`{3,}|~{3,})")


def escape(text: str) -> str:
    """Text as Markdown that shows exactly it."""
    return _SPECIAL.sub(r"\\\1", text)


def interpolate(text: str, insert: Insert, *, path: Path | None, line: int | None) -> str:
    """The Markdown with its expressions replaced; `line` is where `text` begins.

    Raises Problems with every error found, each at its own line.
    """
    out: list[str] = []
    problems: list[UserError] = []
    for piece, expression, offset in _pieces(text):
        at = None if line is None else line + text.count("\n", 0, offset)
        if expression is None:
            out.append(piece)
            continue
        try:
            if not piece.endswith("}"):
                raise UserError(
                    "a brace is not closed",
                    path=path,
                    line=at,
                    remedy="Close it with }, or write {{ for a brace.",
                )
            if piece == "}":
                raise UserError(
                    "a brace is closed that was not opened",
                    path=path,
                    line=at,
                    remedy="Write }} for a brace.",
                )
            formula, bar, unit = expression.rpartition("|")
            if not bar:
                formula, unit = expression, ""
            out.append(escape(insert(formula.strip(), unit.strip() if bar else None, at)))
        except UserError as error:
            problems.append(error)
    if problems:
        raise Problems(problems)
    return "".join(out)


def expressions(text: str) -> tuple[str, ...]:
    """The expressions that stand in a text, without their units."""
    found = (expression for _, expression, _ in _pieces(text) if expression is not None)
    return tuple((e.rpartition("|")[0] or e).strip() for e in found if e)


def _pieces(text: str) -> Iterator[tuple[str, str | None, int]]:
    """(as written, expression or None for plain text, where it begins) in order.

    A lone "}" and a "{" that is never closed come out as expressions, for the caller to refuse.
    """
    i = 0
    while i < len(text):
        start = i
        skipped = _verbatim(text, i)
        if skipped > i:
            yield text[i:skipped], None, start
            i = skipped
        elif text.startswith(("{{", "}}"), i):
            yield text[i], None, start
            i += 2
        elif text[i] == "{":
            end = _closing(text, i + 1)
            yield text[i:end], text[i + 1 : end - 1], start
            i = end
        elif text[i] == "}":
            yield "}", "", start
            i += 1
        else:
            while i < len(text) and text[i] not in "{}`$\\~" and (i == start or text[i - 1] != "\n"):
                i += 1
            i = max(i, start + 1)
            yield text[start:i], None, start


def _closing(text: str, i: int) -> int:
    """Behind the brace that closes an expression; quoted text may hold braces."""
    quote = ""
    while i < len(text):
        if quote:
            quote = "" if text[i] == quote else quote
        elif text[i] in "'\"":
            quote = text[i]
        elif text[i] == "}":
            return i + 1
        elif text[i] == "{" or text.startswith("\n\n", i):
            break
        i += 1
    return i


def _verbatim(text: str, i: int) -> int:
    """Behind the code, mathematics or escaped character that begins at i; i where none does."""
    if (i == 0 or text[i - 1] == "\n") and _LINE_START.match(text, i):
        opening = _FENCE.match(text, i)
        if opening:
            fence = opening[1]
            closing = re.compile(rf"(?m)^ {{0,3}}{re.escape(fence[0])}{{{len(fence)},}}[ \t]*$")
            end = closing.search(text, opening.end())
            return end.end() if end else len(text)
    if text[i] == "\\" and i + 1 < len(text):
        return i + 2
    if text[i] == "`":
        run = re.compile(r"`+").match(text, i)
        assert run is not None
        end = re.compile(rf"(?<!`){run[0]}(?!`)").search(text, run.end())
        return end.end() if end else run.end()
    if text[i] == "$":
        # As the Markdown of the site has it: no space inside of the dollars, no digit after them.
        maths = _MATHS.match(text, i)
        return maths.end() if maths else i
    return i
