"""An exercise: one Markdown file of TOML front matter, prose, and blocks that become elements.

    +++
    title = "…"
    +++
    Prose.

    ```toml timeline
    run = "ddp"
    ```

A fenced block whose info string is `toml` and a name is a figure or a question; any other block is
part of the prose. Everything wrong with a file is found in one pass, each with its line.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

from generator.book import Book
from generator.errors import UserError, did_you_mean
from generator.lessons.figures import FIGURE_ID, TimelineFigure, parse_timeline, placed
from generator.lessons.kinds.choice import Choice, ChoiceQuestion
from generator.lessons.kinds.common import SLUG, Misconception
from generator.lessons.kinds.number import NumberQuestion
from generator.lessons.questions import Question, parse_question
from generator.lessons.tables import Table, read_toml
from generator.texts import read_text

__all__ = [
    "Chapter",
    "Choice",
    "ChoiceQuestion",
    "Exercise",
    "Misconception",
    "NumberQuestion",
    "Prose",
    "TimelineFigure",
    "exercise_files",
    "find_exercises",
    "parse_exercise",
]

CHAPTER_FILE = "chapter.md"
BLOCKS = ("timeline", "question")
#: Blocks and keys of the format that this version cannot turn into elements yet.
PLANNED_BLOCKS = ("compare", "whatif", "chart", "formula")
PLANNED_KEYS = ("for_each",)
#: First parts of addresses that belong to the site itself.
RESERVED = frozenset({"runs", "definitions", "validation", "assets", "404", "index"})

#: Ids that an exercise's page has of itself, and how those begin that are made for figures.
PAGE_IDS = frozenset({"main", "sources", "on-a-cluster"})
_SAID_ID = "-said"

_FENCE = "+++"
_NUMBERED = re.compile(r"(\d+)-(.+)")


@dataclass(frozen=True, slots=True)
class Prose:
    markdown: str
    line: int


Block = Prose | TimelineFigure | Question


@dataclass(frozen=True, slots=True)
class Chapter:
    slug: str
    letter: str
    title: str
    #: Markdown.
    intro: str
    path: Path
    number: int = 0
    #: Where the intro begins in the file.
    line: int = field(default=1, compare=False)


@dataclass(frozen=True, slots=True)
class Exercise:
    slug: str
    number: int
    chapter: Chapter
    title: str
    summary: str
    #: Ids of the runs that the page uses; expressions that name none mean the first.
    runs: tuple[str, ...]
    minutes: int
    #: Slugs of exercises to do before.
    requires: tuple[str, ...]
    #: One line of Markdown: how this looks on a real GPU cluster.
    cluster: str
    #: Markdown, one source each.
    sources: tuple[str, ...]
    blocks: tuple[Block, ...]
    path: Path
    #: Where each key's value stands in the file.
    lines: dict[str, int] = field(default_factory=dict, compare=False)

    @property
    def questions(self) -> tuple[Question, ...]:
        return tuple(b for b in self.blocks if isinstance(b, Question))

    @property
    def figures(self) -> tuple[TimelineFigure, ...]:
        return tuple(b for b in self.blocks if isinstance(b, TimelineFigure))


def find_exercises(book: Book) -> tuple[tuple[Exercise, ...], tuple[UserError, ...]]:
    """The exercises of a book that could be read, and what is wrong with them and the others."""
    problems: list[UserError] = []
    found: list[Exercise] = []
    for folder in _chapter_folders(book):
        chapter = parse_chapter(folder, problems)
        for path in _files_of(folder):
            if chapter is not None:
                exercise = parse_exercise(path, chapter, problems)
                if exercise is not None:
                    found.append(exercise)
    found.sort(key=lambda e: (e.chapter.number, e.chapter.slug, e.number, e.slug))
    problems += _repeated_slugs({e.path: e.slug for e in found})
    problems += _repeated_slugs({e.chapter.path.parent: e.chapter.slug for e in found})
    return tuple(found), tuple(problems)


def exercise_files(book: Book) -> Iterator[tuple[Path, str, str]]:
    """Files of chapters and exercises, readable or not: path, slug of the chapter, slug of the exercise.

    A chapter's own file has an empty slug. Names that make no address are left out.
    """
    for folder in _chapter_folders(book):
        chapter = _NUMBERED.fullmatch(folder.name)
        for path in (folder / CHAPTER_FILE, *_files_of(folder)):
            named = _NUMBERED.fullmatch(path.stem)
            if chapter and (named or path.name == CHAPTER_FILE):
                yield path, chapter[2], named[2] if named else ""


def _chapter_folders(book: Book) -> list[Path]:
    folders = sorted(book.exercises.iterdir()) if book.exercises.is_dir() else []
    return [f for f in folders if f.is_dir() and not f.name.startswith(".")]


def _files_of(folder: Path) -> list[Path]:
    """The exercises of a chapter."""
    return [p for p in sorted(folder.glob("[!.]*.md")) if p.name != CHAPTER_FILE]


def _repeated_slugs(slugs: Mapping[Path, str]) -> Iterator[UserError]:
    first: dict[str, Path] = {}
    for path, slug in slugs.items():
        other = first.setdefault(slug, path)
        if other != path:
            yield UserError(
                f"the slug '{slug}' is also that of {other.parent.name}/{other.name}",
                path=path,
                line=1 if path.suffix else None,
                remedy="Rename one of them.",
            )


def parse_chapter(folder: Path, problems: list[UserError]) -> Chapter | None:
    """The chapter of a folder, None where it cannot be read (problems are added)."""
    path = folder / CHAPTER_FILE
    named = _name(folder, folder.name, problems, "02-data-parallel")
    if not os.path.lexists(path):
        problems.append(
            UserError(
                f"a chapter needs a {CHAPTER_FILE}",
                path=folder,
                remedy="Add one with letter and title between +++ lines.",
            )
        )
        return None
    read = _read(path, problems)
    if named is None or read is None:
        return None
    table, body, line = read
    blank = len(body) - len(body.lstrip())
    chapter = Chapter(
        slug=named[1],
        letter=table.text("letter", required="chapters are named by it"),
        title=table.text("title", required="a chapter has one"),
        intro=body.strip(),
        path=path,
        number=named[0],
        line=line + body[:blank].count("\n"),
    )
    table.finish()
    return chapter


def parse_exercise(path: Path, chapter: Chapter, problems: list[UserError]) -> Exercise | None:
    """The exercise in a file; None where there is none to speak of. Problems are added to the list."""
    named = _name(path, path.stem, problems, "10-exposed-communication.md")
    read = _read(path, problems)
    if named is None or read is None:
        return None
    number, slug = named
    if slug in RESERVED:
        problems.append(
            UserError(
                f"the address '{slug}' belongs to the site itself", path=path, remedy="Rename the file."
            )
        )
    table, body, body_line = read
    runs = table.texts("runs", required="it names the runs that the page uses")
    exercise = Exercise(
        slug=slug,
        number=number,
        chapter=chapter,
        title=table.text("title", required="a page has one"),
        summary=table.text("summary", required="lists of exercises show it"),
        runs=runs,
        minutes=table.whole("minutes", required="readers plan with it"),
        requires=table.texts("requires"),
        cluster=table.text("cluster"),
        sources=table.texts("sources"),
        blocks=tuple(placed(list(_blocks(body, body_line, path, runs, problems)))),
        path=path,
        lines={
            k: table.line_of(k)
            for k in ("title", "summary", "runs", "minutes", "requires", "cluster", "sources")
        },
    )
    table.finish(later=PLANNED_KEYS)
    problems += _repeated_ids(exercise)
    return exercise


def _repeated_ids(exercise: Exercise) -> Iterator[UserError]:
    first: dict[str, tuple[str, int]] = {}
    for block in exercise.blocks:
        if isinstance(block, Prose):
            continue
        what = "figure" if isinstance(block, TimelineFigure) else "question"
        here = partial(UserError, path=exercise.path, line=block.line)
        taken = what == "question" and block.id.startswith(FIGURE_ID)
        if taken or block.id in PAGE_IDS or block.id.endswith(_SAID_ID):
            yield here(f"the id '{block.id}' is one that the page has already", remedy="Choose another.")
        other, line = first.setdefault(block.id, (what, block.line))
        if block.id and line != block.line:
            yield here(
                f"the id '{block.id}' is also that of the {other} on line {line}",
                remedy="Give each question and figure of a page its own.",
            )
    views: dict[str, int] = {}
    for view in (v for f in exercise.figures for v in f.views):
        if view.name and views.setdefault(view.name, view.line) != view.line:
            yield UserError(
                f"the name '{view.name}' is also that of the view on line {views[view.name]}",
                path=exercise.path,
                line=view.line,
                remedy="Give each view of a page its own.",
            )


def _name(path: Path, name: str, problems: list[UserError], example: str) -> tuple[int, str] | None:
    """Number and slug of a name such as 10-ddp-overlap."""
    found = _NUMBERED.fullmatch(name)
    if found is None or not SLUG.fullmatch(found[2]):
        problems.append(
            UserError(
                f"the name '{path.name}' is not a number and lower-case words",
                path=path,
                remedy=f"Rename it, for example to {example}.",
            )
        )
        return None
    return int(found[1]), found[2]


def _read(path: Path, problems: list[UserError]) -> tuple[Table, str, int] | None:
    """Front matter, body, and the line on which the body begins."""
    try:
        text = read_text(path)
    except UserError as error:
        problems.append(error)
        return None
    lines = text.splitlines()
    if not lines or lines[0].strip() != _FENCE:
        problems.append(
            UserError(
                "the file does not begin with +++",
                path=path,
                line=1,
                remedy="Put the keys (title, summary, …) between two +++ lines.",
            )
        )
        return None
    end = next((i for i, line in enumerate(lines[1:], 1) if line.strip() == _FENCE), None)
    if end is None:
        problems.append(
            UserError(
                "the keys are not closed", path=path, line=1, remedy="Put a +++ line behind the last key."
            )
        )
        return None
    table = read_toml("\n".join(lines[1:end]), path, 2, 1, problems)
    return None if table is None else (table, "\n".join(lines[end + 1 :]), end + 2)


def _blocks(
    body: str, first_line: int, path: Path, runs: tuple[str, ...], problems: list[UserError]
) -> Iterator[Block]:
    lines = body.splitlines()
    begin = 0
    for token in MarkdownIt("commonmark").parse(body):
        if token.type != "fence" or token.map is None:
            continue
        words = token.info.split()
        if len(words) < 2 or words[0] != "toml":
            continue
        start, end = token.map
        line = first_line + start
        if token.level:
            problems.append(
                UserError(
                    "a block stands inside a list or a quotation",
                    path=path,
                    line=line,
                    remedy="Begin its fence at the left margin, outside of them.",
                )
            )
            continue
        yield from _prose(lines, begin, start, first_line)
        begin = end
        if not _closed(lines[end - 1], token) or end - start < 2:
            problems.append(
                UserError(
                    "the block is not closed",
                    path=path,
                    line=line,
                    remedy=f"Put {token.markup} behind its last line.",
                )
            )
            continue
        block = _block(words[1:], token.content, line, path, runs, problems)
        if block is not None:
            yield block
    yield from _prose(lines, begin, len(lines), first_line)


def _closed(last: str, token: Token) -> bool:
    stripped = last.strip()
    return len(stripped) >= len(token.markup) and set(stripped) == {token.markup[0]}


def _prose(lines: list[str], begin: int, end: int, first_line: int) -> Iterator[Prose]:
    while begin < end and not lines[begin].strip():
        begin += 1
    text = "\n".join(lines[begin:end]).rstrip()
    if text:
        yield Prose(text, first_line + begin)


def _block(
    words: list[str],
    content: str,
    line: int,
    path: Path,
    runs: tuple[str, ...],
    problems: list[UserError],
) -> TimelineFigure | Question | None:
    name = " ".join(words)
    if name not in BLOCKS:
        state = "is not known yet" if name in PLANNED_BLOCKS else "is not known"
        remedy = (
            f"Known: {', '.join(sorted(BLOCKS))}." if name in PLANNED_BLOCKS else did_you_mean(name, BLOCKS)
        )
        problems.append(UserError(f"the block 'toml {name}' {state}", path=path, line=line, remedy=remedy))
        return None
    table = read_toml(content, path, line + 1, line, problems)
    if table is None:
        return None
    return parse_question(table) if name == "question" else parse_timeline(table, runs)
