"""A page of a site as a test looks at it: elements with their attributes, and the text between them."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path


class Parsed(HTMLParser):
    """Elements in order, ids, and text. `noscript` is read like any other element."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def values(self, attribute: str) -> list[str]:
        return [attributes[attribute] for _, attributes in self.elements if attribute in attributes]

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())


def parsed(path: Path) -> Parsed:
    return Parsed(path.read_text(encoding="utf-8"))


def pages(site: Path) -> list[Path]:
    return sorted(site.rglob("*.html"))
