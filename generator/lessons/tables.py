"""TOML as an author writes it in an exercise: read strictly, every complaint with its line.

tomllib keeps no lines, so the places of the keys are found again in the text. Problems are gathered,
not raised: an author wants to see all of them at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from generator.errors import UserError, did_you_mean
from generator.texts import parse_toml

_HEADER = re.compile(r"\s*\[\[\s*([A-Za-z0-9_-]+)\s*\]\]|\s*\[\s*([A-Za-z0-9_-]+)\s*\]")
_KEY = re.compile(r"\s*([A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*')\s*=\s*(\"\"\"|''')?(.*)", re.DOTALL)

#: Where a key stands: the table ("" at the top), which of the tables of that name, and the key.
Place = tuple[str, int, str]


def key_lines(text: str, first_line: int) -> dict[Place, int]:
    """The line of the value of each key; `text` begins at `first_line`.

    A multi-line string that opens with a line break begins on the line after its quotes, as its
    value does. Table headers are recorded under the empty key.
    """
    found: dict[Place, int] = {}
    counts: dict[str, int] = {}
    table, index, closing = "", 0, ""
    for number, line in enumerate(text.splitlines(), first_line):
        if closing:
            if closing in line:
                closing = ""
            continue
        if header := _HEADER.match(line):
            table = header[1] or header[2]
            index = counts.get(table, 0)
            counts[table] = index + 1
            found[(table, index, "")] = number
        elif key := _KEY.match(line):
            quotes, rest = key[2] or "", key[3]
            starts_below = bool(quotes) and not rest.strip()
            found.setdefault((table, index, key[1].strip("\"'")), number + starts_below)
            if quotes and quotes not in rest:
                closing = quotes
    return found


@dataclass(slots=True)
class Source:
    """A piece of TOML inside an author's file, and the problems found in it so far."""

    path: Path
    #: Line of the file on which the piece begins; errors about the whole of it point to `line`.
    first_line: int
    line: int
    lines: dict[Place, int]
    problems: list[UserError]

    def complain(self, what: str, remedy: str, *, line: int | None = None) -> None:
        self.problems.append(UserError(what, path=self.path, line=line or self.line, remedy=remedy))


def read_toml(text: str, path: Path, first_line: int, line: int, problems: list[UserError]) -> Table | None:
    """The TOML in `text` as a table to take keys from; None where it is not valid (a problem is added).

    `first_line` is the line of the file where `text` begins, `line` the one to name for the whole.
    """
    try:
        data = parse_toml(text, path, first_line=first_line, remedy="Mend the line; texts stand in quotes.")
    except UserError as error:
        problems.append(error)
        return None
    return Table(data, Source(path, first_line, line, key_lines(text, first_line), problems))


class Table:
    """One TOML table from which every key must be taken; what is left over is unknown."""

    def __init__(self, data: dict[str, Any], source: Source, name: str = "", index: int = 0) -> None:
        self._data = data
        self._asked: list[str] = []
        self.source = source
        self._name = name
        self._index = index

    @property
    def line(self) -> int:
        """Where the table begins."""
        place = (self._name, self._index, "")
        return self.source.lines.get(place) or self.source.lines.get(("", 0, self._name)) or self.source.line

    def line_of(self, key: str) -> int:
        """The line of a key's value, or of the table where the key is not there."""
        return self.source.lines.get((self._name, self._index, key), self.line)

    def complain(self, what: str, remedy: str, *, key: str = "") -> None:
        self.source.complain(what, remedy, line=self.line_of(key) if key else self.line)

    def __contains__(self, key: str) -> bool:
        return key in self._data

    def ask(self, key: str) -> Any:
        """A key's value as it is, or None; the key is known from then on."""
        self._asked.append(key)
        return self._data.get(key)

    def text(self, key: str, *, required: str = "", default: str = "") -> str:
        """Text; where `required` says what it is for, it may be neither missing nor empty."""
        value = self.ask(key)
        if value is not None and not isinstance(value, str):
            self.complain(f"'{key}' must be text", "Put it in quotes.", key=key)
            return default
        if required and not (value or "").strip():
            missing = "is empty" if key in self else "is missing"
            self.complain(f"'{key}' {missing}: {required}", f'Add: {key} = "…"', key=key)
        return default if value is None else value

    def flag(self, key: str) -> bool:
        value = self.ask(key)
        if value is not None and not isinstance(value, bool):
            self.complain(f"'{key}' must be true or false", "Write it without quotes.", key=key)
            return False
        return bool(value)

    def whole(self, key: str, *, required: str) -> int:
        """A whole number of at least 1."""
        value = self.ask(key)
        if value is None:
            self.complain(f"'{key}' is missing: {required}", f"Add: {key} = …", key=key)
        elif type(value) is not int or value < 1:
            self.complain(
                f"'{key}' must be a whole number of at least 1", "Write it without quotes.", key=key
            )
        else:
            return value
        return 0

    def texts(self, key: str, *, required: str = "") -> tuple[str, ...]:
        """A list of texts, none twice."""
        value = self.ask(key)
        if value is None or value == []:
            if required:
                self.complain(f"'{key}' is missing: {required}", f'Add: {key} = ["…"]', key=key)
            return ()
        if not isinstance(value, list) or not all(isinstance(v, str) and v.strip() for v in value):
            self.complain(f"'{key}' must be a list of texts", f'Write: {key} = ["…", "…"]', key=key)
            return ()
        for item in sorted({v for v in value if value.count(v) > 1}):
            self.complain(f"'{key}' has '{item}' twice", "Remove one.", key=key)
        return tuple(value)

    def tables(self, key: str) -> tuple[Table, ...]:
        """The tables of [[key]]."""
        value = self.ask(key)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(v, dict) for v in value):
            self.complain(f"'{key}' must be tables", f"Write [[{key}]] above the keys of each.", key=key)
            return ()
        return tuple(Table(v, self.source, key, i) for i, v in enumerate(value))

    def finish(self, later: Iterable[str] = ()) -> None:
        """Complain of the keys that nobody asked for; those in `later` are planned, not known yet."""
        for key in self._data:
            if key in self._asked:
                continue
            if key in later:
                self.complain(
                    f"the key '{key}' is not known yet",
                    "Known: " + ", ".join(sorted(self._asked)) + ".",
                    key=key,
                )
            else:
                at = f"[[{self._name}]] " if self._name else ""
                self.complain(f"unknown key {at}'{key}'", did_you_mean(key, self._asked), key=key)
