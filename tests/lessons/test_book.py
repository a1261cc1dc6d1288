"""The book of this repository, with its real runs."""

from __future__ import annotations

from pathlib import Path

from generator.book import read_book
from generator.lessons.check import check
from generator.lessons.scope import BookTimelines


def test_nothing_in_our_own_exercises_has_to_be_mended(repository: Path) -> None:
    assert [str(p) for p in check(read_book(repository))] == []


def test_a_timeline_is_made_once_for_each_run_and_mode(repository: Path) -> None:
    timelines = BookTimelines(read_book(repository).runs)
    first = timelines("single", "isolated")
    assert timelines("single", "isolated") is first
    assert timelines("single", "recorded").mode == "recorded"
