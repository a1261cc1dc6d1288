"""Relative links in an author's Markdown, and whether what they lead to exists.

A path is written as it works in the repository: another exercise's file, a chapter's file, a run's
folder or manifest, relative to the file that it is written in. `exercise:slug`, `run:id` and
`metric:name` are the short forms; `#id` is a question or heading of the same page.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

from generator.book import Book
from generator.errors import UserError, did_you_mean
from generator.lessons.exercise import Exercise
from generator.runs.manifest import FILE_NAME

_WEB = {"https", "http", "mailto"}


@dataclass(frozen=True, slots=True)
class Targets:
    """What a book's links may lead to."""

    #: Paths from the book's root, posix.
    files: frozenset[str]
    #: Names by the short form that they are linked with.
    names: Mapping[str, frozenset[str]]
    root: Path


def targets(
    book: Book, exercises: tuple[Exercise, ...], runs: frozenset[str], metrics: frozenset[str]
) -> Targets:
    """What the links of this book may lead to."""
    written = {e.path for e in exercises} | {e.chapter.path for e in exercises}
    files = {p.resolve().relative_to(book.root.resolve()).as_posix() for p in written}
    folder = book.runs.relative_to(book.root).as_posix()
    files |= {f"{folder}/{r}" for r in runs} | {f"{folder}/{r}/{FILE_NAME}" for r in runs}
    names = {"exercise": frozenset(e.slug for e in exercises), "run": runs, "metric": metrics}
    return Targets(frozenset(files), names, book.root)


def check_links(markdown: str, line: int, path: Path, known: Targets) -> Iterator[UserError]:
    """Complain of every link in a text that leads nowhere. `line` is where the text begins."""
    for token in MarkdownIt("commonmark").parse(markdown):
        begin, end = token.map or (0, 1)
        for child in _walk(token.children or []):
            href = str(child.attrGet("href") or child.attrGet("src") or "")
            if child.type not in ("link_open", "image"):
                continue
            if child.type == "image":
                yield UserError(
                    f"an image ('{href}')",
                    path=path,
                    line=line + begin,
                    remedy="Show a run in a timeline: every figure of a book is a recorded run.",
                )
                continue
            rows = markdown.splitlines()[begin:end]
            row = next((i for i, text in enumerate(rows) if href and href in text), 0)
            yield from _check(href, line + begin + row, path, known)


def _check(href: str, line: int, path: Path, known: Targets) -> Iterator[UserError]:
    scheme, colon, name = href.partition(":")
    if href.startswith("#") or scheme in _WEB:
        return
    if colon and scheme in known.names:
        name = name.partition("#")[0]
        if name not in known.names[scheme]:
            yield UserError(
                f"the link '{href}' leads to no {scheme}",
                path=path,
                line=line,
                remedy=did_you_mean(name, known.names[scheme]),
            )
        return
    here = path.resolve().relative_to(known.root.resolve()).parent.as_posix()
    target = posixpath.normpath(posixpath.join(here, href.partition("#")[0]))
    if colon or href.startswith("/") or target not in known.files:
        yield UserError(
            f"the link '{href}' leads nowhere",
            path=path,
            line=line,
            remedy="Link an exercise's file, a run's folder, or use https.",
        )


def _walk(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from _walk(token.children or [])
