"""What people write is read in one way everywhere, and refused with file, line and remedy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from generator.book import read_book
from generator.errors import UserError, shown
from generator.texts import parse_toml, read_text

BROKEN: list[tuple[str, Callable[[Path], object], str]] = [
    ("not there", lambda p: None, "cannot be read: No such file"),
    ("a folder", lambda p: p.mkdir(), "cannot be read: Is a directory"),
    ("a link to itself", lambda p: p.symlink_to(p.name), "cannot be read: Too many levels"),
    ("a link to nothing", lambda p: p.symlink_to("nothing"), "cannot be read: No such file"),
    ("Latin-1", lambda p: p.write_bytes(b"a\nb \xe9\n"), "f:2: not UTF-8"),
    ("UTF-16", lambda p: p.write_bytes("a".encode("utf-16")), "f:1: not UTF-8"),
    ("a NUL", lambda p: p.write_bytes(b"a\n\n\0"), r"f:3: an invisible control character \(U\+0000\)"),
    ("an escape", lambda p: p.write_bytes(b"\x1b[2J"), r"f:1: .*U\+001B"),
    ("another direction", lambda p: p.write_text("a \u202e b"), r"f:1: .*U\+202E"),
    ("a break of lines that is none", lambda p: p.write_text("a\u2028b"), r"f:1: .*U\+2028"),
]


@pytest.mark.parametrize(("spoil", "says"), [b[1:] for b in BROKEN], ids=[b[0] for b in BROKEN])
def test_a_text_that_cannot_be_used_is_one_line(
    spoil: Callable[[Path], object], says: str, tmp_path: Path
) -> None:
    spoil(tmp_path / "f")
    with pytest.raises(UserError, match=says) as caught:
        read_text(tmp_path / "f")
    assert caught.value.remedy
    assert "\n" not in str(caught.value)


def test_marks_and_breaks_of_other_systems_are_not_part_of_a_text(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"\xef\xbb\xbfa\r\nb\rc\n")
    assert read_text(tmp_path / "f") == "a\nb\nc\n"


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("a = 1\nb = = 2\n", 11, "Invalid value"),
        ("a = '''\n\n", 11, "not valid TOML"),
        ('a = 1\nb = ["\\u0000"]\n', 11, "U+0000"),
        ('a = 1\n[t]\nb = {c = "\\U0000202e"}', 12, "U+202E"),
        ("a = " + "[" * 5000, 10, "nested too deeply"),
    ],
)
def test_toml_that_cannot_be_used_has_its_line(text: str, line: int, says: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_toml(text, Path("f"), first_line=10)
    assert caught.value.line == line
    assert says in str(caught.value)


def test_a_message_holds_nothing_that_a_terminal_obeys() -> None:
    assert str(UserError("an \x1b[2Jid\u202e")) == "an \\x1b[2Jid\\x202e"


def test_a_path_that_cannot_be_followed_is_shown_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    assert shown(tmp_path / "loop") == str(tmp_path / "loop")
    assert shown(Path("a\0b")) == "a\0b"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("title = ''", "a book needs a title"),
        ("title = 'x'\nurl = 'javascript:alert(1)'", "book.toml:2: 'url' is not an address"),
        ("title = 'x'\nsource = 'https://a.b/\"><script>'", "book.toml:2: 'source' is not an address"),
        ("title = 'x'\ncolour = 'red'", "book.toml:2: unknown key 'colour'"),
    ],
)
def test_a_book_says_what_is_wrong_with_it(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "book.toml").write_text(text)
    with pytest.raises(UserError) as caught:
        read_book(tmp_path)
    assert says in str(caught.value)


@pytest.mark.parametrize("folder", ["exercises", "measured_runs"])
def test_a_file_in_a_folders_place_is_not_an_empty_folder(folder: str, tmp_path: Path) -> None:
    (tmp_path / "book.toml").write_text("title = 'x'")
    (tmp_path / folder).write_text("")
    with pytest.raises(UserError, match="must be a folder"):
        read_book(tmp_path)
