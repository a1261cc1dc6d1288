"""Questions that are answered by pointing into a figure, by mouse and by keyboard; figures that point."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator, Page

from generator.publish.site import build
from tests.browser.conftest import Reader, reader_of
from tests.browser.packed import write_page
from tests.browser.timelines import FRAME, box_of, open_figure, state
from tests.lessons.small import DATA
from tests.publish.picks import PAGE, make_book

FIXTURE = json.loads((DATA / "picks.json").read_text("utf-8"))
MS = 1_000_000


@pytest.fixture(scope="session")
def picks_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("picks-site") / "site"
    build(make_book(tmp_path_factory.mktemp("picks")), out, lambda _line: None)
    return out


@pytest.fixture
def url(picks_site: Path) -> str:
    return f"file://{quote(str(picks_site.resolve()))}/{PAGE}"


@pytest.fixture
def page(browser: Browser, url: str) -> Iterator[Page]:
    with reader_of(browser, viewport={"width": 1280, "height": 900}, reduced_motion="reduce") as found:
        found.page.goto(url)
        yield found.page
        assert not found.complaints


def said(question: Locator) -> str:
    return question.locator(".fb").inner_text()


def status(question: Locator) -> str:
    return question.locator(".st").inner_text()


def press(question: Locator, name: str) -> None:
    question.get_by_role("button", name=name, exact=True).click()


def begin(page: Page, question: Locator, figure: str) -> None:
    """Go to the figure from a question by its button."""
    press(question, "Choose in the figure")
    open_figure(page, f"#{figure} trace-timeline")


def piece(page: Page, rank: int, lane: str, test: str) -> int:
    """The first span of a lane of which `test` is true: k kind, l layer, m micro-batch."""
    found: int = page.evaluate(
        f"""([r, lane]) => {{
          const s = timeline.model.ranks[r][lane];
          for (let i = 0; i < s.n; i++) {{
            const [k, l, m] = [s.kind[i], s.layer[i], s.microbatch[i]];
            if ({test}) return i;
          }}
          return -1;
        }}""",
        [rank, lane],
    )
    assert found >= 0
    return found


def click(page: Page, rank: int, lane: str, test: str) -> None:
    page.evaluate("timeline.scrollIntoView({ block: 'center' })")
    page.mouse.click(*box_of(page, rank, lane, piece(page, rank, lane, test)))


def gap_at(page: Page, rank: int, ms: float) -> tuple[float, float]:
    """Where in the window a rank's row of phases is at a time."""
    x, y = page.evaluate(
        """([rank, ns]) => {
          timeline.scrollIntoView({ block: "center" });
          const g = timeline.geometry(), box = g.box(rank, "phase");
          const at = timeline.canvas.getBoundingClientRect();
          return [at.left + g.x(ns), at.top + box.y + box.h / 2];
        }""",
        [rank, ms * MS],
    )
    return x, y


def test_grading_agrees_with_pythons(browser: Browser, tmp_path: Path) -> None:
    with reader_of(browser) as reader:
        reader.page.goto(f"file://{write_page(tmp_path)}")
        verdicts = reader.page.evaluate(
            "({ keys, cases }) => cases.map((c) => Shardbook.grade.pick(keys[c.key], c.picked))", FIXTURE
        )
        assert not reader.complaints
    for case, verdict in zip(FIXTURE["cases"], verdicts, strict=True):
        expected = {"state": case["state"], "title": case["says"], "html": case["html"]}
        assert verdict == expected, case["title"]


def test_an_event_by_mouse(page: Page) -> None:
    question = page.locator("#block")
    press(question, "Check")
    assert said(question) == "Choose a block in the figure first."
    assert status(question) == "open"

    begin(page, question, "pipeline")
    click(page, 1, "phase", "k === 1")
    assert "backward of micro-batch 0, rank 1" in question.locator(".chosen").inner_text()
    press(question, "Check")
    assert "That is the other stage." in said(question)
    assert status(question) == "not yet"

    click(page, 0, "phase", "k === 1 && m === 1")
    # The bar above the figure says and does the same as the question below.
    bar = page.locator("#pipeline .tl-ask")
    assert "backward of micro-batch 1, rank 0" in bar.inner_text()
    bar.get_by_role("button", name="Check").click()
    assert "Another one comes before it." in said(question)

    click(page, 0, "comm", "true")
    press(question, "Check")
    assert "That is a message." in said(question)
    click(page, 0, "phase", "k === 0")
    press(question, "Check")
    assert said(question).endswith("It is later on this rank.")

    click(page, 0, "phase", "k === 1 && m === 0")
    press(question, "Check")
    assert status(question) == "right"
    assert "It turns here." in said(question)
    assert "Computed as first(phase == 'backward' and rank == 0) on run pipe" in (
        question.locator("[data-computed]").inner_text()
    )
    assert not bar.count()
    assert not question.get_by_role("button", name="Choose in the figure").is_visible()
    # A closed question no longer follows what is selected.
    click(page, 0, "phase", "k === 0")
    assert "backward of micro-batch 0, rank 0" in question.locator(".chosen").inner_text()


def test_an_event_by_keyboard(page: Page) -> None:
    question = page.locator("#block")
    question.get_by_role("button", name="Choose in the figure").focus()
    page.keyboard.press("Enter")
    open_figure(page, "#pipeline trace-timeline")
    assert page.evaluate("document.activeElement === timeline.stage")
    for _ in range(4):  # two forwards, a backward, and the next
        page.keyboard.press(".")
        page.evaluate(FRAME)
    while "backward of micro-batch 0" not in question.locator(".chosen").inner_text():
        page.keyboard.press(",")
    page.keyboard.press("Enter")
    assert status(question) == "right"
    # Reading goes on at the explanation.
    assert page.evaluate("document.activeElement.id") == "block-said"


def test_every_key_is_in_the_list(page: Page) -> None:
    begin(page, page.locator("#block"), "pipeline")
    page.keyboard.press("?")
    said = page.get_by_role("dialog").inner_text()
    assert "Check what is selected as the answer" in said
    assert "Next gap of the rank" in said
    page.keyboard.press("Escape")


def test_a_gap_by_mouse(page: Page) -> None:
    question = page.locator("#idle")
    begin(page, question, "pipeline")
    click(page, 0, "phase", "k === 0")
    press(question, "Check")
    assert said(question) == "Choose an empty stretch in a row of computation first."

    page.mouse.click(*gap_at(page, 1, 1))
    press(question, "Check")
    assert "There rank 1 waits for its first micro-batch." in said(question)
    page.mouse.click(*gap_at(page, 0, 20))
    press(question, "Check")
    assert said(question).endswith("It is earlier on this rank.")

    page.mouse.click(*gap_at(page, 0, 6))
    page.locator("#pipeline").get_by_role("button", name="recorded").click()
    press(question, "Check")
    assert said(question) == "Choose an empty stretch in a row of computation first."
    page.mouse.click(*gap_at(page, 0, 6))
    press(question, "Check")
    assert "in the mode that the figure was in at first" in said(question)
    assert status(question) == "not yet"

    page.locator("#pipeline").get_by_role("button", name="one device each").click()
    page.mouse.click(*gap_at(page, 0, 6))
    press(question, "Check")
    assert status(question) == "right"


def test_a_gap_by_keyboard(page: Page) -> None:
    question = page.locator("#idle")
    question.get_by_role("button", name="Choose in the figure").press("Enter")
    open_figure(page, "#pipeline trace-timeline")
    chosen = question.locator(".chosen")
    page.keyboard.press("z")
    first = chosen.inner_text()
    assert "idle, rank 0" in first
    page.keyboard.press("z")
    assert chosen.inner_text() != first
    page.keyboard.press("z")  # there is no third, so it stays
    page.keyboard.press("Shift+Z")
    assert chosen.inner_text() == first
    page.keyboard.press("Shift+Z")
    assert chosen.inner_text() == first
    # On from an event: the gap after it.
    page.evaluate("timeline.choose({ rank: 0, lane: 'phase', index: 0 })")
    page.keyboard.press("z")
    assert chosen.inner_text() == first
    page.keyboard.press("Enter")
    assert status(question) == "right"
    assert page.evaluate("document.activeElement.id") == "idle-said"


def test_a_rank_by_mouse_and_keyboard(page: Page) -> None:
    question = page.locator("#late")
    begin(page, question, "ranks")
    click(page, 1, "phase", "k === 1")
    assert question.locator(".chosen").inner_text() == "Rank 1"
    press(question, "Check")
    assert "It is the one that is waited for." in said(question)
    question.get_by_role("button", name="Choose in the figure").press("Enter")
    for _ in range(9):
        page.keyboard.press("ArrowUp")
    assert question.locator(".chosen").inner_text() == "Rank 0"
    page.keyboard.press("Enter")
    assert status(question) == "right"


def test_a_layer_is_not_the_phase_around_it(page: Page) -> None:
    question = page.locator("#layer")
    begin(page, question, "ranks")
    page.keyboard.press("0")
    click(page, 0, "phase", "k === 0")
    press(question, "Check")
    assert "lies inside of what you chose" in said(question)
    click(page, 0, "layer", "k === 1 && l === 1")
    press(question, "Check")
    assert said(question).endswith("It is earlier on this rank.")
    click(page, 1, "layer", "k === 0 && l === 1")
    press(question, "Check")
    assert status(question) == "right"


def test_giving_up_says_the_answer_and_outlines_it(page: Page) -> None:
    question = page.locator("#block")
    press(question, "Give up")
    assert status(question) == "given up"
    assert "The answer: backward of micro-batch 0 on rank 0, 8.87" in said(question)
    open_figure(page, "#pipeline trace-timeline")
    assert outlined(page) == [[0, "phase", 9, 13]]


def outlined(page: Page) -> list[list[Any]]:
    """What is outlined: rank, lane, begin and end in whole ms."""
    found: list[list[Any]] = page.evaluate(
        """() => Shardbook.marks.marks(timeline.model, timeline.state.outlines)
          .map((m) => [m.rank, m.lane, Math.round(m.from / 1e6), Math.round(m.to / 1e6)])"""
    )
    return found


def test_an_answer_is_remembered_and_shown_again(page: Page) -> None:
    question = page.locator("#layer")
    begin(page, question, "ranks")
    click(page, 0, "phase", "k === 0")
    press(question, "Check")
    page.reload()
    assert status(question) == "not yet"
    assert "lies inside of what you chose" in said(question)
    assert question.locator(".chosen").inner_text() == "On rank 0"

    begin(page, question, "ranks")
    click(page, 0, "layer", "k === 0 && l === 1")
    press(question, "Check")
    page.reload()
    assert status(question) == "right"
    assert page.evaluate("document.activeElement === document.body")
    open_figure(page, "#ranks trace-timeline")
    assert [0, "layer", 10, 18] in outlined(page)


@pytest.mark.parametrize("kept", ["tried", "right"])
def test_what_was_kept_and_cannot_be_read_does_no_harm(page: Page, kept: str) -> None:
    broken = ("null", "{", '"x"', '{"rank":"0"}', '{"rank":0,"rows":["x"]}', '{"rank":0,"mode":"isolated"}')
    names = ("block", "idle", "late")
    for answer in broken:
        page.evaluate(
            """([names, state, answer]) => names.forEach((name) => {
              const { key, hash } = document.getElementById(name).dataset;
              localStorage.setItem(`shardbook:progress:${key}`, JSON.stringify({ hash, state, answer }));
            })""",
            [names, kept, answer],
        )
        page.reload()
        for name in names:
            assert status(page.locator(f"#{name}")) in (
                ("right",) if kept == "right" else ("open", "not yet")
            )


def test_a_focus_is_where_the_camera_starts_and_a_highlight_is_outlined(page: Page) -> None:
    open_figure(page, "#ranks trace-timeline")
    assert 0 < state(page, "from") < 10 * MS
    assert 24 * MS < state(page, "to") < page.evaluate("timeline.model.stepNs")
    found = outlined(page)
    assert [0, "layer", 10, 18] in found
    assert [1, "layer", 16, 24] in found
    assert [lane for _, lane, _, _ in found].count("comm") == 2
    assert page.evaluate("location.hash") == ""


def test_a_cover_hides_a_figure_until_its_question_is_answered(page: Page) -> None:
    assert page.get_by_text("Covered until you have answered Question 4").is_visible()
    assert "COVERED WORDS" not in page.locator("main").inner_text()
    assert "COVERED WORDS" not in page.locator("main").aria_snapshot()
    assert not page.evaluate("find('COVERED WORDS')")
    figures = page.locator("trace-timeline")
    assert [figures.nth(i).is_visible() for i in range(3)] == [True, True, False]

    question = page.locator("#late")
    page.get_by_role("link", name="Question 4").last.press("Enter")
    begin(page, question, "ranks")
    click(page, 1, "phase", "k === 1")
    press(question, "Check")  # a wrong prediction is one
    assert page.get_by_text("COVERED WORDS").is_visible()
    assert "COVERED WORDS" in page.locator("main").aria_snapshot()
    assert not page.get_by_text("Covered until").count()
    assert figures.last.is_visible()
    open_figure(page, "details trace-timeline")
    page.reload()
    assert page.get_by_text("COVERED WORDS").is_visible()


def test_giving_up_takes_a_cover_away(page: Page) -> None:
    press(page.locator("#late"), "Give up")
    assert page.get_by_text("COVERED WORDS").is_visible()


def test_a_link_moves_the_camera_and_back_by_keyboard(page: Page) -> None:
    link = page.get_by_role("link", name="micro-batch 1")
    link.focus()
    page.keyboard.press("Enter")
    view = page.locator("[id='show:second']")
    view.get_by_role("button", name="Back").wait_for()
    open_figure(page, "#pipeline trace-timeline")
    assert page.evaluate("document.activeElement.id") == "show:second"
    assert "Two forwards and two backwards." in view.inner_text()
    assert [rank for rank, lane, _, _ in outlined(page) if lane == "phase"] == [0, 0, 1, 1]
    assert state(page, "to") - state(page, "from") <= page.evaluate("timeline.model.stepNs")

    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert not view.is_visible()
    assert outlined(page) == []
    assert [state(page, "from"), state(page, "to")] == [0, page.evaluate("timeline.model.stepNs")]
    assert link.evaluate("e => e === document.activeElement")


def test_a_link_moves_the_camera_and_back_by_mouse(page: Page) -> None:
    page.get_by_role("link", name="micro-batch 1").click()
    second, turn = page.locator("[id='show:second']"), page.locator("[id='show:turn']")
    second.get_by_role("button", name="Back").wait_for()
    press(page.locator("#block"), "Give up")
    page.get_by_role("link", name="turns").click()
    turn.get_by_role("button", name="Back").wait_for()
    assert not second.is_visible()
    open_figure(page, "#pipeline trace-timeline")
    assert outlined(page) == [[0, "phase", 9, 13], [1, "phase", 4, 8]]
    turn.get_by_role("button", name="Back").click()
    # Back to before the first of them; the answer that was given up stays outlined.
    assert [state(page, "from"), state(page, "to")] == [0, page.evaluate("timeline.model.stepNs")]
    assert outlined(page) == [[0, "phase", 9, 13]]


def test_an_address_with_a_view_shows_it(page: Page, url: str) -> None:
    page.goto("about:blank")
    page.goto(url + "#show:turn")
    page.locator("[id='show:turn']").get_by_role("button", name="Back").wait_for()
    open_figure(page, "#pipeline trace-timeline")
    assert [rank for rank, _, _, _ in outlined(page)] == [0, 1]


def test_without_script_all_is_there(browser: Browser, url: str) -> None:
    with reader_of(browser, java_script_enabled=False) as reader:
        page = reader.page
        page.goto(url)
        question = page.locator("#block")
        assert not question.locator("form").is_visible()
        question.locator("summary", has_text="Answer").click()
        answer = question.locator("noscript details[open]").inner_text()
        assert "backward of micro-batch 0 on rank 0, 8.87" in answer
        assert "It turns here." in answer
        assert page.get_by_text("Here it turns.").is_visible()
        assert not page.get_by_text("COVERED WORDS").is_visible()
        page.get_by_text("Covered: answer").click()
        assert page.get_by_text("COVERED WORDS").is_visible()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_nothing_and_nothing_is_too_wide(
    browser: Browser, url: str, theme: str, width: int
) -> None:
    size = {"width": width, "height": 900}
    with reader_of(
        browser, color_scheme=theme, bypass_csp=True, viewport=size, reduced_motion="reduce"
    ) as reader:
        page = reader.page
        page.goto(url)
        clean(page, width)
        begin(page, page.locator("#idle"), "pipeline")
        page.keyboard.press("z")
        page.get_by_role("link", name="micro-batch 1").click()
        page.get_by_role("button", name="Back").wait_for()
        clean(page, width)
        while page.get_by_role("button", name="Give up").count():
            page.get_by_role("button", name="Give up").first.click()
        clean(page, width)


def clean(page: Page, width: int) -> None:
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_what_an_author_writes_is_text(page: Page) -> None:
    for name in ("block", "idle", "layer", "late"):
        press(page.locator(f"#{name}"), "Give up")
    assert page.evaluate("window.pwned") is None
    assert page.locator("b[onclick]").count() == 0


def test_no_request_leaves_the_folder(browser: Browser, picks_site: Path, url: str) -> None:
    found: Reader
    with reader_of(browser) as found:
        found.page.goto(url)
        for name in ("pipeline", "ranks"):
            open_figure(found.page, f"#{name} trace-timeline")
        folder = f"file://{quote(str(picks_site.resolve()))}/"
        assert [r for r in found.requests if not r.startswith(folder)] == []
        assert not found.complaints
