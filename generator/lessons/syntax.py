"""What the two small languages share: parsing, and errors that point to a character.

Both are a subset of Python's expressions, parsed by `ast`. Everything that is not on a language's
list of allowed nodes is refused before anything is evaluated.
"""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass
from pathlib import Path

from generator.errors import UserError

#: Longer than any expression that a person would want to read.
MAX_LENGTH = 600
MAX_DEPTH = 40

_WORDS: dict[type[ast.AST], str] = {
    ast.Attribute: "a dot after a name",
    ast.Subscript: "an index in brackets",
    ast.Lambda: "a lambda",
    ast.ListComp: "a comprehension",
    ast.SetComp: "a comprehension",
    ast.DictComp: "a comprehension",
    ast.GeneratorExp: "a comprehension",
    ast.NamedExpr: "an assignment",
    ast.JoinedStr: "a formatted string",
    ast.Starred: "a star",
    ast.Dict: "a dictionary",
    ast.Set: "a set",
    ast.List: "a list",
    ast.Tuple: "a list",
    ast.IfExp: "an if",
    ast.Await: "await",
}


@dataclass(frozen=True, slots=True)
class Written:
    """An expression and where it was written."""

    text: str
    path: Path | None = None
    line: int | None = None

    def error(self, what: str, remedy: str, at: ast.AST | int | None = None) -> UserError:
        """A UserError that quotes the expression and says at which character it goes wrong."""
        column = self.column(at) if isinstance(at, ast.AST) else at
        where = f" (character {column})" if column else ""
        shown = self.text if len(self.text) <= 90 else self.text[:87] + "…"
        return UserError(f'{what} in "{shown}"{where}', path=self.path, line=self.line, remedy=remedy)

    def column(self, node: ast.AST) -> int:
        """The 1-based character at which a node begins; ast counts bytes."""
        offset = int(getattr(node, "col_offset", 0))
        return len(self.text.encode()[:offset].decode(errors="ignore")) + 1


def written(text: str, path: Path | None, line: int | None) -> Written:
    """The expression on one line, as positions in it are counted."""
    return Written(" ".join(text.split()), path, line)


def parse(source: Written, allowed: tuple[type[ast.AST], ...]) -> ast.expr:
    """The tree of an expression, in which only `allowed` nodes occur. Raises UserError."""
    text = source.text
    if not text:
        raise source.error("there is nothing to compute", "Write an expression.")
    if len(text) > MAX_LENGTH:
        raise source.error(
            f"an expression of {len(text)} characters is too long", f"Use at most {MAX_LENGTH}."
        )
    try:
        with warnings.catch_warnings():
            # Python warns of odd but valid code (such as "1 is 1"); our own checks speak instead.
            warnings.simplefilter("ignore")
            tree = ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise source.error(f"cannot be read: {error.msg}", "Mend the expression.", error.offset) from None
    except (ValueError, MemoryError, RecursionError):
        raise source.error("cannot be read", "Simplify the expression.") from None
    _walk(source, tree, allowed, 0)
    return tree


def _walk(source: Written, node: ast.AST, allowed: tuple[type[ast.AST], ...], depth: int) -> None:
    if depth > MAX_DEPTH:
        raise source.error("is nested too deeply", "Simplify the expression.", node)
    if not isinstance(node, allowed):
        word = _WORDS.get(type(node), f"'{type(node).__name__}'")
        raise source.error(
            f"{word} is not part of the language",
            "Use names, numbers, quoted text, operators and calls.",
            node,
        )
    for child in ast.iter_child_nodes(node):
        if not hasattr(child, "col_offset"):
            # Operators carry no place of their own.
            ast.copy_location(child, node)
        _walk(source, child, allowed, depth + 1)
