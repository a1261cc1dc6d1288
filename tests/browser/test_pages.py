"""Every page, as a browser sees it."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from tests.browser.conftest import Reader, reader_of
from tests.publish.html_pages import pages

DESK, TABLET, PHONE = 1280, 800, 390


def names(site: Path) -> list[str]:
    return [quote(page.relative_to(site).as_posix()) for page in pages(site)]


def test_no_page_complains_or_asks_for_anything_outside_the_folder(
    reader: Reader, address: str, site: Path
) -> None:
    found = names(site)
    for name in found:
        reader.page.goto(address + name)
    assert len(found) > 8
    assert len(reader.requests) > 3 * len(found)
    # The icon is asked for by the browser itself; that too lies in the folder.
    assert [url for url in reader.requests if not url.startswith((address, "data:"))] == []
    assert not reader.complaints
    assert reader.page.evaluate("typeof pwned") == "undefined"


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [DESK, PHONE])
def test_axe_finds_nothing_and_no_page_is_wider_than_the_window(
    browser: Browser, site: Path, theme: str, width: int
) -> None:
    problems = []
    with reader_of(
        browser, viewport={"width": width, "height": 900}, color_scheme=theme, bypass_csp=True
    ) as reader:
        for name in names(site):
            reader.page.goto(f"file://{site}/{name}")
            # Everything that can be opened is looked at too.
            reader.page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
            found = Axe().run(reader.page)
            if found.violations_count:
                problems.append(f"{name}: {found.generate_report()}")
            spare = reader.page.evaluate(
                "document.documentElement.clientWidth - document.documentElement.scrollWidth"
            )
            if spare:
                problems.append(f"{name} is {-spare} px too wide")
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("width", [320, TABLET, 1000, 2000])
def test_no_page_is_wider_than_a_window_between_phone_and_desk(
    browser: Browser, site: Path, width: int
) -> None:
    with reader_of(browser, viewport={"width": width, "height": 900}) as reader:
        for name in names(site):
            reader.page.goto(f"file://{site}/{name}")
            spare = reader.page.evaluate(
                "document.documentElement.clientWidth - document.documentElement.scrollWidth"
            )
            assert spare == 0, name


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_once_questions_are_answered(browser: Browser, site: Path, theme: str) -> None:
    with reader_of(browser, color_scheme=theme, bypass_csp=True) as reader:
        page = reader.page
        for name in ("pair", "read-a-step"):
            page.goto(f"file://{site}/{name}/index.html")
            page.locator("form.ans input").first.fill("12345")
            page.get_by_role("button", name="Check").last.click()
            found = Axe().run(page)
            assert found.violations_count == 0, found.generate_report()
            while page.get_by_role("button", name="Give up").count():
                page.get_by_role("button", name="Give up").first.click()
            found = Axe().run(page)
            assert found.violations_count == 0, found.generate_report()


def test_the_theme_button_goes_round_and_is_remembered(reader: Reader, address: str) -> None:
    page = reader.page
    page.emulate_media(color_scheme="light")
    page.goto(address + "index.html")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    button = page.get_by_role("button", name="Theme")
    button.click()
    button.click()
    assert button.get_attribute("aria-label") == "Theme: dark. Change"
    dark = page.evaluate(ground)
    assert dark != light
    page.goto(address + "pair/index.html")
    assert page.evaluate(ground) == dark
    page.get_by_role("button", name="Theme").click()
    assert page.evaluate(ground) == light


def test_without_script_questions_have_their_answers_and_no_dead_buttons(
    browser: Browser, site: Path
) -> None:
    with reader_of(browser, java_script_enabled=False) as reader:
        page = reader.page
        page.goto(f"file://{site}/pair/index.html")
        assert page.get_by_role("button").count() == 0
        answers = page.locator("summary", has_text="Answer")
        assert answers.count() == 3
        answers.last.click()
        assert "It is 6\u2009ms" in page.locator("noscript details[open]").inner_text()
        page.goto(f"file://{site}/index.html")
        assert page.get_by_role("button").count() == 0


def test_on_paper_the_theme_is_light_and_there_are_no_controls(reader: Reader, address: str) -> None:
    page = reader.page
    page.emulate_media(media="print", color_scheme="dark")
    page.goto(address + "pair/index.html")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.get_by_role("button").count() == 0
    assert page.locator("svg.fig-svg").first.is_visible()
