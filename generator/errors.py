"""What a user is told when something they gave us cannot be used.

Every error a user can cause is a :class:`UserError`: one line that says what is wrong, where
(file and line), and what to do about it. The command line prints it and exits with status 1;
anything else that escapes is a bug of ours and keeps its traceback.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path


class UserError(Exception):
    """One problem in what the user gave: what, where, and the remedy."""

    def __init__(
        self, what: str, *, path: Path | str | None = None, line: int | None = None, remedy: str = ""
    ) -> None:
        super().__init__(what)
        self.what = what
        self.path = Path(path) if path is not None else None
        self.line = line
        self.remedy = remedy

    def __str__(self) -> str:
        where = f"{shown(self.path)}:{self.line}: " if self.path and self.line else ""
        if self.path and not self.line:
            where = f"{shown(self.path)}: "
        text = f"{where}{self.what}"
        if self.remedy:
            text = f"{text.rstrip('.')}. {self.remedy}"
        # One line, and nothing in it that a terminal would obey.
        return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in " ".join(text.split()))


class Problems(Exception):
    """Several user errors found in one pass; an author wants to see them all at once."""

    def __init__(self, problems: Iterable[UserError]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(p) for p in self.problems))


def shown(path: Path) -> str:
    """The path as a user would type it: relative to the current folder when it lies below it."""
    try:
        return str(path.resolve().relative_to(Path.cwd().resolve()))
    except (OSError, RuntimeError, ValueError):  # elsewhere, a loop of links, a NUL in the name
        return str(path)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A remedy for a misspelt name: the closest known one, or the list when none is close."""
    names = sorted(known)
    close = get_close_matches(word, names, n=1, cutoff=0.6)
    if close:
        return f"Did you mean '{close[0]}'?"
    return "Known: " + ", ".join(names) + "."


def line_of(text: str, needle: str, start_line: int = 1) -> int | None:
    """The number of the first line that contains `needle`, or None. `text` begins at `start_line`."""
    for number, line in enumerate(text.splitlines(), start_line):
        if needle in line:
            return number
    return None
