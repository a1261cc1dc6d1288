"""Addresses within a site. A page is known by its path from the site's root, in posix form.

Links are relative and name index.html, so that a site works from a folder, any sub-path and a server.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

from generator.errors import UserError, did_you_mean

HOME = "index.html"
RUNS = "runs/index.html"
DEFINITIONS = "definitions/index.html"
NOT_FOUND = "404.html"


def exercise_url(slug: str) -> str:
    return f"{slug}/index.html"


def run_url(run_id: str) -> str:
    return f"runs/{run_id}/index.html"


def run_file_url(run_id: str, name: str) -> str:
    """Where a file of a run's folder is offered for download."""
    return f"runs/{run_id}/{name}"


def relative(source: str, target: str) -> str:
    """The link from page `source` to `target` (which may carry a #fragment)."""
    path, hash_sign, fragment = target.rpartition("#")
    if not hash_sign or "/" in fragment:  # a # in the name of a run's folder
        path, hash_sign, fragment = target, "", ""
    if path == source and hash_sign:
        return f"#{fragment}"
    link = quote(posixpath.relpath(path, posixpath.dirname(source) or "."))
    return f"{link}{hash_sign}{fragment}"


@dataclass(frozen=True, slots=True)
class Links:
    """What a link in an author's text may point to, and where that lies in the site.

    An author writes a path as it works in the repository: another exercise's file, a chapter's file,
    a run's folder or manifest, each relative to the file it is written in. `#id` is a question or
    heading of the same page; `exercise:slug`, `run:id` and `metric:name` are the short forms.
    """

    #: Path in the book (posix, from its root) to the address in the site.
    files: Mapping[str, str]
    exercises: frozenset[str]
    runs: frozenset[str]
    metrics: frozenset[str]

    def resolve(self, href: str, *, page: str, source: str, line: int | None) -> str:
        """The href to write into `page` for one found in the book's file `source`.

        Raises UserError where the target does not exist or the scheme is not one a book may use.
        """
        scheme, colon, rest = href.partition(":")
        if href.startswith("#") or scheme in {"https", "http", "mailto"}:
            return href
        target = None
        if colon and scheme in {"exercise", "run", "metric"}:
            known = {"exercise": self.exercises, "run": self.runs, "metric": self.metrics}[scheme]
            name, hash_sign, fragment = rest.partition("#")
            if name not in known:
                raise UserError(
                    f"the link '{href}' leads to no {scheme}",
                    path=source,
                    line=line,
                    remedy=did_you_mean(name, known),
                )
            place = exercise_url(name) if scheme == "exercise" else run_url(name)
            if scheme == "metric":
                place = f"{DEFINITIONS}#{name}"
            target = place + hash_sign + fragment
        elif not colon and not href.startswith("/"):
            path, hash_sign, fragment = href.partition("#")
            found = self.files.get(posixpath.normpath(posixpath.join(posixpath.dirname(source), path)))
            target = found + hash_sign + fragment if found else None
        if target is None:
            raise UserError(
                f"the link '{href}' leads nowhere",
                path=source,
                line=line,
                remedy="Link an exercise's file, a run's folder, or use https.",
            )
        return relative(page, target)
