"""Two recordings of the same runs: measured, kept beside the runs, and written down."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import tomli_w

from generator.errors import UserError
from generator.timeline.repeatability import (
    FILE_NAME,
    REPEAT_TOLERANCE,
    Repeatability,
    Repeated,
    isolated_step_ns,
    read_repeatability,
    repeated,
    to_toml,
)
from scripts.repeatability import DOCUMENT, document
from tests.committed import RUNS, calibration_of, ids_with_steps, run
from tests.publish.small import write_link
from tests.timeline.synthetic import Work, write_run

FOUND = Repeatability("Twice.", (3.5, 4.0), (Repeated("a", 100.0, 97.0), Repeated("b", 50.0, 50.5)))


def test_the_committed_figures_are_of_all_runs_within_the_limit_and_in_the_document() -> None:
    found = read_repeatability(RUNS)
    assert found is not None
    assert found.median_difference <= REPEAT_TOLERANCE
    assert DOCUMENT.read_text(encoding="utf-8") == document(found)
    assert {r.run for r in found.runs} <= set(ids_with_steps())
    assert len(found.runs) >= 40


@pytest.mark.parametrize("run_id", ["single", "ddp", "pp-1f1b", "fsdp-nodes"])
def test_the_second_recording_is_the_committed_one(run_id: str) -> None:
    found = read_repeatability(RUNS)
    assert found is not None
    (kept,) = (r for r in found.runs if r.run == run_id)
    assert isolated_step_ns(run(run_id), calibration_of(run_id)) / 1e6 == pytest.approx(
        kept.second_ms, abs=0.06
    )


def test_two_folders_are_compared_run_by_run(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder, ms in ((first, 40), (second, 42)):
        folder.mkdir()
        write_link(folder)
        write_run(folder, [[Work(ms * 1_000_000)]], run_id="both")
    write_run(first, [[Work(1000)]], run_id="gone")
    assert list(repeated(first, second)) == [Repeated("both", 40.0, 42.0)]
    assert next(repeated(first, second)).difference == pytest.approx(0.05)


def test_figures_survive_their_file(tmp_path: Path) -> None:
    assert read_repeatability(tmp_path) is None
    (tmp_path / FILE_NAME).write_text(tomli_w.dumps(to_toml(FOUND)), encoding="utf-8")
    assert read_repeatability(tmp_path) == FOUND
    assert FOUND.median_difference == pytest.approx(0.02)


@pytest.mark.parametrize("text", ["", "runs = []", "runs = 3", 'runs = [{ run = "a" }]', "[[runs]]\nmin = 1",
                                  'more = 1\n[[runs]]\nrun = "a"\nfirst_ms = 1.0\nsecond_ms = 1.0',
                                  '[[runs]]\nrun = "a"\nfirst_ms = 0.0\nsecond_ms = 1.0'])  # fmt: skip
def test_a_file_that_is_no_such_thing_is_told_of(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE_NAME).write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=rf"{FILE_NAME}.*not figures of two recordings"):
        read_repeatability(tmp_path)


def test_a_run_of_either_folder_alone_is_no_error(tmp_path: Path) -> None:
    shutil.copytree(RUNS / "single", tmp_path / "one" / "single")
    (tmp_path / "two").mkdir()
    assert list(repeated(tmp_path / "one", tmp_path / "two")) == []
