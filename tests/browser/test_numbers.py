"""The parts of the script that know no page: numbers as people type them, the answer key, grading."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from generator.publish.keys import encode
from tests.browser.conftest import reader_of


@pytest.fixture(scope="module")
def page(browser: Browser, site: Path) -> Iterator[Page]:
    with reader_of(browser) as reader:
        reader.page.goto(f"file://{site}/404.html")
        yield reader.page
        assert not reader.complaints


@pytest.mark.parametrize(
    ("text", "unit", "values"),
    [
        ("26.4", "%", [26.4]),
        ("26,4", "%", [26.4]),
        (" 26.4 % ", "%", [26.4]),
        ("26.4%", "", [0.264]),
        ("0.264", "", [0.264]),
        ("3/11", "", [3 / 11]),
        ("3/11", "%", [300 / 11]),
        ("1,234", "ms", [1.234, 1234]),
        ("0,234", "ms", [0.234]),
        ("1,234.5", "ms", [1234.5]),
        ("1.234,5", "ms", [1234.5]),
        ("1 234.5", "ms", [1234.5]),
        ("1\u2009234.5", "ms", [1234.5]),
        ("1'234'567", "", [1234567]),
        ("1,234,567", "", [1234567]),
        ("−2.5", "ms", [-2.5]),
        ("+2", "", [2]),
        ("12 ms", "ms", [12]),
        ("0.012 s", "ms", [12]),
        ("12ms", "ms", [12]),
        ("12 milliseconds", "ms", [12]),
        ("12000 us", "ms", [12]),
        ("12000 µs", "ms", [12]),
        ("2 MiB", "MB", [2.097152]),
        ("131072 B", "kB", [131.072]),
        ("0.5 MB", "kB", [500]),
        ("2.1×", "", [2.1]),
        ("6e-3", "", [0.006]),
        ("6 × 10^-3", "", [0.006]),
        ("2 Gbit/s", "Gbit/s", [2]),
        ("4 ranks", "ranks", [4]),
        ("1.2.3", "", []),
        ("1,2,3", "", []),
        ("12 ms", "%", []),
        ("12 ms", "", []),
        ("abc", "ms", []),
        ("", "ms", []),
        ("1/0", "", []),
        ("-", "", []),
    ],
)
def test_a_typed_number_is_read(page: Page, text: str, unit: str, values: list[float]) -> None:
    found = page.evaluate("([t, u]) => Shardbook.numbers.parse(t, u)", [text, unit])
    assert found["values"] == pytest.approx(values)
    assert bool(found["problem"]) == (not values)


def test_a_key_written_in_python_is_read_in_the_page(page: Page) -> None:
    answer = {
        "explain": "<p>“≤ 5 µs”</p>",
        "value": 1 / 3,
        "misconceptions": [{"low": -0.0, "say": "x" * 500}],
    }
    found = page.evaluate("([t, k]) => Shardbook.key.decode(t, k)", [encode(answer, "é/key"), "é/key"])
    assert found == answer


NUMBER: dict[str, Any] = {
    "kind": "number", "unit": "ms", "value": 20, "low": 19, "high": 21, "shown": "20 ms", "explain": "why",
    "computed": "", "misconceptions": [{"low": 39, "high": 41, "shown": "40 ms", "say": "twice"}],
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "state", "words"),
    [
        ("20", "right", "why"),
        ("19", "right", "why"),
        ("0.02 s", "right", "why"),
        ("40", "wrong", "twice"),
        ("40 ms", "wrong", "twice"),
        ("18.9", "wrong", "It is too low."),
        ("25", "wrong", "It is too high."),
        ("5", "wrong", "far too low"),
        ("0.02", "wrong", "the unit is not"),
        ("-20", "wrong", "the sign"),
    ],
)
def test_a_number_is_graded(page: Page, text: str, state: str, words: str) -> None:
    verdict = page.evaluate("([k, t]) => Shardbook.grade.number(k, t)", [NUMBER, text])
    assert verdict["state"] == state
    assert words in " ".join(verdict["html"])


def test_a_wrong_number_never_hears_the_answer(page: Page) -> None:
    for text in ("0", "1", "18.9", "21.1", "1000"):
        verdict = page.evaluate("([k, t]) => Shardbook.grade.number(k, t)", [NUMBER, text])
        assert "20" not in verdict["title"] + " ".join(verdict["html"])
