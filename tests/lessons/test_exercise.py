"""An exercise file becomes prose, figures and questions, each with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from generator.book import Book
from generator.errors import UserError
from generator.lessons.exercise import (
    ChoiceQuestion,
    Exercise,
    NumberQuestion,
    Prose,
    TimelineFigure,
    exercise_files,
    find_exercises,
    parse_exercise,
)
from generator.lessons.tables import key_lines
from tests.lessons.small import DATA, EXERCISE, copy_book


def sample() -> tuple[Exercise, list[str]]:
    book = Book(root=DATA / "book", title="")
    exercises, _ = find_exercises(book)
    assert [e.slug for e in exercises] == ["ring", "exposed-communication"]
    return exercises[1], (DATA / "book" / EXERCISE).read_text("utf-8").splitlines()


def test_the_front_matter_is_read() -> None:
    exercise, _ = sample()
    assert exercise.number == 10
    assert exercise.runs == ("ddp", "single")
    assert exercise.minutes == 12
    assert exercise.requires == ("ring",)
    assert exercise.chapter.slug == "data-parallel"
    assert exercise.chapter.letter == "C"
    assert exercise.chapter.intro.startswith("Every rank holds")


def test_blocks_come_in_order_and_know_their_line() -> None:
    exercise, lines = sample()
    assert [type(b) for b in exercise.blocks] == [
        Prose,
        TimelineFigure,
        NumberQuestion,
        NumberQuestion,
        ChoiceQuestion,
    ]
    prose, figure, first, second, third = exercise.blocks
    assert isinstance(prose, Prose)
    assert prose.markdown.splitlines()[0] == lines[prose.line - 1]
    assert "```python" in prose.markdown
    assert lines[figure.line - 1] == "```toml timeline"
    assert [lines[q.line - 1] for q in (first, second, third)] == ["```toml question"] * 3


def test_values_know_their_line() -> None:
    exercise, lines = sample()
    first = exercise.questions[0]
    assert isinstance(first, NumberQuestion)
    assert lines[first.lines["answer"] - 1].startswith("answer =")
    # A text that begins below its quotes begins on the next line.
    assert lines[first.lines["explain"] - 1].startswith("All but the last bucket")
    assert [lines[m.value_line - 1] for m in first.misconceptions] == [
        f'value = "{m.value}"' for m in first.misconceptions
    ]


def test_a_figure_shows_the_first_run_isolated_unless_it_says_otherwise(tmp_path: Path) -> None:
    exercise, problems = parse(tmp_path, "```toml timeline\n```\n")
    assert not problems
    [figure] = exercise.blocks
    assert isinstance(figure, TimelineFigure)
    assert (figure.run, figure.mode, figure.focus) == ("ddp", "isolated", "")


def parse(folder: Path, body: str) -> tuple[Exercise, list[UserError]]:
    path = folder / "01-page.md"
    head = '+++\ntitle = "T"\nsummary = "S"\nruns = ["ddp"]\nminutes = 1\n+++\n'
    path.write_text(head + body, "utf-8")
    problems: list[UserError] = []
    exercise = parse_exercise(path, sample()[0].chapter, problems)
    assert exercise is not None
    return exercise, problems


@pytest.mark.parametrize(
    "body",
    [
        "````markdown\n```toml question\nid = 1\n```\n````",
        "```toml\nkey = 1\n```",
        "```python toml question\n```",
        "    ```toml question\n    ```",
    ],
)
def test_other_code_is_prose(body: str, tmp_path: Path) -> None:
    exercise, problems = parse(tmp_path, body)
    assert not problems
    [block] = exercise.blocks
    assert isinstance(block, Prose)
    assert block.markdown.strip() == body.strip()


@pytest.mark.parametrize(
    ("body", "line", "says"),
    [
        ("- a list\n\n  ```toml timeline\n  ```\n", 9, "a block stands inside a list or a quotation"),
        ("> ```toml timeline\n> ```\n", 7, "a block stands inside a list or a quotation"),
        ('```toml timeline\nrun = "ddp"\n', 7, "the block is not closed"),
        ("```toml timeline", 7, "the block is not closed"),
        ('text\n\n```toml question\nkind = "number"\nid = "a\n```\n', 11, "not valid TOML"),
        ('```toml question\nkind = "number"\nprompt = [1,\n```\n', 9, "not valid TOML"),
        ('```toml question\nid = "a"\n```\n', 7, "'kind' is missing"),
        ("```toml question\nkind = 3\n```\n", 8, "'kind' must be text"),
        ("```toml timeline\nfocus = '''\nphase == 'backwards'\n'''\n```\n", 9, "unknown phase 'backwards'"),
    ],
)
def test_a_block_that_cannot_be_read_is_named_by_its_line(
    body: str, line: int, says: str, tmp_path: Path
) -> None:
    _, problems = parse(tmp_path, body)
    told = [str(p) for p in problems]
    assert any(f"01-page.md:{line}: {says}" in t for t in told), told


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("", 1, "the file does not begin with +++"),
        ("# Title\n", 1, "the file does not begin with +++"),
        ('+++\ntitle = "T"\n', 1, "the keys are not closed"),
        ('+++\ntitle = "T"\nminutes = \n+++\n', 3, "not valid TOML"),
    ],
)
def test_a_file_without_keys_is_named(text: str, line: int, says: str, tmp_path: Path) -> None:
    book = copy_book(tmp_path)
    path = book.root / EXERCISE
    path.write_text(text, "utf-8")
    [problem] = find_exercises(book)[1]
    assert f"{EXERCISE}:{line}: {says}" in str(problem)


def test_a_file_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    book = copy_book(tmp_path)
    (book.root / EXERCISE).write_bytes(b'+++\ntitle = "\xff"\n+++\n')
    [problem] = find_exercises(book)[1]
    assert f"{EXERCISE}:2: not UTF-8" in str(problem)


def test_a_book_without_exercises_has_none(tmp_path: Path) -> None:
    assert find_exercises(Book(root=tmp_path, title="")) == ((), ())


def test_files_are_listed_readable_or_not(tmp_path: Path) -> None:
    book = copy_book(tmp_path)
    (book.root / EXERCISE).write_bytes(b"\xff")
    (book.root / "exercises/03-data-parallel/notes.md").write_text("no exercise")
    found = [(path.name, chapter, slug) for path, chapter, slug in exercise_files(book)]
    assert found == [
        ("chapter.md", "data-parallel", ""),
        ("09-ring.md", "data-parallel", "ring"),
        ("10-exposed-communication.md", "data-parallel", "exposed-communication"),
    ]


def test_keys_are_found_where_they_stand() -> None:
    text = 'a = 1\nb = """\nc = 2\n"""\n[[t]]\nc = 3\n[[t]]\nc = 4\nd = """x"""\n[u]\n"e" = 5\n'
    found = key_lines(text, first_line=10)
    assert found == {
        ("", 0, "a"): 10,
        ("", 0, "b"): 12,
        ("t", 0, ""): 14,
        ("t", 0, "c"): 15,
        ("t", 1, ""): 16,
        ("t", 1, "c"): 17,
        ("t", 1, "d"): 18,
        ("u", 0, ""): 19,
        ("u", 0, "e"): 20,
    }
