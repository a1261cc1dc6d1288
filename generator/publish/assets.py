"""The style sheet and the scripts: small files joined in a listed order, the hash in the name.

A changed asset gets a new address, so that no browser shows a new page with an old script. Both lose
their comments and indentation on the way, and scripts long local names: the project has them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from generator.errors import UserError
from generator.publish.slim import slim
from generator.texts import read_text

CSS = ("tokens", "base", "figure", "timeline", "home", "exercise", "run", "validation", "code", "print")
#: A file may use only what those before it define.
JS = (
    "store", "numbers", "key", "grade", "progress", "pips",
    *(f"timeline/{name}" for name in (
        "registry", "model", "columns", "whatif", "graph", "replay", "comm", "lanes",
        "scale", "levels", "layout", "link", "facts", "describe", "draw", "commands", "hands",
        "memory", "schedule", "select", "across", "tracks", "overlays", "grouping", "marks", "panel",
        "measuring", "finding", "sliders", "compare", "export", "minimap", "view",
    )),
    "pick", "cover", "questions", "page",
)  # fmt: skip
ICON = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 18 18">\
<path fill="#2462ae" d="M0 2h8v4H0zM3 7h6v4H3zM6 12h4v4H6z"/>\
<path fill="#0d5a41" d="M9 2h9v4H9zM10 7h5v4h-5zM11 12h7v4h-7z"/></svg>
"""


@dataclass(frozen=True, slots=True)
class Assets:
    #: Name as templates say it (book.css) to the address in the site (assets/book.<hash>.css).
    urls: dict[str, str]
    #: Address in the site to content.
    files: dict[str, bytes]


def assets(templates: Sequence[Path]) -> Assets:
    """Collect all assets; a file is taken from the first folder of `templates` that has it."""
    made = {
        "book.css": _slim_css(join(templates, "css", CSS)),
        "book.js": slim(join(templates, "js", JS)),
        "theme.js": slim(join(templates, "js", ("theme",))),
        "icon.svg": ICON.encode(),
    }
    urls = {name: _address(name, content) for name, content in made.items()}
    return Assets(urls=urls, files={urls[name]: content for name, content in made.items()})


def join(templates: Sequence[Path], kind: str, names: Sequence[str]) -> bytes:
    """The files of a kind ("css" or "js"), each from the first folder that has it, in one."""
    texts = [read_text(_find(templates, f"{kind}/{name}.{kind}")).strip() for name in names]
    return ("\n\n".join(texts) + "\n").encode()


def _slim_css(sheet: bytes) -> bytes:
    """A style sheet without comments, indentation and empty lines; none of ours has them in a text."""
    return re.sub(rb"\n\s+", b"\n", re.sub(rb"/\*.*?\*/", b"", sheet, flags=re.DOTALL)).lstrip()


def _find(templates: Sequence[Path], name: str) -> Path:
    for folder in templates:
        if (folder / name).is_file():
            return folder / name
    raise UserError(
        f"{name} is missing", path=templates[-1], remedy="Restore it, or install Shardbook again."
    )


def _address(name: str, content: bytes) -> str:
    stem, _, suffix = name.rpartition(".")
    return f"assets/{stem}.{hashlib.sha256(content).hexdigest()[:12]}.{suffix}"
