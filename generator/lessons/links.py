"""What a link in an author's Markdown leads to.

A path is written as it works in the repository: another exercise's file, a chapter's file, a run's
folder or manifest, relative to the file that it is written in. `exercise:slug`, `run:id` and
`metric:name` are the short forms; `#id` is a question or heading of the same page.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.token import Token

from generator.book import Book
from generator.errors import UserError, did_you_mean
from generator.lessons.exercise import exercise_files
from generator.runs.manifest import FILE_NAME

_WEB = {"https", "http", "mailto"}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a link leads: to an exercise (by slug), chapter, run (by id) or metric of the book."""

    #: "exercise", "chapter", "run" or "metric"; "page" is the page itself, "web" an address as written.
    kind: str
    name: str
    #: What follows the #, without it; may be empty.
    fragment: str = ""


@dataclass(frozen=True, slots=True)
class Targets:
    """What a book's links may lead to."""

    #: By path from the book's root (posix).
    files: Mapping[str, Place]
    #: Names by the short form that they are linked with.
    names: Mapping[str, frozenset[str]]
    root: Path

    def follow(self, href: str, *, path: Path, line: int | None) -> Place:
        """Where `href` leads that stands in the file `path`. Raises UserError where that is nowhere."""
        scheme, colon, rest = href.partition(":")
        if scheme.lower() in _WEB:
            return Place("web", href)
        body, _, fragment = (rest if colon and scheme in self.names else href).partition("#")
        name = unquote(body)
        if not body:
            return Place("page", "", fragment)
        if colon and scheme in self.names:
            if name not in self.names[scheme]:
                raise UserError(
                    f"the link '{href}' leads to no {scheme}",
                    path=path,
                    line=line,
                    remedy=did_you_mean(name, self.names[scheme]),
                )
            return Place(scheme, name, fragment)
        here = path.relative_to(self.root).parent.as_posix()
        found = self.files.get(posixpath.normpath(posixpath.join(here, name)))
        if found is None or colon:
            raise UserError(
                f"the link '{href}' leads nowhere",
                path=path,
                line=line,
                remedy="Link an exercise's file, a run's folder, or use https.",
            )
        return Place(found.kind, found.name, fragment)


def targets(book: Book, runs: frozenset[str], metrics: frozenset[str]) -> Targets:
    """What the links of this book may lead to. A file that cannot be read is there all the same."""
    files: dict[str, Place] = {}
    for path, chapter, slug in exercise_files(book):
        place = Place("exercise", slug) if slug else Place("chapter", chapter)
        files[path.relative_to(book.root).as_posix()] = place
    folder = book.runs.relative_to(book.root).as_posix()
    for run in runs:
        files[f"{folder}/{run}"] = files[f"{folder}/{run}/{FILE_NAME}"] = Place("run", run)
    exercises = frozenset(p.name for p in files.values() if p.kind == "exercise")
    return Targets(files, {"exercise": exercises, "run": runs, "metric": metrics}, book.root)


def check_links(markdown: str, line: int, path: Path, known: Targets) -> Iterator[UserError]:
    """Complain of every link in a text that leads nowhere. `line` is where the text begins."""
    for token in MarkdownIt("commonmark").parse(markdown):
        begin, end = token.map or (0, 1)
        for child in _walk(token.children or []):
            href = str(child.attrGet("href") or child.attrGet("src") or "")
            if child.type == "image":
                yield UserError(
                    f"an image ('{href}')",
                    path=path,
                    line=line + begin,
                    remedy="Show a run in a timeline: every figure of a book is a recorded run.",
                )
            elif child.type == "link_open":
                rows = markdown.splitlines()[begin:end]
                row = next((i for i, text in enumerate(rows) if href and href in text), 0)
                try:
                    known.follow(href, path=path, line=line + begin + row)
                except UserError as error:
                    yield error


def _walk(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from _walk(token.children or [])
