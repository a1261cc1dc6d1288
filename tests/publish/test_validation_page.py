"""The page of validation: what it shows is what was computed, and what there is nothing of is left out."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from pathlib import Path

import pytest

from generator.book import Book, read_book
from generator.lessons.comparisons import COMPARISONS
from generator.publish.library import Library
from generator.publish.promises import predicted, promises
from generator.publish.site import build
from generator.publish.validation.page import validation_page
from generator.publish.validation.shown import axis_percent, signed
from generator.runs.manifest import FILE_NAME, read_manifest
from generator.timeline.repeatability import FILE_NAME as REPEATED
from tests.publish.html_pages import parsed
from tests.publish.small import MS, NASTY_RUN, make_book
from tests.timeline.synthetic import Issue, Script, Wait, Work, write_manifest, write_run

PAGE = Path("validation", "index.html")
SIZE = 65536
CALL_NS = 300_000 + 4 * SIZE


def quiet(_line: str) -> None:
    """Progress that nobody reads."""


def library_of(book: Book) -> Library:
    return Library(book, quiet)


def sections(page: Path) -> list[str]:
    return [a["id"] for a in parsed(page).all("section")]


def rows(page: Path) -> list[list[str]]:
    """The words of every row of every table."""
    found = []
    for row in re.findall(r"<tr[^>]*>(.*?)</tr>", page.read_text(encoding="utf-8"), re.DOTALL):
        cells = re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, re.DOTALL)
        found.append([html.unescape(re.sub(r"<[^>]*>", "", cell)).strip() for cell in cells])
    return found


# ---- what a small book has


def test_a_section_for_all_that_the_book_has_and_no_other(site: Path) -> None:
    assert sections(site / PAGE) == [
        "in-short",
        "replay",
        "isolated",
        "matching",
        "losses",
        "price",
        "unknown",
    ]


def test_every_other_page_leads_there_and_a_runs_page_to_the_replay(book: Book, site: Path) -> None:
    for page in (site / "index.html", site / "pair" / "index.html", site / "runs" / "index.html"):
        assert [h for h in parsed(page).values("href") if h.endswith("validation/index.html")]
    run = parsed(site / "runs" / "alone" / "index.html").values("href")
    assert "../../validation/index.html#replay" in run
    home = parsed(site / "index.html").values("href")
    for promise in promises(library_of(book)):
        assert f"validation/index.html#{promise.section}" in home


def test_numbers_are_those_of_the_validations(book: Book, site: Path) -> None:
    text = parsed(site / PAGE).text
    library = library_of(book)
    found = {m.id: library.validation(m.id) for m in library.with_steps}
    calls = sum(v.calls for v in found.values())
    assert calls == 1 + 2 * 3
    assert f"{calls} calls in 2 steps of 2 runs." in text
    assert f"{calls} of {calls} calls of the representative steps have the same members" in text
    assert "In 2 of 2 runs no call ends elsewhere than it was recorded." in text
    assert "No call was complete on a rank before its last member had arrived" in text
    alone = found["pipe"].median_replay_error_alone
    assert alone < -0.1
    assert f"{alone * 100:.1f}".replace("-", "−") in text


def test_every_figure_has_its_numbers_in_a_table(site: Path) -> None:
    found = parsed(site / PAGE)
    captions = found.text
    for caption in ("Replay with recorded durations", "Recorded and isolated step", "Calls by verdict",
                    "Calls matched across ranks", "Losses against the partner"):  # fmt: skip
        assert caption in captions
    pictures = [a for a in found.all("svg") if a.get("class") == "dots"]
    assert len(pictures) > 10
    assert all("aria-label" in a or a.get("aria-hidden") == "true" for a in pictures)
    assert found.text.count(NASTY_RUN) >= 4


def test_what_is_not_known_is_said(book: Book, site: Path) -> None:
    text = parsed(site / PAGE).text
    assert "Nothing was held against a GPU." in text
    assert "All runs were recorded on one kind of machine." in text
    assert "More ranks than two" not in text  # no run has
    assert "Reductions under FSDP" not in text
    assert "not measured in this book" in predicted(library_of(book))
    assert predicted(library_of(book)) in parsed(site / "index.html").text


# ---- a core each


def core_scripts(wall_ms: float, call_ns: int) -> list[Script]:
    work = Work(round(wall_ms * MS), cpu_ns=10 * MS)
    last = replace(work, phase="backward")
    return [[work, Issue("sum", (0, 1), call_ns, bytes=SIZE), Wait("sum"), last] for _ in range(2)]


@pytest.fixture
def with_cores(tmp_path: Path) -> Book:
    """The small book with two pairs: one predicted a little long, one 5 % short."""
    book = make_book(tmp_path / "book")
    for scheme, each_ms in (("ddp", 10.0), ("tp", 10.8)):
        write_run(book.runs, core_scripts(21, 3 * MS), run_id=f"cores-shared-{scheme}")
        write_run(book.runs, core_scripts(each_ms, CALL_NS), run_id=f"cores-each-{scheme}")
    write_run(book.runs, core_scripts(21, 3 * MS), run_id="cores-shared-alone")
    return book


def test_pairs_of_recordings_have_a_section_of_their_own(with_cores: Book) -> None:
    build(with_cores, with_cores.site, quiet)
    page = with_cores.site / PAGE
    assert "cores" in sections(page)
    ms = (20 * MS + CALL_NS) / MS
    assert ["ddp", "", "45.0", f"{ms:.1f}", f"{ms:.1f}", "0.0\u2009%"] in rows(page)
    assert ["tp", "", "45.0", f"{ms:.1f}", f"{ms + 1.6:.1f}", "−7.2\u2009%"] in rows(page)
    text = parsed(page).text
    assert "1 of 1 in cores-each-ddp" in text
    assert "work, waking up from a wait included, takes its thread-CPU time" in text


def test_the_worst_pair_is_what_is_measured_against_the_promise(with_cores: Book) -> None:
    library = library_of(with_cores)
    checks = library.core_checks()
    assert [c.scheme for c in checks] == ["ddp", "tp"]
    worst, median = (p for p in promises(library) if p.section == "cores")
    assert (worst.promised, median.promised) == ("≤ 6\u2009%", "≤ 3\u2009%")
    assert (worst.measured, worst.runs) == ("7.22\u2009%", 4)
    assert worst.at_px is not None
    assert worst.at_px > 100  # over its limit
    assert "in the median of 2 schemes" in predicted(library)
    # A second library finds it in the cache.
    assert library_of(with_cores).core_checks() == checks


# ---- two recordings, closed forms, no runs


def test_figures_of_two_recordings_are_shown_where_a_book_has_them(tmp_path: Path) -> None:
    book = make_book(tmp_path / "book")
    rows = [("alone", 40.0, 38.0), ("gone", 100.0, 101.0)]
    listed = "\n".join(f'[[runs]]\nrun = "{r}"\nfirst_ms = {a}\nsecond_ms = {b}' for r, a, b in rows)
    (book.runs / REPEATED).write_text(f'note = "On `one` day."\n{listed}\n', encoding="utf-8")
    build(book, book.site, quiet)
    found = parsed(book.site / PAGE)
    assert "repeatability" in sections(book.site / PAGE)
    assert "In the median of 2 runs the two differ by 3.0" in found.text
    assert "On one day." in found.text
    links = [h for h in found.values("href") if "/runs/" in h]
    assert any("alone" in h for h in links)
    assert not any("gone" in h for h in links)


def test_closed_forms_are_held_against_the_runs_of_their_names(tmp_path: Path) -> None:
    book = make_book(tmp_path / "book")
    write_run(book.runs, [[Work(10 * MS), Issue("a", tuple(range(4)), MS, bytes=400_000), Wait("a")]] * 4,
              run_id="ddp")  # fmt: skip
    found = read_manifest(book.runs / "ddp" / FILE_NAME)
    like = read_manifest(book.runs / "alone" / FILE_NAME)
    assert like.model is not None
    model = replace(like.model, parameters_per_rank=(100_000,) * 4)
    write_manifest(book.runs / "ddp", replace(found, model=model, batch=like.batch))
    data = validation_page(library_of(book)).data
    blocks = {b.what: b for g in data.formulas for b in g.blocks}  # type: ignore[union-attr]
    (row,) = blocks["Bytes a rank sends to reduce gradients under DDP"].rows
    assert (row.formula, row.measured) == ("0.6\u2009MB", "0.6\u2009MB")
    assert (row.difference, row.good) == ("none", True)
    assert [link.title for link in row.runs] == ["ddp"]


def test_a_run_that_disagrees_with_its_closed_form_is_marked(tmp_path: Path) -> None:
    assert any("tp" in c.runs for c in COMPARISONS)
    book = make_book(tmp_path / "book")
    calls = [Issue("a", (0, 1), MS, bytes=400_000), Wait("a")]
    write_run(book.runs, [[Work(10 * MS), *calls]] * 2, run_id="tp")
    found = read_manifest(book.runs / "tp" / FILE_NAME)
    like = read_manifest(book.runs / NASTY_RUN / FILE_NAME)
    write_manifest(book.runs / "tp", replace(found, model=like.model, batch=like.batch))
    build(book, book.site, quiet)
    assert "r nw off" in parsed(book.site / PAGE).values("class")
    # Two layers should have eight all-reduces; it has one.
    assert ["tp", "8", "1", "−87.5\u2009%"] in rows(book.site / PAGE)


def test_a_book_without_runs_has_the_page_too(tmp_path: Path) -> None:
    (tmp_path / "book.toml").write_text('title = "Empty"\n', encoding="utf-8")
    book = read_book(tmp_path)
    build(book, book.site, quiet)
    assert sections(book.site / PAGE) == []
    assert "How right is it?" in parsed(book.site / PAGE).text


# ---- words


def test_a_difference_has_a_sign_unless_it_is_none() -> None:
    assert signed(0.0123) == "+1.2\u2009%"
    assert signed(-0.0123) == "−1.2\u2009%"
    assert signed(0.0001) == signed(0.0) == "0.0\u2009%"
    assert axis_percent(0.0) == "0"
    assert axis_percent(-0.05) == "−5\u2009%"
