"""Files that people write: read as UTF-8, parsed as TOML, every failure with its place and remedy."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import Any

from generator.errors import UserError

#: What a text may not hold: it shows as nothing, and rearranges a page or a terminal that shows it.
#: Controls (but tab and line breaks), overrides of the reading direction, and lone surrogates.
HIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def read_bytes(path: Path, *, remedy: str = "Check the file and its permissions.") -> bytes:
    """The content of a file. Raises UserError for one that is not there or cannot be read."""
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise UserError(f"cannot be read: {reason(error)}", path=path, remedy=remedy) from None


def read_text(path: Path) -> str:
    """A text file, with line breaks as \\n and without a byte-order mark. Raises UserError."""
    data = read_bytes(path).removeprefix(b"\xef\xbb\xbf")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(
            f"not UTF-8 (byte {error.start})",
            path=path,
            line=data.count(b"\n", 0, error.start) + 1,
            remedy="Save the file as UTF-8.",
        ) from None
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if found := HIDDEN.search(text):
        raise UserError(
            f"an invisible control character (U+{ord(found[0]):04X})",
            path=path,
            line=text.count("\n", 0, found.start()) + 1,
            remedy="Remove it.",
        )
    return text


def parse_toml(
    text: str, path: Path, *, first_line: int = 1, remedy: str = "Mend the line."
) -> dict[str, Any]:
    """TOML that begins at a line of a file. Raises UserError with the line that is at fault."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        raise UserError(
            f"not valid TOML: {message.partition(' (at ')[0]}",
            path=path,
            line=first_line - 1 + _error_line(message, text),
            remedy=remedy,
        ) from None
    except RecursionError:
        raise UserError(
            "not valid TOML: nested too deeply", path=path, line=first_line, remedy=remedy
        ) from None
    if hidden := _hidden(data):
        raise UserError(
            f"an invisible control character (U+{ord(hidden):04X}) in a text",
            path=path,
            line=_escape_line(text, hidden, first_line),
            remedy="Remove it.",
        )
    return data


def reason(error: Exception) -> str:
    """Why a file could not be read or written, without its path."""
    return (isinstance(error, OSError) and error.strerror) or str(error)


def is_folder(path: Path) -> bool:
    """Whether a folder is there. Raises UserError where something else has its place."""
    if path.is_dir():
        return True
    if os.path.lexists(path):
        raise UserError("this must be a folder", path=path, remedy="Move what is there, or remove it.")
    return False


def _error_line(message: str, text: str) -> int:
    """The line a tomllib message speaks of ('(at line 3, column 5)' or '(at end of document)')."""
    digits = message.partition("(at line ")[2].partition(",")[0]
    return int(digits) if digits.isdigit() else max(1, text.count("\n") + (not text.endswith("\n")))


def _hidden(value: Any) -> str:
    """The first hidden character in a parsed text or name of a key: TOML can write one as an escape."""
    if isinstance(value, str):
        found = HIDDEN.search(value)
        return found[0] if found else ""
    if isinstance(value, dict):
        return _hidden(list(value)) or _hidden(list(value.values()))
    return next(filter(None, map(_hidden, value)), "") if isinstance(value, list) else ""


def _escape_line(text: str, character: str, first_line: int) -> int:
    pattern = re.compile(rf"\\u(?:0000)?{ord(character):04x}|\\[bf]", re.IGNORECASE)
    found = pattern.search(text)
    return first_line + (text.count("\n", 0, found.start()) if found else 0)
