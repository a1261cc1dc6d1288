"""Authors' Markdown: what it may do, and what stays text."""

from __future__ import annotations

import pytest

from generator.publish import markdown
from tests.publish.html_pages import Parsed


def same(href: str) -> str:
    return href


def test_raw_html_is_text() -> None:
    assert (
        markdown.block("<img src=x onerror=alert(1)>", same) == "<p>&lt;img src=x onerror=alert(1)&gt;</p>\n"
    )
    assert "<script>" not in markdown.inline("a <script>b</script>", same)


def test_dangerous_links_stay_text() -> None:
    assert "<a" not in markdown.inline("[x](javascript:alert(1))", same)


def test_images_load_nothing() -> None:
    assert "<img" not in markdown.block("![x](https://example.org/x.png)", same)


def test_mathematics_becomes_mathml_and_prices_stay() -> None:
    html = markdown.block("$\\frac{p-1}{m}$ costs $5 and $6.", same)
    assert html.count("<math") == 1
    assert "<mfrac>" in html
    assert "$5 and $6." in html
    assert "style=" not in markdown.block("$$\\mathbf{x} \\le \\begin{matrix}a & b\\end{matrix}$$", same)


@pytest.mark.parametrize("tex", ["\\frac{1}", "\\left(", "{", "\\unknown{<b>}"])
def test_broken_mathematics_does_not_break_the_page(tex: str) -> None:
    assert "<b>" not in markdown.math(tex, display=False)


def test_links_are_resolved_everywhere() -> None:
    html = markdown.block("[a](x)\n\n| b |\n|---|\n| [c](y) |\n\n- [d](z)", lambda href: f"to-{href}")
    assert [part.split('"')[0] for part in html.split('href="')[1:]] == ["to-x", "to-y", "to-z"]


def test_a_text_is_cut_at_its_headings() -> None:
    parts = markdown.sections("Before.\n\n## Closed *form*\n\nOne.\n\n### Smaller\n\n## Last", same)
    assert [(p.heading, p.id) for p in parts] == [
        ("", ""), ("Closed <em>form</em>", "closed-form"), ("Last", "last"),
    ]  # fmt: skip
    assert "<h3>Smaller</h3>" in parts[1].body


def test_plain_words_have_no_markup() -> None:
    assert markdown.plain("*Four* `ranks` & <b>") == "Four ranks & <b>"


def test_tables_align_by_class_and_can_be_scrolled_by_keyboard() -> None:
    html = markdown.block("| a | b |\n|---|--:|\n| 1 | 2 |", same)
    assert 'class="r"' in html
    assert 'tabindex="0"' in html
    assert "style" not in html


def test_source_text_has_classes_and_no_styles() -> None:
    html = markdown.code("def f(): return '<b>'", "python")
    assert '<span class="k">def</span>' in html
    assert "<b>" not in html
    assert markdown.code("<b>", "no such language") == "&lt;b&gt;"


@pytest.mark.parametrize(
    "tex",
    [
        r"\text{<script>alert(1)</script>}",
        r"\text{<img src=x onerror=alert(1)>}",
        r"\text{</math><b onclick=1>}",
        r"\text{<mi onclick='1'>x</mi>}",
        r"\href{javascript:alert(1)}{x}",
        r"\style{color:red}{x}",
        r"\class{x}{y}",
        r"\color{\"><script>}{x}",
    ],
)
def test_mathematics_is_nothing_but_mathematics(tex: str) -> None:
    for made in (markdown.math(tex, display=False), markdown.block(f"a ${tex}$ b", same)):
        elements = Parsed(str(made)).elements
        assert {name for name, _ in elements} <= {
            "p",
            "span",
            "code",
            "math",
            "mrow",
            "mi",
            "mo",
            "mtext",
            "mstyle",
        }
        assert {a for _, attributes in elements for a in attributes} <= {
            "xmlns",
            "display",
            "class",
            "mathcolor",
        }


def test_a_label_of_mathematics_is_text() -> None:
    assert "href" not in markdown.block("$$x$$ (label)", same)
