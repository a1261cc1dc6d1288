"""`check` names what is wrong with figures that point, and with questions answered by pointing."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from generator.book import Book
from generator.errors import UserError
from generator.lessons.check import examine
from generator.runs.reader import read_manifests
from tests.lessons.small import DATA, VOCABULARY, copy_book, timelines

SAMPLE = (DATA / "pointing.md").read_text("utf-8")
MISTAKES = tomllib.loads((DATA / "pointing.toml").read_text("utf-8"))["mistake"]
FILE = "exercises/03-data-parallel/11-pointing.md"


def problems(folder: Path, text: str) -> tuple[UserError, ...]:
    book: Book = copy_book(folder)
    (book.root / FILE).write_text(text, "utf-8")
    return examine(book, read_manifests(book.runs), timelines, VOCABULARY).problems


def test_the_sample_is_sound(tmp_path: Path) -> None:
    assert [str(p) for p in problems(tmp_path, SAMPLE)] == []


@pytest.mark.parametrize("mistake", MISTAKES, ids=[m["title"] for m in MISTAKES])
def test_a_mistake_is_named_with_its_line(mistake: dict[str, Any], tmp_path: Path) -> None:
    assert SAMPLE.count(mistake["replace"]) >= 1
    spoilt = SAMPLE.replace(mistake["replace"], mistake["by"], 1)
    lines = [i for i, line in enumerate(spoilt.splitlines(), 1) if mistake["at"] in line]
    line = lines[mistake.get("nth", 1) - 1]

    found = problems(tmp_path, spoilt)

    told = [str(p) for p in found]
    assert any(f"{FILE}:{line}: " in t and mistake["says"] in t for t in told), told
    assert all(p.remedy for p in found)
    assert all("\n" not in t for t in told)


def test_a_pick_needs_a_figure_above_it(tmp_path: Path) -> None:
    begin, end = SAMPLE.index("```toml timeline"), SAMPLE.index("```toml question")
    text = SAMPLE[:begin] + SAMPLE[end:].replace('figure = "whole"\n', "")
    told = [str(p) for p in problems(tmp_path, text.replace("[the end](#show:end)", "the end"))]
    assert sum("no figure stands above the question" in t for t in told) == 3


def test_one_mistake_is_told_once(tmp_path: Path) -> None:
    for old, new in (('what = "event"', 'what = "evnt"'), ('answer = "rank == 0"', 'answer = "layer == 0"')):
        found = problems(tmp_path / new.split()[0], SAMPLE.replace(old, new))
        assert len(found) == 1, [str(p) for p in found]
