"""The small book and its site, built once for all tests of this folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from generator.book import Book
from generator.publish.site import build
from tests.publish.small import make_book


@pytest.fixture(scope="session")
def book(tmp_path_factory: pytest.TempPathFactory) -> Book:
    return make_book(tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="session")
def site(book: Book) -> Path:
    build(book, book.site, lambda _line: None)
    return book.site
