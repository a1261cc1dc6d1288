"""SVG text: elements, escaping, paths of rectangles, and how wide a word will be.

Everything that comes from a run or an exercise passes through `escape`. Marks carry classes and
presentation attributes only: the page's security policy allows no style attributes.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

#: Widths in em of a Helvetica-like face, by group of characters; what is in none is 0.556.
_WIDTHS = {
    0.25: "ijl|'′",
    0.285: "ft.,:;I !/\u2009\u00a0·()[]-",
    0.34: "r",
    0.5: "ckJsvxyz",
    0.61: "TFLZ",
    0.67: "ABEKPSVXY&",
    0.74: "CDHNRUw",
    0.8: "GOQ",
    0.86: "mM%×",
    0.95: "W",
}
_EM = {c: width for width, group in _WIDTHS.items() for c in group}
#: Characters that XML 1.0 does not allow, escaped or not.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def escape(text: str) -> str:
    """Text as it may stand in an element or an attribute."""
    return html.escape(_NOT_XML.sub("\ufffd", text), quote=True)


def identifier(text: str) -> str:
    """An id made of `text`: letters, digits, hyphens, and never a digit first."""
    return "f-" + re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-")


def text_width(text: str, size_px: float, bold: bool = False) -> float:
    """About how wide a line of text is, px; system faces differ by some per cent."""
    return sum(_EM.get(c, 0.556) for c in text) * size_px * (1.06 if bold else 1.0)


def boxes(spans: Iterable[tuple[int, int]], y: int, height: int) -> str:
    """Path data of rectangles [first, end) px of one height, e.g. 'M88 4h20v26h-20z'."""
    return "".join(f"M{a} {y}h{b - a}v{height}h{a - b}z" for a, b in spans if b > a)


class Canvas:
    """Collects the elements of one picture in drawing order, and counts them."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self.marks = 0

    def add(self, tag: str, text: str | None = None, **attributes: object) -> None:
        """One element. `cls` is its class; an underscore in a name stands for a hyphen; None is left out."""
        self._parts.append(element(tag, None if text is None else escape(text), **attributes))
        self.marks += 1

    def path(self, data: str, cls: str, fill: str | None = None) -> None:
        """A path, unless it is empty."""
        if data:
            self.add("path", cls=cls, fill=fill, d=data)

    def text(self, x: float, y: float, words: str, cls: str, anchor: str | None = None) -> None:
        """A line of text with its baseline at `y`; `anchor` is 'middle', 'end' or None."""
        self.add("text", words, x=number(x), y=number(y), cls=cls, text_anchor=anchor)

    def line(self, x1: float, y1: float, x2: float, y2: float, cls: str) -> None:
        self.add("line", x1=number(x1), y1=number(y1), x2=number(x2), y2=number(y2), cls=cls)

    def markup(self) -> str:
        return "".join(self._parts)


def number(value: float) -> str:
    """A coordinate with at most two decimals."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def element(tag: str, content: str | None = None, **attributes: object) -> str:
    """An element around markup that is already escaped; empty when there is none."""
    written = "".join(
        f' {"class" if name == "cls" else name.replace("_", "-")}="{escape(str(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    return f"<{tag}{written}/>" if content is None else f"<{tag}{written}>{content}</{tag}>"


def picture(
    canvas: Canvas,
    *,
    width: int,
    height: int,
    ident: str,
    title: str,
    description: str = "",
    definitions: str = "",
    style: str = "",
    margin: int = 0,
) -> str:
    """A whole `<svg>`, named for screen readers.

    Without `style` it goes into a page, whose stylesheet it takes; with it, it is a document of its own
    on the page's ground, with `margin` px around.
    """
    names = f"{ident}-t {ident}-d" if description else f"{ident}-t"
    head = element("title", escape(title), id=f"{ident}-t")
    if description:
        head += element("desc", escape(description), id=f"{ident}-d")
    if style:
        head += element("style", html.escape(style, quote=False))
    if definitions:
        head += element("defs", definitions)
    body = canvas.markup()
    wide, high = width + 2 * margin, height + 2 * margin
    if style:
        ground = element("rect", x=-margin, y=-margin, width=wide, height=high, cls="ground")
        body = element("g", ground + body, cls="fig-svg")
    return element(
        "svg",
        head + body,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"{-margin} {-margin} {wide} {high}",
        width=wide,
        height=high,
        cls=None if style else "fig-svg",
        role="img",
        aria_labelledby=names,
    )


def decoration(canvas: Canvas, *, width: int, height: int, cls: str = "fig-svg") -> str:
    """A whole `<svg>` that says nothing which is not in words beside it."""
    return element(
        "svg",
        canvas.markup(),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
        cls=cls,
        aria_hidden="true",
    )


def hatch(ident: str) -> str:
    """The pattern of a wait: lines of the transfer's colour at 45 degrees, 1.4 px every 4 px."""
    line = element("rect", width="1.4", height="4", cls="X")
    return element(
        "pattern",
        line,
        id=f"{ident}-hatch",
        width=4,
        height=4,
        patternUnits="userSpaceOnUse",
        patternTransform="rotate(45)",
    )


def textures(ident: str) -> str:
    """Patterns of the memory lane that are more than a lightness: lines lying and standing, dots."""

    def marked(name: str, width: int, height: int, mark_width: int, mark_height: int) -> str:
        content = element("rect", width=width, height=height, cls="m-ground") + element(
            "rect", width=mark_width, height=mark_height, cls="m-line"
        )
        return element(
            "pattern",
            content,
            id=f"{ident}-{name}",
            width=width,
            height=height,
            patternUnits="userSpaceOnUse",
        )

    return marked("lines", 4, 2, 4, 1) + marked("bars", 3, 4, 1, 4) + marked("dots", 3, 3, 1, 1)
