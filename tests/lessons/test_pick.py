"""Questions that are answered by pointing: from the file to marks in a figure."""

from __future__ import annotations

from pathlib import Path

import pytest

from generator.errors import Problems
from generator.lessons.answers import ResolvedExercise, resolve
from generator.lessons.arithmetic import FUNCTIONS, Wrong
from generator.lessons.exercise import find_exercises
from generator.lessons.figures import TimelineFigure
from generator.lessons.kinds.pick import PickQuestion, ResolvedPick
from generator.units import quantity
from tests.lessons.small import EXERCISE, copy_book, scope

PICK = """
```toml question
id = "picked"
kind = "pick"
what = "event"
prompt = "Pick the first all-reduce that is exposed."
answer = "first(op == 'all_reduce' and exposed > 0.5)"
hint = "Look for {count(op='all_reduce')}."
explain = "It takes {exposed_comm()}."
[[misconceptions]]
value = "first(op == 'all_reduce')"
say = "All of {comm_time()} of it is hidden."
```
"""


def resolved(tmp_path: Path, *, text: str = PICK, figure: str = "") -> ResolvedExercise:
    """The sample exercise with a pick behind its figure, and the figure with more keys."""
    book = copy_book(tmp_path)
    path = book.root / EXERCISE
    written = path.read_text("utf-8")
    head, tail = written.split('caption = "The step takes {step_time()}."\n```\n')
    path.write_text(
        f'{head}caption = "The step takes {{step_time()}}."\n{figure}\n```\n{text}{tail}', "utf-8"
    )
    exercises, problems = find_exercises(book)
    assert [str(p) for p in problems] == []
    return resolve(next(e for e in exercises if e.path == path), scope())


def pick_of(exercise: ResolvedExercise) -> ResolvedPick:
    [found] = [b for b in exercise.blocks if isinstance(b, ResolvedPick)]
    return found


def test_a_pick_becomes_marks_in_its_figure(tmp_path: Path) -> None:
    found = pick_of(resolved(tmp_path))
    assert found.key == "exposed-communication/picked"
    assert (found.what, found.figure, found.run, found.mode) == ("event", "figure-1", "ddp", "isolated")
    assert found.answer == ((0, 102), (1, 102))
    assert found.shown == "all-reduce 3 of 3 in backward on ranks 0 and 1, 70\u2009ms to 90.4\u2009ms"
    assert [m.marks for m in found.misconceptions] == [((0, 100), (1, 100))]
    assert found.label == "reconstructed"
    assert "20.4" in found.explain
    assert "50.4" in found.misconceptions[0].say
    assert "3" in found.hint


def test_a_gap_is_marked_by_its_times(tmp_path: Path) -> None:
    text = PICK.replace('"event"', '"gap"').replace(
        "first(op == 'all_reduce' and exposed > 0.5)", "rank == 0"
    )
    text = text.replace("first(op == 'all_reduce')", "rank == 1")
    found = pick_of(resolved(tmp_path, text=text))
    assert found.answer == ((0, 70_000_000, 90_400_000),)
    assert found.shown == "the gap on rank 0, 70\u2009ms to 90.4\u2009ms"


def test_a_rank_is_computed(tmp_path: Path) -> None:
    text = PICK.replace('"event"', '"rank"').replace(
        "first(op == 'all_reduce' and exposed > 0.5)", "count() - 2"
    )
    text = text.replace("first(op == 'all_reduce')", "count() - 3")
    found = pick_of(resolved(tmp_path, text=text))
    assert found.answer == ((1,),)
    assert found.shown == "rank 1"
    assert found.label == "recorded"
    assert found.misconceptions[0].marks == ((0,),)


def test_a_pick_in_a_figure_that_is_named(tmp_path: Path) -> None:
    text = PICK.replace('what = "event"', 'what = "event"\nfigure = "whole"')
    found = pick_of(resolved(tmp_path, text=text, figure='id = "whole"'))
    assert found.figure == "whole"


def test_progress_is_kept_over_a_new_recording_and_lost_with_another_question(tmp_path: Path) -> None:
    def hashed(name: str, text: str) -> str:
        return pick_of(resolved(tmp_path / name, text=text)).hash

    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "c").mkdir()
    same = hashed("a", PICK)
    assert same == hashed("b", PICK.replace("Look for", "Search for"))
    assert same != hashed("c", PICK.replace("exposed > 0.5", "exposed > 0.6"))


def test_views_and_covers_are_part_of_a_figure(tmp_path: Path) -> None:
    figure = 'blur = "until predicted"\nhighlight = "op == \'all_reduce\'"\n[[views]]\nname = "end"\n'
    figure += 'focus = "last(op == \'all_reduce\')"\ncaption = "Only {exposed_comm()} is left."'
    text = "\nSee [the end](#show:end).\n"
    found = resolved(tmp_path, text=text, figure=figure)
    [shown] = [b for b in found.blocks if isinstance(b, TimelineFigure)]
    assert shown.covered
    assert shown.until == "exposed-share"  # the next question
    [view] = shown.views
    assert view.name == "end"
    assert "20.4" in view.caption


def test_what_cannot_be_resolved_is_told_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(Problems) as caught:
        resolved(tmp_path, text=PICK.replace("all_reduce", "send"))
    told = [str(p) for p in caught.value.problems]
    assert any("matches nothing in the run 'ddp'" in t for t in told)


def test_a_pick_is_one_of_the_questions_of_its_exercise(tmp_path: Path) -> None:
    found = resolved(tmp_path)
    assert isinstance(found.exercise.questions[0], PickQuestion)
    assert found.exercise.questions[0].lines["answer"] > found.exercise.questions[0].line


@pytest.mark.parametrize(("name", "rank"), [("rank_of_max", 2), ("rank_of_min", 1)])
def test_the_rank_that_has_most_or_least(name: str, rank: int) -> None:
    times = [quantity(t, "ms") for t in (5, 3, 8)]
    assert FUNCTIONS[name](times).magnitude == rank


def test_no_rank_has_most_where_two_are_alike_or_there_is_one_value() -> None:
    with pytest.raises(Wrong, match="is the same on ranks 0 and 2"):
        FUNCTIONS["rank_of_max"]([quantity(5), quantity(3), quantity(5)])
    with pytest.raises(Wrong, match="not one a rank"):
        FUNCTIONS["rank_of_max"](quantity(5))
