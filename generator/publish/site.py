"""A book to a site: the pages as data, then HTML, then files.

Nothing is written before everything is rendered and every link in it is known to lead somewhere. The
same book gives the same bytes.
"""

from __future__ import annotations

import html
import posixpath
import re
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import quote, unquote

from jinja2 import Environment, FileSystemLoader, StrictUndefined, TemplateSyntaxError

from generator.book import Book
from generator.errors import Problems, UserError
from generator.lessons.answers import ResolvedExercise
from generator.lessons.check import examine
from generator.publish.assets import Assets, assets
from generator.publish.homepage import home_page
from generator.publish.library import Library
from generator.publish.model import Link, NotFoundData, Page, Site
from generator.publish.output import check_target, write
from generator.publish.pages import Context, Links, Origin, exercise_page, link_to
from generator.publish.reference import definitions
from generator.publish.runpages import run_pages
from generator.publish.urls import NOT_FOUND, relative, run_file_url
from generator.publish.validation.page import validation_page
from generator.runs.manifest import FILE_NAME
from generator.texts import HIDDEN

POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:"
Progress = Callable[[str], None]
_LINK = re.compile(r'\s(?:href|src)="([^"]*)"')
_ID = re.compile(r'\sid="([^"]*)"')
_NAMEABLE = re.compile(r"[A-Za-z0-9_-]+")


def build(book: Book, out: Path, progress: Progress) -> None:
    """Write the book's site to `out`. Raises UserError or Problems, and then leaves `out` as it was."""
    check_target(book, out)
    site, files = make(book, progress)
    write(files, out)
    progress(f"{len(site.pages)} pages")


def make(book: Book, progress: Progress) -> tuple[Site, dict[str, bytes | Path]]:
    """The site, and its files by address. Raises UserError or Problems for all that is not in order."""
    library = Library(book, progress)
    examined = examine(book, library.runs, library.timeline)
    if examined.problems:
        raise Problems(examined.problems)
    links = Links(examined.links)
    site = model(book, library, examined.exercises, links)
    files = render(book, site)
    check_pages(files, links.origins)
    return site, files


def model(book: Book, library: Library, exercises: tuple[ResolvedExercise, ...], links: Links) -> Site:
    """Everything the site will show, as data."""
    context = Context(library=library, links=links, exercises=exercises)
    used_in: dict[str, list[Link]] = {}
    for resolved in exercises:
        for run in resolved.exercise.runs:
            used_in.setdefault(run, []).append(link_to(resolved.exercise))
    pages = (
        home_page(book, context),
        *(exercise_page(e, context) for e in exercises),
        *run_pages(library, used_in),
        validation_page(library),
        definitions(),
        Page(NOT_FOUND, "404.html", "Nothing here", "This page does not exist.", NotFoundData()),
    )
    files: list[tuple[str, bytes | Path]] = [
        (run_file_url(m.id, name), library.folder(m.id) / name)
        for m in library.manifests.values()
        for name in (FILE_NAME, *(r.file for r in m.ranks))
    ]
    files += [(library.data_url(m.id), library.data(m.id)) for m in library.with_steps]
    url = book.url if not book.url or book.url.endswith("/") else f"{book.url}/"
    # What a link to a view cannot name is not offered.
    runs = tuple((m.id, library.data_url(m.id)) for m in library.with_steps if _NAMEABLE.fullmatch(m.id))
    return Site(book.title, book.description, url, book.source, book.licence, pages, tuple(files), runs)


def render(book: Book, site: Site) -> dict[str, bytes | Path]:
    """All files of the site by address."""
    environment = Environment(
        loader=FileSystemLoader(book.templates), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    own = book.root / "templates" if len(book.templates) > 1 else None
    made = assets(book.templates)
    files: dict[str, bytes | Path] = dict(made.files)
    files.update(site.files)
    for page in site.pages:
        files[page.url] = _render(environment, site, page, made, own).encode()
    if site.url:
        files["sitemap.xml"] = _sitemap(site)
    return files


def _render(environment: Environment, site: Site, page: Page, made: Assets, own: Path | None) -> str:
    def to(target: str) -> str:
        # A server shows the page "not found" at any address, where no relative link would hold.
        return (
            site.url + quote(target, safe="/#")
            if page.url == NOT_FOUND and site.url
            else relative(page.url, target)
        )

    try:
        text = environment.get_template(page.template).render(
            site=site, page=page, data=page.data, to=to, asset=lambda name: to(made.urls[name]),
            canonical=quote(_canonical(page.url)), policy=POLICY,
        )  # fmt: skip
    except TemplateSyntaxError as error:
        raise UserError(f"not a valid template: {error.message}", path=error.filename, line=error.lineno,
                        remedy="Mend it.") from None  # fmt: skip
    except Exception as error:
        if not own:  # our templates failing is a bug of ours
            raise
        path, line = _template_line(error, own)
        raise UserError(f"the template fails for {page.url}: {error}", path=path, line=line,
                        remedy="Mend it, or remove the book's own templates.") from None  # fmt: skip
    return HIDDEN.sub("\ufffd", text)  # names in a trace may hold what an author's text may not


def _template_line(error: Exception, own: Path) -> tuple[Path, int | None]:
    """Where in the book's own templates an error came up; their folder where that is not known."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if Path(frame.filename).is_relative_to(own):
            return Path(frame.filename), frame.lineno
    return own, None


def check_pages(files: Mapping[str, bytes | Path], origins: Mapping[tuple[str, str], Origin]) -> None:
    """Every link within the site leads to a file, its fragment to an element, and no id stands twice.

    `origins` says where in the book a link (by page and href) was written. Raises UserError.
    """
    texts = {url: content.decode() for url, content in files.items()
             if url.endswith(".html") and isinstance(content, bytes)}  # fmt: skip
    ids = {url: [html.unescape(i) for i in _ID.findall(text)] for url, text in texts.items()}
    for url, text in texts.items():
        twice = next((i for i, times in Counter(ids[url]).items() if times > 1), None)
        if twice is not None:
            raise UserError(f"the id '{twice}' stands twice", path=url, remedy="Rename one of the two.")
        for href in dict.fromkeys(map(html.unescape, _LINK.findall(text))):
            if re.match(r"[a-z]+:", href, re.IGNORECASE):
                continue
            path, _, fragment = href.partition("#")
            path = unquote(path)
            target = posixpath.normpath(posixpath.join(posixpath.dirname(url), path)) if path else url
            if target not in files or (fragment and unquote(fragment) not in ids.get(target, ())):
                place, line = origins.get((url, href), (Path(url), None))
                raise UserError(
                    f"the link '{href}' leads nowhere",
                    path=place,
                    line=line,
                    remedy="Mend the text it stands in.",
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
