"""`check` names the file, the line and the remedy of everything that is wrong with an exercise."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from generator.book import Book
from generator.errors import UserError
from generator.lessons.check import examine
from generator.runs.reader import read_manifests
from tests.lessons.small import DATA, EXERCISE, VOCABULARY, copy_book, timelines

MISTAKES = tomllib.loads((DATA / "mistakes.toml").read_text("utf-8"))["mistake"]


def found(book: Book) -> tuple[UserError, ...]:
    return examine(book, read_manifests(book.runs), timelines, VOCABULARY).problems


def test_the_sample_book_is_sound(tmp_path: Path) -> None:
    assert [str(p) for p in found(copy_book(tmp_path))] == []


@pytest.mark.parametrize("mistake", MISTAKES, ids=[m["title"] for m in MISTAKES])
def test_a_mistake_is_named_with_its_line(mistake: dict[str, Any], tmp_path: Path) -> None:
    book = copy_book(tmp_path)
    path = book.root / EXERCISE
    text = path.read_text("utf-8")
    assert text.count(mistake["replace"]) >= 1
    spoilt = text.replace(mistake["replace"], mistake["by"], 1)
    path.write_text(spoilt, "utf-8")
    lines = [i for i, line in enumerate(spoilt.splitlines(), 1) if mistake["at"] in line]
    line = lines[mistake.get("nth", 1) - 1]

    problems = [p for p in found(book) if p.path == path]

    told = [str(p) for p in problems]
    assert any(f"{EXERCISE}:{line}: " in t and mistake["says"] in t for t in told), told
    assert all(p.remedy for p in problems)
    assert all("\n" not in t for t in told)


def test_all_mistakes_of_a_file_are_found_at_once(tmp_path: Path) -> None:
    book = copy_book(tmp_path)
    path = book.root / EXERCISE
    text = path.read_text("utf-8")
    for old, new in (
        ("minutes = 12", "minuts = 12"),
        ('tolerance = "0"', 'tolerance = "about"'),
        ("exposed_comm(rank=0) / step_time()", "exposed(rank=0) / step_time()"),
        ("(09-ring.md)", "(nowhere.md)"),
    ):
        text = text.replace(old, new)
    path.write_text(text, "utf-8")
    told = "\n".join(str(p) for p in found(book))
    for part in (
        "'minutes' is missing",
        "unknown key 'minuts'",
        "'about'",
        "unknown metric 'exposed'",
        "'nowhere.md' leads nowhere",
    ):
        assert part in told


def test_a_slug_is_used_once_in_a_book(tmp_path: Path) -> None:
    book = copy_book(tmp_path)
    (book.root / "exercises/04-more").mkdir()
    (book.root / "exercises/04-more/chapter.md").write_text('+++\nletter = "D"\ntitle = "More"\n+++\n')
    (book.root / "exercises/04-more/01-ring.md").write_text(
        '+++\ntitle = "T"\nsummary = "S"\nruns = ["ddp"]\nminutes = 1\n+++\n'
    )
    [problem] = found(book)
    assert "the slug 'ring' is also that of 03-data-parallel/09-ring.md" in str(problem)
    assert "04-more/01-ring.md:1: " in str(problem)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("ring.md", "is not a number and lower-case words"),
        ("11-Ring.md", "is not a number and lower-case words"),
        ("11-runs.md", "the address 'runs' belongs to the site itself"),
    ],
)
def test_the_name_of_a_file_must_make_an_address(name: str, says: str, tmp_path: Path) -> None:
    book = copy_book(tmp_path)
    ring = book.root / "exercises/03-data-parallel/09-ring.md"
    (ring.parent / name).write_bytes(ring.read_bytes())
    assert any(says in str(p) and p.path and p.path.name == name for p in found(book))


def test_a_chapter_needs_its_file(tmp_path: Path) -> None:
    book = copy_book(tmp_path)
    (book.root / "exercises/03-data-parallel/chapter.md").unlink()
    [problem] = found(book)
    assert "a chapter needs a chapter.md" in str(problem)


def test_a_run_that_cannot_be_reconstructed_is_told_of_once(tmp_path: Path) -> None:
    def broken(run: str, mode: str) -> Any:
        raise UserError(
            "the SHA-256 differs", path="measured_runs/ddp/rank-000.json.gz", remedy="Restore it."
        )

    book = copy_book(tmp_path)
    problems = examine(book, read_manifests(book.runs), broken, VOCABULARY).problems
    assert [str(p) for p in problems] == [
        "measured_runs/ddp/rank-000.json.gz: the SHA-256 differs. Restore it."
    ]


def test_a_manifest_that_cannot_be_read_is_the_only_problem(tmp_path: Path) -> None:
    book = copy_book(tmp_path)
    manifest = book.runs / "ddp/run.toml"
    manifest.write_text(manifest.read_text("utf-8").replace("scheme =", "shceme ="), "utf-8")
    [problem] = found(book)
    assert "unknown key 'shceme'. Did you mean 'scheme'?" in str(problem)


def broken_book(tmp_path: Path, old: str, new: str) -> Book:
    book = copy_book(tmp_path)
    path = book.root / EXERCISE
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), "utf-8")
    return book


def test_a_file_that_cannot_be_read_is_still_there_for_the_others(tmp_path: Path) -> None:
    """One mistake is one line: who requires or links the file is not wrong."""
    book = copy_book(tmp_path)
    (book.root / "exercises/03-data-parallel/09-ring.md").write_bytes(b"\xff")
    [problem] = found(book)
    assert "09-ring.md:1: not UTF-8" in str(problem)


def test_a_first_run_without_steps_is_one_problem(tmp_path: Path) -> None:
    [problem] = found(broken_book(tmp_path, 'runs = ["ddp"', 'runs = ["link", "ddp"'))
    assert f"{EXERCISE}:4: the first run, 'link', is a calibration" in str(problem)


@pytest.mark.parametrize("name", ["main", "sources", "on-a-cluster", "figure-1", "exposed-share-said"])
def test_a_question_takes_no_id_of_its_page(name: str, tmp_path: Path) -> None:
    book = broken_book(tmp_path, 'id = "exposed-share"', f'id = "{name}"')
    assert any(f"the id '{name}' is one that the page has" in str(p) for p in found(book))


def test_a_chapter_is_named_once(tmp_path: Path) -> None:
    book = copy_book(tmp_path)
    other = book.exercises / "07-data-parallel"
    other.mkdir()
    (other / "chapter.md").write_text('+++\nletter = "D"\ntitle = "More"\n+++\n')
    (other / "11-last.md").write_text('+++\ntitle="T"\nsummary="S"\nruns=["ddp"]\nminutes=1\n+++\n')
    assert any("the slug 'data-parallel' is also that of" in str(p) for p in found(book))


@pytest.mark.parametrize(("key", "named"), [("calibration", "link"), ("partner", "single")])
def test_a_run_names_runs_that_are_there(key: str, named: str, tmp_path: Path) -> None:
    book = copy_book(tmp_path)
    path = book.runs / "ddp/run.toml"
    text = path.read_text("utf-8")
    spoilt = text.replace(f'{key} = "{named}"', f'{key} = "{named}x"')
    if spoilt == text:
        spoilt = text.replace('kind = "', f'{key} = "{named}x"\nkind = "', 1)
    path.write_text(spoilt, "utf-8")
    [problem] = found(book)
    assert f"'{key}' names an unknown run '{named}x'. Did you mean '{named}'?" in str(problem)
    assert problem.line is not None
