"""A reader answers: wrong first, and is told why; then right; by mouse and by keyboard."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page

from tests.browser.conftest import Reader


@pytest.fixture
def pair(reader: Reader, address: str) -> Page:
    reader.page.goto(address + "pair/index.html")
    return reader.page


def said(question: Locator) -> str:
    return question.locator(".fb").inner_text()


def misconceived(question: Locator) -> str:
    """The number that the question's first misconception gives."""
    found = question.evaluate(
        "q => Shardbook.key.decode(q.dataset.answer, q.dataset.key).misconceptions[0].shown"
    )
    return str(found)


def state(question: Locator) -> str:
    return question.locator(".st").inner_text()


def test_a_number_by_mouse(pair: Page) -> None:
    question = pair.locator("#share")
    field, check = question.locator("input"), question.get_by_role("button", name="Check")
    assert state(question) == "open"

    field.fill(misconceived(question))
    check.click()
    assert "That is the transfer." in said(question)
    assert state(question) == "not yet"
    assert field.get_attribute("aria-invalid") == "true"

    field.fill("50")
    check.click()
    assert "far too high" in said(question)
    field.fill("0.13")
    check.click()
    assert "the question asks for per cent" in said(question)
    assert question.locator("[data-computed]").inner_text() == ""

    field.fill("13,03 %")
    check.click()
    assert "Right: 13.03" in said(question)
    assert "It is 6" in said(question)
    assert state(question) == "right"
    assert "wait(rank=0) / step_time()" in question.locator("[data-computed]").inner_text()
    assert not check.is_visible()


def test_a_number_by_keyboard(pair: Page) -> None:
    question = pair.locator("#share")
    question.locator("input").focus()
    pair.keyboard.type(misconceived(question))
    pair.keyboard.press("Enter")
    assert "That is the transfer." in said(question)
    assert question.locator("input").evaluate("e => e === document.activeElement")

    pair.keyboard.press("Control+A")
    pair.keyboard.type("0.13030/1")
    pair.keyboard.press("Enter")
    assert state(question) == "right"
    # The controls are gone; reading goes on at the explanation.
    assert question.locator(".fb").evaluate("e => e === document.activeElement")


def test_a_choice_by_mouse(pair: Page) -> None:
    question = pair.locator("#which")
    check = question.get_by_role("button", name="Check")
    check.click()
    assert said(question) == "Choose an answer first."
    assert state(question) == "open"

    question.get_by_label("Rank 1").check()
    check.click()
    assert "It is the last to arrive." in said(question)
    assert state(question) == "not yet"
    assert question.locator(".why").all_inner_texts() == ["", ""]

    question.get_by_label("Rank 0").check()
    check.click()
    assert "Rank 0 arrives first." in said(question)
    assert state(question) == "right"
    reasons = question.locator(".why").all_inner_texts()
    assert "It is there first." in reasons[0]
    assert "It is the last to arrive." in reasons[1]
    assert question.locator(".text.right").count() == 1


def test_a_choice_by_keyboard(pair: Page) -> None:
    question = pair.locator("#which")
    question.locator("input").first.focus()
    pair.keyboard.press("ArrowDown")
    pair.keyboard.press("Enter")
    assert "It is the last to arrive." in said(question)
    pair.keyboard.press("ArrowUp")
    pair.keyboard.press("Enter")
    assert state(question) == "right"


def test_a_choice_of_several(pair: Page) -> None:
    question = pair.locator("#true-ones")
    check = question.get_by_role("button", name="Check")
    question.get_by_label("It has two ranks.").check()
    check.click()
    assert "One more belongs to the answer." in said(question)
    question.get_by_label("It has a send.").check()
    check.click()
    assert "Nothing is sent from rank to rank." in said(question)

    question.get_by_label("It has a send.").focus()
    pair.keyboard.press("Space")
    question.get_by_label("It has one all-reduce.").focus()
    pair.keyboard.press("Space")
    pair.keyboard.press("Enter")
    assert state(question) == "right"
    assert "One call, two ranks." in said(question)


def test_giving_up_explains_and_shows_all_reasons(pair: Page) -> None:
    question = pair.locator("#which")
    question.get_by_role("button", name="Give up").click()
    assert state(question) == "given up"
    assert "Rank 0 arrives first." in said(question)
    assert "" not in question.locator(".why").all_inner_texts()
    number = pair.locator("#share")
    number.get_by_role("button", name="Give up").press("Enter")
    assert "The answer: 13.03" in said(number)
    assert number.locator(".fb").evaluate("e => e === document.activeElement")


def test_what_cannot_be_read_is_said_and_not_counted(pair: Page) -> None:
    question = pair.locator("#share")
    for text, expected in {
        "": "Type a number first.",
        "many": "That is not a number",
        "13 ms": "“ms” does not fit here",
        "<b>1</b>": "That is not a number",
        "1/0": "Nothing can be divided by zero.",
    }.items():
        question.locator("input").fill(text)
        question.locator("input").press("Enter")
        assert expected in said(question)
        assert state(question) == "open"


def test_feedback_is_announced_and_hints_are_closed(pair: Page) -> None:
    question = pair.locator("#which")
    assert question.locator(".fb").get_attribute("role") == "status"
    hint = question.locator("details", has_text="Look below.")
    assert hint.get_attribute("open") is None
    hint.locator("summary").press("Enter")
    assert hint.get_by_text("Look below.").is_visible()


def test_every_question_has_an_address(reader: Reader, address: str) -> None:
    page = reader.page
    page.goto(address + "pair/index.html#share")
    assert page.locator("#share").evaluate("e => e.getBoundingClientRect().top < innerHeight")
    page.get_by_role("link", name="Question 1").click()
    assert page.url.endswith("#which")


def test_text_that_looks_like_markup_stays_text_in_feedback(pair: Page) -> None:
    for name in ("which", "share"):
        pair.locator(f"#{name}").get_by_role("button", name="Give up").click()
    assert "<script>pwned = 1</script>" in said(pair.locator("#share"))
    assert "<script>pwned = 1</script>" in pair.locator("#which .why").first.inner_text()
    assert pair.evaluate("typeof pwned") == "undefined"
