"""A site as it lies on disk: the same every time, whole or not at all, every link alive, all text text."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from generator.book import Book, read_book
from generator.errors import Problems, UserError
from generator.publish import output
from generator.publish.site import POLICY, build
from tests.publish.html_pages import pages, parsed
from tests.publish.small import NASTY, NASTY_RUN, contents, make_book

PAGE_LIMIT_BYTES = 60_000
BUILD = """
import sys
from pathlib import Path
from generator.book import read_book
from generator.publish.site import build
build(read_book(Path(sys.argv[1])), Path(sys.argv[2]), lambda line: None)
"""


def quiet(_line: str) -> None:
    """Progress that nobody reads."""


def test_two_builds_give_the_same_bytes_whatever_the_hash_seed_and_the_cache(
    book: Book, repository: Path, tmp_path: Path
) -> None:
    found = []
    for seed in ("1", "2"):
        out = tmp_path / seed
        environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(repository)}
        subprocess.run([sys.executable, "-c", BUILD, str(book.root), str(out)], check=True, env=environment)
        found.append(contents(out))
    for entry in book.cache.iterdir():
        entry.unlink()
    build(book, tmp_path / "uncached", quiet)
    found.append(contents(tmp_path / "uncached"))

    assert found[0] == found[1]
    assert found[0] == found[2]


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda text: text[: len(text) // 2], id="cut short"),
        pytest.param(lambda text: text.replace(b'"step_ns":', b'"step_ns":9'), id="changed"),
        pytest.param(lambda text: b"", id="empty"),
    ],
)
def test_a_damaged_cache_entry_is_made_again(tmp_path: Path, spoil: Callable[[bytes], bytes]) -> None:
    book = make_book(tmp_path / "book")
    build(book, tmp_path / "first", quiet)
    for entry in book.cache.iterdir():
        entry.write_bytes(spoil(entry.read_bytes()))

    build(book, tmp_path / "second", quiet)

    assert contents(tmp_path / "first") == contents(tmp_path / "second")


def test_every_link_and_fragment_leads_somewhere_in_the_folder(site: Path) -> None:
    ids = {page.resolve(): set(parsed(page).values("id")) for page in pages(site)}
    links = 0
    for page in pages(site):
        for href in [*parsed(page).values("href"), *parsed(page).values("src")]:
            split = urlsplit(href)
            if split.scheme:
                continue
            target = (page.parent / unquote(split.path)).resolve() if split.path else page.resolve()
            assert target.is_file(), f"{page.name}: {href}"
            assert target.is_relative_to(site.resolve())
            assert not split.fragment or split.fragment in ids[target], f"{page.name}: {href}"
            links += 1
    assert links > 100


def test_ids_are_unique_on_a_page(site: Path) -> None:
    for page in pages(site):
        twice = [name for name, times in Counter(parsed(page).values("id")).items() if times > 1]
        assert not twice, page


def test_nothing_is_loaded_from_elsewhere_and_the_policy_holds(site: Path) -> None:
    for page in pages(site):
        found = parsed(page)
        loaded = found.values("src") + [a["href"] for a in found.all("link")]
        assert not [address for address in loaded if urlsplit(address).scheme], page
        assert [a["content"] for a in found.all("meta") if "http-equiv" in a] == [POLICY]
        assert not found.values("style"), page
        assert not found.all("style"), page


def test_names_and_texts_that_look_like_markup_are_text(site: Path) -> None:
    for page in pages(site):
        found = parsed(page)
        assert [set(a) for a in found.all("script")] == [{"src"}, {"src", "defer"}], page
        handlers = [name for _, a in found.elements for name in a if name.startswith("on")]
        assert not handlers, page
        assert not [a for a in found.all("b") if a and a != {"class": "label"}], page


def test_names_and_texts_are_shown_as_they_are(site: Path) -> None:
    # Quotation marks are set as the typographer likes in Markdown, so those are compared elsewhere.
    words = "{{ 7*7 }} {% raw %} &"
    exercise = parsed(site / "pair" / "index.html").text
    for name in ("Two ranks", "Title", "Caption", "Prose", "Which rank waits?", "Source", "On a cluster"):
        assert f"{name} <script>pwned = 1</script><b onclick=" in exercise
    assert exercise.count(words) > 10
    run = parsed(site / "runs" / NASTY_RUN / "index.html").text
    assert f"Two ranks {NASTY}" in run
    assert f"shardbook record {NASTY}" in run
    assert NASTY_RUN in parsed(site / "index.html").text


def test_the_first_page_compares_a_run_a_scheme_in_the_order_of_the_course(
    book: Book, site: Path, tmp_path: Path
) -> None:
    def rows(home: Path) -> list[str]:
        found = parsed(home).all("a")
        return [unquote(a["href"]) for a in found if a.get("class") == "srow"]

    # The pipeline is nobody's lesson.
    assert rows(site / "index.html") == ["read-a-step/index.html", "pair/index.html"]

    without = make_book(tmp_path / "book")
    shutil.rmtree(without.exercises)
    build(without, without.site, quiet)
    assert rows(without.site / "index.html") == [
        "runs/alone/index.html", f"runs/{NASTY_RUN}/index.html", "runs/pipe/index.html"]  # fmt: skip


def test_a_book_says_which_runs_its_first_page_compares(tmp_path: Path) -> None:
    book = make_book(tmp_path / "book")
    path = book.root / "book.toml"
    written = path.read_text(encoding="utf-8")
    path.write_text(f'compare = ["pipe", "alone"]\n{written}', encoding="utf-8")
    build(read_book(book.root), book.site, quiet)
    found = parsed(book.site / "index.html").all("a")
    assert [a["href"].split("/")[-2] for a in found if a.get("class") == "srow"] == ["pipe", "read-a-step"]

    path.write_text(f'compare = [\n"alone",\n"pip"]\n{written}', encoding="utf-8")
    with pytest.raises(UserError, match=r"book.toml:3: there is no training run 'pip'.*'pipe'"):
        build(read_book(book.root), book.site, quiet)

    path.write_text(f"compare = 3\n{written}", encoding="utf-8")
    with pytest.raises(UserError, match=r"book.toml:1: 'compare' must be a list of run ids"):
        read_book(book.root)


def test_an_exercise_page_is_light(site: Path) -> None:
    shared = sum(len(gzip.compress(p.read_bytes(), 9)) for p in (site / "assets").glob("*.*s*"))
    for page in (site / "pair" / "index.html", site / "read-a-step" / "index.html"):
        assert len(gzip.compress(page.read_bytes(), 9)) + shared <= PAGE_LIMIT_BYTES


def test_a_failed_build_leaves_the_previous_site(tmp_path: Path) -> None:
    book = make_book(tmp_path / "book")
    build(book, book.site, quiet)
    before = contents(book.site)
    exercise = book.exercises / "01-alone" / "01-read-a-step.md"
    exercise.write_text(exercise.read_text().replace("busy(phase='forward')", "bizzy()"))

    with pytest.raises((Problems, UserError)):
        build(book, book.site, quiet)

    assert contents(book.site) == before


@pytest.mark.parametrize("renames", [0, 1])
def test_an_interrupted_build_leaves_the_previous_site(
    book: Book, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, renames: int
) -> None:
    out = tmp_path / "site"
    build(book, out, quiet)
    (out / ".gitignore").write_text("*\n!.gitignore\n")
    before = contents(out)
    done = []
    rename = Path.rename

    def stopped(self: Path, target: Path) -> Path:
        done.append(target)
        if len(done) == renames + 1:
            raise KeyboardInterrupt
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", stopped)
    with pytest.raises(KeyboardInterrupt):
        build(book, out, quiet)
    monkeypatch.undo()

    assert contents(out) == before
    assert [p.name for p in tmp_path.iterdir()] == ["site"]


def test_a_site_lost_between_two_renames_is_found_again(book: Book, tmp_path: Path) -> None:
    out = tmp_path / "site"
    build(book, out, quiet)
    before = contents(out)
    out.rename(tmp_path / ".site.old")

    output.check_target(book, out)

    assert contents(out) == before


def test_pages_of_a_previous_build_are_gone_and_gitignore_stays(book: Book, tmp_path: Path) -> None:
    out = tmp_path / "site"
    build(book, out, quiet)
    (out / ".gitignore").write_text("*\n!.gitignore\n")
    (out / "old.html").write_text("an exercise that is no more")

    build(book, out, quiet)

    assert not (out / "old.html").exists()
    assert (out / ".gitignore").read_text() == "*\n!.gitignore\n"


def test_a_folder_that_is_no_site_is_not_replaced(book: Book, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("two years of work")

    with pytest.raises(UserError, match="something else than a site"):
        build(book, tmp_path, quiet)
    with pytest.raises(UserError, match="sources"):
        build(book, book.root, quiet)
    with pytest.raises(UserError, match="sources"):
        build(book, book.exercises / "01-alone", quiet)

    assert (tmp_path / "thesis.txt").read_text() == "two years of work"


def test_what_no_build_has_made_is_not_removed(book: Book, tmp_path: Path) -> None:
    out = tmp_path / "site"
    build(book, out, quiet)
    (out / ".git").write_text("gitdir: elsewhere")

    with pytest.raises(UserError, match=r"holds \.git"):
        build(book, out, quiet)

    assert (out / ".git").read_text() == "gitdir: elsewhere"


def test_a_file_in_the_sites_place_stays(book: Book, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for out in (tmp_path / "file", tmp_path / "file" / "site"):
        with pytest.raises(UserError):
            build(book, out, quiet)
    assert (tmp_path / "file").read_text() == "mine"


def test_builds_at_the_same_time_each_leave_a_whole_site(
    book: Book, repository: Path, tmp_path: Path
) -> None:
    build(book, tmp_path / "alone", quiet)
    environment = os.environ | {"PYTHONPATH": str(repository)}
    command = [sys.executable, "-c", BUILD, str(book.root), str(tmp_path / "site")]
    builds = [subprocess.Popen(command, env=environment) for _ in range(3)]

    assert [b.wait() for b in builds] == [0, 0, 0]
    assert contents(tmp_path / "site") == contents(tmp_path / "alone")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["alone", "site"]


def test_a_link_that_leads_nowhere_fails_the_build(tmp_path: Path) -> None:
    book = make_book(tmp_path / "book")
    exercise = book.exercises / "01-alone" / "01-read-a-step.md"
    exercise.write_text(exercise.read_text().replace("#which", "#whither"))

    with pytest.raises(UserError, match=r"01-read-a-step.md:\d+: .*whither"):
        build(book, book.site, quiet)


def test_public_addresses_stand_in_the_pages_only_with_a_url(site: Path, tmp_path: Path) -> None:
    assert not (site / "sitemap.xml").exists()
    assert not [a for p in pages(site) for a in parsed(p).all("link") if a["rel"] == "canonical"]

    book = make_book(tmp_path / "book", url="https://example.org/book")
    build(book, book.site, quiet)

    home = parsed(book.site / "index.html")
    assert [a["href"] for a in home.all("link") if a["rel"] == "canonical"] == ["https://example.org/book/"]
    assert "<loc>https://example.org/book/pair/</loc>" in (book.site / "sitemap.xml").read_text()
    missing = parsed(book.site / "404.html")
    assert all(href.startswith(("https://example.org/book/", "#")) for href in missing.values("href"))


def test_a_book_may_bring_its_own_templates(tmp_path: Path) -> None:
    root = tmp_path / "book"
    make_book(root)
    (root / "templates").mkdir()
    (root / "templates" / "404.html").write_text(
        '<meta name="generator" content="Shardbook">{{ site.title }}'
    )
    book = read_book(root)
    build(book, book.site, quiet)
    assert "A small book" in (book.site / "404.html").read_text()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"\n{{ nothing }}", "404.html:2: .*'nothing' is undefined"),
        (b"{{ 1 + 'x' }}", "404.html:1: .*unsupported operand"),
        (b"{{ asset('nothing.css') }}", "404.html:1: .*nothing.css"),
        (b"{% if %}", "404.html:1: not a valid template"),
        (b"\xe9", "templates: the template fails for 404.html"),
        (b"<p id='a'><p id='b'><p class='x' id=\"a\"><p id=\"a\">", "the id 'a' stands twice"),
    ],
)
def test_a_template_of_the_book_fails_with_its_line(content: bytes, says: str, tmp_path: Path) -> None:
    make_book(tmp_path / "book")
    (tmp_path / "book" / "templates").mkdir()
    (tmp_path / "book" / "templates" / "404.html").write_bytes(content)
    book = read_book(tmp_path / "book")
    with pytest.raises(UserError, match=says):
        build(book, book.site, quiet)


def test_a_misconception_within_the_tolerance_fails_the_build(tmp_path: Path) -> None:
    book = make_book(tmp_path / "book")
    exercise = book.exercises / "01-alone" / "01-read-a-step.md"
    wrong, right = (
        "busy(phase='backward') / step_time()",
        "1.01 * busy(phase='backward') / busy(phase='forward')",
    )
    exercise.write_text(exercise.read_text().replace(f'value = "{wrong}"', f'value = "{right}"'))
    with pytest.raises(Problems, match="within the tolerance"):
        build(book, book.site, quiet)


def test_one_broken_file_of_a_run_is_told_of_once(tmp_path: Path) -> None:
    book = make_book(tmp_path / "book")
    (book.runs / "alone" / "rank-000.json.gz").unlink()
    with pytest.raises(Problems) as caught:
        build(book, book.site, quiet)
    [problem] = caught.value.problems
    assert "run.toml:" in str(problem)
    assert "is missing" in str(problem)


@pytest.mark.parametrize("spoil", [lambda p: p.write_text("x"), lambda p: p.mkdir()], ids=["file", "folder"])
def test_a_link_calibration_that_is_broken_is_the_only_problem(
    tmp_path: Path, spoil: Callable[[Path], object]
) -> None:
    book = make_book(tmp_path / "book")
    calibration = next(
        p for p in book.runs.iterdir() if 'kind = "calibration"' in (p / "run.toml").read_text()
    )
    (calibration / "run.toml").unlink()
    spoil(calibration / "run.toml")
    with pytest.raises(Problems) as caught:
        build(book, book.site, quiet)
    assert len(caught.value.problems) == 1


def test_headings_that_are_the_same_are_told_apart(tmp_path: Path) -> None:
    book = make_book(tmp_path / "book")
    exercise = book.exercises / "01-alone" / "01-read-a-step.md"
    exercise.write_text(exercise.read_text() + "\n## Sources\n\nx\n\n## Ratio\n\ny\n\n## Sources\n\nz\n")
    build(book, book.site, quiet)
    ids = parsed(book.site / "read-a-step" / "index.html").values("id")
    assert {"sources", "sources-2", "sources-3", "ratio", "ratio-2"} <= set(ids)


def test_a_book_without_runs_or_exercises_is_a_site_too(tmp_path: Path) -> None:
    (tmp_path / "book.toml").write_text('title = "Empty"\n')
    book = read_book(tmp_path)
    build(book, book.site, quiet)
    assert "Empty" in parsed(book.site / "index.html").text
