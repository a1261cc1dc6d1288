"""The answer key: what the page's script must read, read here in Python."""

from __future__ import annotations

import base64
import json
from itertools import cycle
from pathlib import Path

import pytest

from generator.publish.keys import encode
from tests.publish.html_pages import parsed


def decode(text: str, key: str) -> object:
    """As templates/js/key.js does it."""
    mixed = base64.b64decode(text)
    return json.loads(bytes(a ^ b for a, b in zip(mixed, cycle(key.encode()), strict=False)).decode())


@pytest.mark.parametrize(
    "answer",
    [{}, {"value": 0.1 + 0.2, "shown": "30 %"}, {"explain": "<p>≤ 5 µs, “quoted”</p>" * 50}],
    ids=["empty", "a number", "long text"],
)
def test_a_key_is_read_back(answer: dict[str, object]) -> None:
    assert decode(encode(answer, "exercise/id-é"), "exercise/id-é") == answer


def test_an_answer_is_not_readable_at_a_glance() -> None:
    hidden = encode({"shown": "26.4 %"}, "pair/share")
    assert b"26.4" not in base64.b64decode(hidden)


def test_a_question_without_a_key_is_a_bug() -> None:
    with pytest.raises(ValueError, match="key"):
        encode({}, "")


def test_the_pages_keys_hold_answers_and_reasons(site: Path) -> None:
    questions = {
        a["id"]: decode(a["data-answer"], a["data-key"])
        for _, a in parsed(site / "pair" / "index.html").elements
        if "data-answer" in a
    }
    assert list(questions) == ["which", "true-ones", "share"]
    which, true_ones, share = questions.values()
    assert isinstance(which, dict)
    assert isinstance(true_ones, dict)
    assert isinstance(share, dict)
    assert which["correct"] == [True, False]
    assert true_ones["correct"] == [True, True, False]
    assert share["low"] < share["value"] < share["high"]
    assert "That is the transfer." in share["misconceptions"][0]["say"]
    assert "<script>" not in json.dumps(questions)
