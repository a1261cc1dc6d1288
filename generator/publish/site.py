"""A book to a site: the pages as data, then HTML, then files.

Nothing is written before everything is rendered and every link in it is known to lead somewhere. The
same book gives the same bytes.
"""

from __future__ import annotations

import html
import posixpath
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import quote, unquote

from jinja2 import Environment, FileSystemLoader, StrictUndefined, TemplateError, TemplateSyntaxError

from generator.book import Book
from generator.errors import UserError
from generator.lessons.answers import ResolvedExercise, resolve
from generator.lessons.exercise import Exercise, read_book_exercises
from generator.lessons.scope import Scope
from generator.lessons.vocabulary import default_vocabulary
from generator.publish.assets import Assets, assets
from generator.publish.homepage import home_page
from generator.publish.library import Library
from generator.publish.model import Link, NotFoundData, Page, Site
from generator.publish.output import check_target, write
from generator.publish.pages import Context, exercise_page, link_to
from generator.publish.reference import definitions
from generator.publish.runpages import run_pages
from generator.publish.urls import HOME, NOT_FOUND, Links, exercise_url, relative, run_file_url, run_url
from generator.runs.manifest import FILE_NAME
from generator.timeline.metrics import METRICS

POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:"
Progress = Callable[[str], None]
_LINK = re.compile(r'\s(?:href|src)="([^"]*)"')
_ID = re.compile(r'\sid="([^"]*)"')


def build(book: Book, out: Path, progress: Progress) -> None:
    """Write the book's site to `out`. Raises UserError or Problems, and then leaves `out` as it was."""
    check_target(book, out)
    site = model(book, progress)
    files = render(book, site)
    check_links(files)
    write(files, out)
    progress(f"{len(site.pages)} pages")


def model(book: Book, progress: Progress) -> Site:
    """Everything the site will show, as data."""
    library = Library(book, progress)
    exercises = _exercises(book, library)
    links = _links(book, library, [e.exercise for e in exercises])
    context = Context(library=library, links=links, exercises=exercises, root=str(book.root))
    used_in: dict[str, list[Link]] = {}
    for resolved in exercises:
        for run in resolved.exercise.runs:
            used_in.setdefault(run, []).append(link_to(resolved.exercise))
    pages = (
        home_page(book, library, exercises, links),
        *(exercise_page(e, context) for e in exercises),
        *run_pages(library, used_in),
        definitions(),
        Page(NOT_FOUND, "404.html", "Nothing here", "This page does not exist.", NotFoundData()),
    )
    files = [
        (run_file_url(m.id, name), library.folder(m.id) / name)
        for m in library.manifests.values()
        for name in (FILE_NAME, *(r.file for r in m.ranks))
    ]
    url = book.url if not book.url or book.url.endswith("/") else f"{book.url}/"
    return Site(book.title, book.description, url, book.source, pages, tuple(files))


def render(book: Book, site: Site) -> dict[str, bytes | Path]:
    """All files of the site by address."""
    environment = Environment(
        loader=FileSystemLoader(book.templates), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    made = assets(book.templates)
    files: dict[str, bytes | Path] = dict(made.files)
    files.update(site.files)
    for page in site.pages:
        files[page.url] = _render(environment, site, page, made).encode()
    if site.url:
        files["sitemap.xml"] = _sitemap(site)
    return files


def _render(environment: Environment, site: Site, page: Page, made: Assets) -> str:
    def to(target: str) -> str:
        # A server shows the page "not found" at any address, where no relative link would hold.
        return (
            site.url + quote(target, safe="/#")
            if page.url == NOT_FOUND and site.url
            else relative(page.url, target)
        )

    try:
        return environment.get_template(page.template).render(
            site=site, page=page, data=page.data, to=to, asset=lambda name: to(made.urls[name]),
            canonical=quote(_canonical(page.url)), policy=POLICY,
        )  # fmt: skip
    except TemplateSyntaxError as error:
        raise UserError(f"not a valid template: {error.message}", path=error.filename, line=error.lineno,
                        remedy="Mend it.") from None  # fmt: skip
    except TemplateError as error:
        raise UserError(f"the template fails for {page.url}: {error}", path=page.template,
                        remedy="Mend it, or remove the book's own templates.") from None  # fmt: skip


def check_links(files: Mapping[str, bytes | Path]) -> None:
    """Every link within the site leads to a file, and its fragment to an element. Raises UserError."""
    texts = {url: content.decode() for url, content in files.items()
             if url.endswith(".html") and isinstance(content, bytes)}  # fmt: skip
    ids = {url: frozenset(map(html.unescape, _ID.findall(text))) for url, text in texts.items()}
    for url, text in texts.items():
        for href in dict.fromkeys(map(html.unescape, _LINK.findall(text))):
            if re.match(r"[a-z]+:", href):
                continue
            path, _, fragment = href.partition("#")
            path = unquote(path)
            target = posixpath.normpath(posixpath.join(posixpath.dirname(url), path)) if path else url
            if target not in files or (fragment and fragment not in ids.get(target, ())):
                raise UserError(
                    f"the link '{href}' leads nowhere", path=url, remedy="Mend the text it stands in."
                )


def _canonical(url: str) -> str:
    return url.removesuffix("index.html")


def _sitemap(site: Site) -> bytes:
    lines = [
        f"<url><loc>{html.escape(site.url + quote(_canonical(page.url)))}</loc></url>"
        for page in sorted(site.pages, key=lambda p: p.url)
        if page.url != NOT_FOUND
    ]
    head = (
        '<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
    )
    return "\n".join([head, *lines, "</urlset>\n"]).encode()


def _exercises(book: Book, library: Library) -> tuple[ResolvedExercise, ...]:
    """The book's exercises in reading order, with every answer computed."""
    found = read_book_exercises(book)
    return tuple(resolve(exercise, _scope(exercise, library)) for exercise in found)


def _scope(exercise: Exercise, library: Library) -> Scope:
    return Scope(
        default_run=exercise.runs[0] if exercise.runs else "",
        manifests=library.manifests,
        timelines=library.timeline,
        vocabulary=default_vocabulary(),
    )


def _links(book: Book, library: Library, exercises: list[Exercise]) -> Links:
    def place(path: Path) -> str:
        return path.relative_to(book.root).as_posix()

    files = {place(e.path): exercise_url(e.slug) for e in exercises}
    files |= {place(e.chapter.path): f"{HOME}#{e.chapter.slug}" for e in exercises}
    for run_id in library.manifests:
        folder = place(library.folder(run_id))
        files |= {folder: run_url(run_id), f"{folder}/{FILE_NAME}": run_url(run_id)}
    return Links(
        files=files,
        exercises=frozenset(e.slug for e in exercises),
        runs=frozenset(library.manifests),
        metrics=frozenset(METRICS),
    )
