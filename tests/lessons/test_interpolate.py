"""Values in an author's Markdown: what is replaced, what is left, and that values are text."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from generator.errors import Problems
from generator.lessons.interpolate import escape, expressions, interpolate


def replaced(text: str) -> str:
    """Every expression in angle quotes, with its unit and line."""
    return interpolate(text, lambda e, unit, line: f"«{e},{unit},{line}»", path=None, line=5)


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("{a()} of {b(rank=0) | ms}.", "«a\\(\\),None,5» of «b\\(rank\\=0\\),ms,5»."),
        ("one\ntwo {a()}", "one\ntwo «a\\(\\),None,6»"),
        ("a set {{1, 2}}", "a set {1, 2}"),
        ("escaped \\{ and \\}", "escaped \\{ and \\}"),
        ("code `{a}` stays", "code `{a}` stays"),
        ("``{a} ` {b}`` {c}", "``{a} ` {b}`` «c,None,5»"),
        ("a lone ` and {c}", "a lone ` and «c,None,5»"),
        ("$\\frac{p-1}{m}$ is {c}", "$\\frac{p-1}{m}$ is «c,None,5»"),
        ("$$\n\\frac{1}{2}\n$$\n{c}", "$$\n\\frac{1}{2}\n$$\n«c,None,8»"),
        ("costs $5 or {c} or $6", "costs $5 or «c,None,5» or $6"),
        ("```python\nx = {1}\n```\n{c}", "```python\nx = {1}\n```\n«c,None,8»"),
        ("~~~\n{a}\n```\n~~~\n{c}", "~~~\n{a}\n```\n~~~\n«c,None,9»"),
        ("{f(op='}')}", "«f\\(op\\=\\'\\}\\'\\),None,5»"),
        ("no values", "no values"),
        ("", ""),
    ],
)
def test_expressions_are_replaced_and_code_and_mathematics_are_not(text: str, result: str) -> None:
    assert replaced(text) == result


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("open {a()", 5, "a brace is not closed"),
        ("one\n\ntwo {a(\n\n}", 7, "a brace is not closed"),
        ("closed }", 5, "a brace is closed that was not opened"),
        ("{a {b} c}", 5, "a brace is not closed"),
    ],
)
def test_a_brace_without_its_other_is_refused(text: str, line: int, says: str) -> None:
    with pytest.raises(Problems) as caught:
        interpolate(text, lambda *_: "", path=Path("ex.md"), line=line - text.split("{")[0].count("\n"))
    assert f"ex.md:{line}: {says}" in str(caught.value)


def test_expressions_of_a_text_are_listed() -> None:
    assert expressions("{a()} `{b}` {c() | ms} {{d}}") == ("a()", "c()")


@given(st.text(alphabet="ab<>&\"'*_`[](){}#!|~$\\+-=:@^/. \u2009−", min_size=1, max_size=30))
def test_escaped_text_shows_exactly_itself(text: str) -> None:
    words = text.strip()
    [paragraph] = [
        t for t in MarkdownIt("commonmark", {"html": True}).parse("x" + escape(words)) if t.type == "inline"
    ]
    children = paragraph.children or []
    assert {c.type for c in children} <= {"text", "text_special"}
    assert "".join(c.content for c in children) == "x" + words


@given(st.text(alphabet="a{}`$\\~\n |'", max_size=40))
def test_any_text_comes_back_or_is_refused_at_a_line_of_it(text: str) -> None:
    lines: list[int | None] = []
    try:
        lines.append(len(interpolate(text, lambda e, u, line: "", path=None, line=1).splitlines()))
    except Problems as found:
        lines += [p.line for p in found.problems]
    assert all(n is not None and n <= text.count("\n") + 1 for n in lines)
