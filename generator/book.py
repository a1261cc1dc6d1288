"""A book: the folder that exercises, runs, templates and output live in.

Any folder with a book.toml is one; this repository is itself a book. What a book does not bring
(templates) comes from the package.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from generator.errors import UserError, did_you_mean, line_of
from generator.texts import is_folder, parse_toml, read_text

FILE_NAME = "book.toml"
_ADDRESSES = ("url", "source")
_KEYS = {"title", "description", "headline", "lead", "licence", "compare", *_ADDRESSES}
_WEB = re.compile(r"https?://[^\s\"'<>]+")


@dataclass(frozen=True, slots=True)
class Book:
    root: Path
    title: str
    description: str = ""
    #: Public address of the site, with a slash at the end; empty when it is not published.
    url: str = ""
    #: Address of the book's source, linked from every page; may be empty.
    source: str = ""
    #: What the first page is headed by and leads in with, and the terms on which the book is given;
    #: the title and the description where they are empty.
    headline: str = ""
    lead: str = ""
    licence: str = ""
    #: Ids of the runs that the first page compares, in this order, the reference first; where it is
    #: empty, a run for each scheme that an exercise is about.
    compare: tuple[str, ...] = ()

    @property
    def exercises(self) -> Path:
        return self.root / "exercises"

    @property
    def runs(self) -> Path:
        return self.root / "measured_runs"

    @property
    def site(self) -> Path:
        return self.root / "site"

    @property
    def cache(self) -> Path:
        return self.root / ".shardbook"

    @property
    def templates(self) -> tuple[Path, ...]:
        """Where templates are looked up, first match wins: the book's, then the package's."""
        package = Path(__file__).parent
        ours = package / "templates" if (package / "templates").is_dir() else package.parent / "templates"
        own = self.root / "templates"
        return (own, ours) if own.is_dir() and own.resolve() != ours.resolve() else (ours,)


def find_book(start: Path) -> Book:
    """The book at `start` or in the nearest folder above it."""
    for folder in (start.resolve(), *start.resolve().parents):
        if (folder / FILE_NAME).is_file():
            return read_book(folder)
    raise UserError(
        f"no {FILE_NAME} here or in any folder above",
        path=start,
        remedy="Run the command inside a book, or give it with --book.",
    )


def read_book(root: Path) -> Book:
    path = root / FILE_NAME
    text = read_text(path)
    data = parse_toml(text, path)
    for key, value in data.items():
        if key not in _KEYS:
            raise UserError(
                f"unknown key '{key}'", path=path, line=line_of(text, key), remedy=did_you_mean(key, _KEYS)
            )
        if key == "compare":
            if not isinstance(value, list) or not all(isinstance(run, str) for run in value):
                raise UserError(
                    "'compare' must be a list of run ids",
                    path=path,
                    line=line_of(text, key),
                    remedy='Write it like ["single", "ddp"].',
                )
        elif not isinstance(value, str):
            raise UserError(
                f"'{key}' must be text", path=path, line=line_of(text, key), remedy="Put it in quotes."
            )
        if key in _ADDRESSES and value and not _WEB.fullmatch(value):
            raise UserError(
                f"'{key}' is not an address on the web",
                path=path,
                line=line_of(text, key),
                remedy="Begin it with https://.",
            )
    if not data.get("title", "").strip():
        raise UserError("a book needs a title", path=path, remedy='Add: title = "…"')
    book = Book(root=root, **(data | {"compare": tuple(data.get("compare", ()))}))
    for folder in (book.exercises, book.runs):
        is_folder(folder)
    return book
