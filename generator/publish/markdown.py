"""Authors' Markdown to HTML: CommonMark with tables and $TeX$ as MathML, raw HTML shown as text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape
from mdit_py_plugins.dollarmath import dollarmath_plugin
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from generator.publish.mathml import math

#: Gives the href to write for the one an author wrote.
Resolve = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Section:
    """A heading of the second level and what stands under it; the part before the first has none."""

    #: HTML, empty where there is no heading.
    heading: Markup
    id: str
    body: Markup


def block(text: str, resolve: Resolve) -> Markup:
    """Markdown with paragraphs, lists and tables as HTML."""
    return _html(_parse(text, resolve))


def inline(text: str, resolve: Resolve) -> Markup:
    """One run of Markdown as HTML without a paragraph around it; line breaks are spaces."""
    tokens = _parser().parseInline(" ".join(text.split()), {})
    _link(tokens, resolve)
    return _html(tokens)


def plain(text: str) -> str:
    """The words of a run of Markdown, for titles and attributes (not escaped)."""
    tokens = _parser().parseInline(" ".join(text.split()), {})
    return "".join(
        t.content
        for child in tokens
        for t in child.children or ()
        if t.type in {"text", "code_inline", "math_inline"}
    )


def sections(text: str, resolve: Resolve) -> tuple[Section, ...]:
    """Markdown cut at its second-level headings."""
    parts: list[tuple[Sequence[Token], list[Token]]] = [((), [])]
    tokens = iter(_parse(text, resolve))
    for token in tokens:
        if token.type == "heading_open" and token.tag == "h2":
            heading = next(tokens)
            next(tokens)
            parts.append((heading.children or (), []))
        else:
            parts[-1][1].append(token)
    found = []
    for heading_tokens, body in parts:
        if heading_tokens or body:
            words = "".join(t.content for t in heading_tokens)
            found.append(
                Section(
                    _html([Token("inline", "", 0, children=list(heading_tokens))]),
                    slug(words),
                    _html(body),
                )
            )
    return tuple(found)


def slug(words: str) -> str:
    """An id made of words: lower case, hyphens between."""
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")


def code(text: str, language: str) -> Markup:
    """Source text with a class a token (colours are in code.css); an unknown language stays plain."""
    try:
        lexer = get_lexer_by_name(language) if language else None
    except ClassNotFound:
        lexer = None
    if lexer is None:
        return escape(text)
    return Markup(highlight(text, lexer, HtmlFormatter(nowrap=True)))


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "typographer": True})
    parser.enable(["table", "smartquotes"])
    parser.disable("image")  # a page loads nothing from elsewhere; figures are blocks of their own
    parser.use(dollarmath_plugin, allow_space=False, allow_labels=False, double_inline=True, renderer=_math)
    parser.add_render_rule("fence", _fence)
    parser.add_render_rule("code_block", _fence)
    parser.add_render_rule("table_open", lambda *_: '<div class="scroll" tabindex="0"><table>')
    parser.add_render_rule("table_close", lambda *_: "</table></div>")
    return parser


def _math(content: str, options: dict[str, Any]) -> str:
    return str(math(content.strip(), bool(options.get("display_mode"))))


def _fence(_renderer: Any, tokens: Sequence[Token], index: int, _options: Any, _env: Any) -> str:
    token = tokens[index]
    return f'<pre class="code" tabindex="0">{code(token.content, token.info.strip())}</pre>\n'


def _html(tokens: Sequence[Token]) -> Markup:
    return Markup(_parser().renderer.render(tokens, _parser().options, {}))


def _parse(text: str, resolve: Resolve) -> list[Token]:
    tokens = _parser().parse(text, {})
    _link(tokens, resolve)
    for token in tokens:
        # Alignment of table cells: a class, because the policy of the page allows no style attribute.
        style = token.attrs.pop("style", None)
        if style == "text-align:right":
            token.attrSet("class", "r")
    return tokens


def _link(tokens: Sequence[Token], resolve: Resolve) -> None:
    for token in _walk(tokens):
        if token.type == "link_open":
            token.attrSet("href", resolve(str(token.attrGet("href") or "")))


def _walk(tokens: Sequence[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from _walk(token.children or ())
