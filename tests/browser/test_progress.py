"""What this browser remembers of a reader's answers, and what happens when it cannot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.conftest import Reader, reader_of

KEY = "shardbook:progress:pair/share"


@pytest.fixture
def page(reader: Reader) -> Page:
    return reader.page


def answer_share(page: Page, text: str) -> None:
    page.locator("#share input").fill(text)
    page.locator("#share input").press("Enter")


def pips(page: Page) -> str:
    """The pips of the page: d done, h begun, - open."""
    classes = page.locator(".pips i").evaluate_all("pips => pips.map(p => p.className)")
    return "".join(name or "-" for name in classes)


def test_answers_survive_a_reload(page: Page, address: str) -> None:
    page.goto(address + "pair/index.html")
    page.locator("#which").get_by_label("Rank 1").check()
    page.locator("#which").get_by_role("button", name="Check").click()
    page.locator("#true-ones").get_by_role("button", name="Give up").click()
    answer_share(page, "13.03")
    assert pips(page) == "hdd"

    page.reload()

    assert pips(page) == "hdd"
    assert page.locator(".st").all_inner_texts() == ["not yet", "given up", "right"]
    assert page.locator("#share input").input_value() == "13.03"
    assert "It is the last to arrive." in page.locator("#which .fb").inner_text()
    assert page.locator("#which").get_by_label("Rank 1").is_checked()
    assert page.locator("[data-count]").inner_text() == "2 of 3"

    page.goto(address + "index.html")
    assert pips(page) == "-h"
    assert page.locator(".pips").nth(1).get_attribute("aria-label") == "0 of 1 done, 1 begun"


def test_a_changed_question_asks_again_and_a_new_recording_does_not(page: Page, address: str) -> None:
    page.goto(address + "pair/index.html")
    answer_share(page, "13.03")
    kept = json.loads(page.evaluate(f"localStorage.getItem('{KEY}')"))

    # As if the run had given another number when the reader answered.
    page.evaluate("([k, v]) => localStorage.setItem(k, v)", [KEY, json.dumps({**kept, "answer": "99"})])
    page.reload()
    assert page.locator("#share .st").inner_text() == "right"
    assert "recorded again" in page.locator("#share .fb").inner_text()

    page.evaluate("([k, v]) => localStorage.setItem(k, v)", [KEY, json.dumps({**kept, "hash": "0" * 16})])
    page.reload()
    assert page.locator("#share .st").inner_text() == "open"


@pytest.mark.parametrize(
    "stored", ["{", "null", "[]", '{"hash": 1}', '{"hash":"","state":"won","answer":""}']
)
def test_damaged_progress_is_left_out_and_said(page: Page, address: str, stored: str) -> None:
    page.goto(address + "pair/index.html")
    page.evaluate("([k, v]) => localStorage.setItem(k, v)", [KEY, stored])
    page.reload()
    assert page.locator("[data-notice]").inner_text() == (
        "Stored progress of 1 question could not be read and was left out.")  # fmt: skip
    assert page.locator("#share .st").inner_text() == "open"
    answer_share(page, "13.03")
    page.reload()
    assert not page.locator("[data-notice]").is_visible()
    assert page.locator("#share .st").inner_text() == "right"


def test_without_storage_the_page_works_and_says_so(browser: Browser, address: str) -> None:
    deny = "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('denied') } })"
    with reader_of(browser) as reader:
        reader.page.add_init_script(deny)
        reader.page.goto(address + "pair/index.html")
        assert "keeps no data" in reader.page.locator("[data-notice]").inner_text()
        answer_share(reader.page, "13.03")
        assert reader.page.locator("#share .st").inner_text() == "right"
        assert pips(reader.page) == "--d"
        reader.page.get_by_role("button", name="Theme").click()
        assert not reader.complaints


def test_a_full_disk_does_not_break_the_page(browser: Browser, address: str) -> None:
    full = "Storage.prototype.setItem = function (k) { if (!k.includes('probe')) throw new Error('full') }"
    with reader_of(browser) as reader:
        reader.page.add_init_script(full)
        reader.page.goto(address + "pair/index.html")
        answer_share(reader.page, "13.03")
        assert reader.page.locator("#share .st").inner_text() == "right"
        assert not reader.complaints


def test_progress_can_be_saved_erased_and_taken_over(page: Page, address: str, tmp_path: Path) -> None:
    page.goto(address + "pair/index.html")
    answer_share(page, "13.03")
    page.goto(address + "index.html")
    panel = page.locator("[data-progress]")
    with page.expect_download() as download:
        panel.get_by_role("button", name="Export").click()
    saved = tmp_path / download.value.suggested_filename
    download.value.save_as(saved)
    assert saved.name == "shardbook-progress.json"
    assert json.loads(saved.read_text())["questions"]["pair/share"]["state"] == "right"

    panel.get_by_role("button", name="Reset").click()
    assert "Press Reset again" in panel.inner_text()
    assert page.evaluate(f"localStorage.getItem('{KEY}')")
    panel.get_by_role("button", name="Reset").click()
    assert "erased" in panel.inner_text()
    assert pips(page) == "--"

    panel.locator("input[type=file]").set_input_files(saved)
    panel.get_by_text("Took over 1 question.").wait_for()
    assert pips(page) == "-h"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("not JSON", "This file is not JSON."),
        ("[1, 2]", "This file holds no Shardbook progress."),
        ('{"shardbook": 1, "questions": []}', "This file holds no Shardbook progress."),
        ('{"shardbook": 1, "questions": {"pair/share": {"state": "right"}}}', "pair/share cannot be read"),
    ],
)
def test_a_file_that_cannot_be_taken_over_is_refused_whole(
    page: Page, address: str, tmp_path: Path, content: str, expected: str
) -> None:
    page.goto(address + "index.html")
    bad = tmp_path / "bad.json"
    bad.write_text(content)
    page.locator("[data-progress] input[type=file]").set_input_files(bad)
    page.locator("[data-said]", has_text=expected).wait_for()
    assert page.evaluate("localStorage.length") == 0
