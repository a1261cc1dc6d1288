"""Addresses within a site. A page is known by its path from the site's root, in posix form.

Links are relative and name index.html, so that a site works from a folder, any sub-path and a server.
"""

from __future__ import annotations

import posixpath
from urllib.parse import quote

from generator.lessons.links import Place

HOME = "index.html"
RUNS = "runs/index.html"
DEFINITIONS = "definitions/index.html"
VALIDATION = "validation/index.html"
NOT_FOUND = "404.html"


def exercise_url(slug: str) -> str:
    return f"{slug}/index.html"


def chapter_id(slug: str) -> str:
    """The id of a chapter on the first page; no section of that page begins like it."""
    return f"chapter-{slug}"


def run_url(run_id: str) -> str:
    return f"runs/{run_id}/index.html"


def run_file_url(run_id: str, name: str) -> str:
    """Where a file of a run's folder is offered for download."""
    return f"runs/{run_id}/{name}"


def run_data_url(run_id: str, digest: str) -> str:
    """Where the script with a run's data lies; its name changes with the data."""
    return f"runs/{run_id}/data.{digest}.js"


def relative(source: str, target: str) -> str:
    """The link from page `source` to `target` (which may carry a #fragment)."""
    path, hash_sign, fragment = target.rpartition("#")
    if not hash_sign or "/" in fragment:  # a # in the name of a run's folder
        path, hash_sign, fragment = target, "", ""
    if path == source and hash_sign:
        return f"#{fragment}"
    link = quote(posixpath.relpath(path, posixpath.dirname(source) or "."))
    return f"{link}{hash_sign}{fragment}"


def address(place: Place, page: str) -> str:
    """Where a link's target lies in the site, with its fragment; `page` is where the link stands."""
    if place.kind == "metric":
        return f"{DEFINITIONS}#{place.name}"
    if place.kind == "chapter":
        return f"{HOME}#{chapter_id(place.name)}"
    path = page
    if place.kind != "page":
        path = run_url(place.name) if place.kind == "run" else exercise_url(place.name)
    return f"{path}#{place.fragment}" if place.fragment else path
