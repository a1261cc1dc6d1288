"""Checking a folder of runs: what passes, and what each kind of damage is called."""

from __future__ import annotations

import gzip
import hashlib
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from generator.runs.manifest import FILE_NAME, read_manifest
from generator.timeline.validation import LOSS_TOLERANCE, verify
from tests.committed import RUNS
from tests.timeline.synthetic import Issue, Script, Wait, Work, write_manifest, write_run

Folder = Callable[..., Path]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """Copies of committed runs by name."""

    def make(*names: str) -> Path:
        for name in names:
            shutil.copytree(RUNS / name, tmp_path / name)
        return tmp_path

    return make


def problems(folder: Path) -> list[str]:
    return [str(p) for p in verify(folder).problems]


def test_whole_runs_pass_and_each_has_a_row(folder: Folder) -> None:
    verified = verify(folder("single", "tp", "link-2gbit"))
    assert verified.problems == ()
    assert [(row[0], row[-1]) for row in verified.rows()] == [
        ("link-2gbit", "ok"),
        ("single", "ok"),
        ("tp", "ok"),
    ]
    (tp,) = (r for r in verified.runs if r.run == "tp")
    assert tp.validation is not None
    assert tp.validation.matched == tp.validation.calls == 8 * 32
    assert tp.validation.loss_difference is not None
    assert 0 < tp.validation.loss_difference <= LOSS_TOLERANCE


def test_one_loss_off_by_a_millionth_too_much_is_a_problem(folder: Folder) -> None:
    runs = folder("single", "tp", "link-2gbit")
    manifest = read_manifest(runs / "tp" / FILE_NAME)
    steps = list(manifest.steps)
    steps[5] = replace(steps[5], loss=steps[5].loss * (1 + 2e-6))
    write_manifest(runs / "tp", replace(manifest, steps=tuple(steps)))
    (problem,) = problems(runs)
    assert "tp/run.toml" in problem
    assert "losses differ from those of 'single' by up to 2." in problem
    assert "e-06, more than 1e-06" in problem


def late_clock(runs: Path, name: str, by_ns: int) -> None:
    """Set the clock of a run's rank 2 forward."""
    file = runs / name / "rank-002.json.gz"
    trace = orjson.loads(gzip.decompress(file.read_bytes()))
    trace["baseTimeNanoseconds"] += by_ns
    data = gzip.compress(orjson.dumps(trace), mtime=0)
    file.write_bytes(data)
    found = read_manifest(runs / name / FILE_NAME)
    ranks = list(found.ranks)
    ranks[2] = replace(ranks[2], sha256=hashlib.sha256(data).hexdigest())
    write_manifest(runs / name, replace(found, ranks=tuple(ranks)))


def test_messages_that_arrive_before_they_are_sent_make_the_replay_longer(folder: Folder) -> None:
    runs = folder("single", "pp-1f1b", "link-2gbit")
    late_clock(runs, "pp-1f1b", 20_000_000)
    found = problems(runs)
    assert any("replayed as recorded its step is off by +12." in p for p in found)
    assert any("calls ended before their last member had arrived" in p for p in found)


def test_a_clock_that_is_off_is_seen_where_the_step_keeps_its_length(folder: Folder) -> None:
    """All-reduces hold the ranks together, so in the replay all of them are late, and the end is the same."""
    runs = folder("single", "tp", "link-2gbit")
    late_clock(runs, "tp", 20_000_000)
    (problem,) = problems(runs)
    assert "calls ended before their last member had arrived" in problem


def test_a_damaged_file_is_named_and_the_other_runs_are_checked(folder: Folder) -> None:
    runs = folder("single", "tp", "link-2gbit")
    damaged = runs / "single" / "rank-000.json.gz"
    damaged.write_bytes(damaged.read_bytes()[:-1])
    verified = verify(runs)
    assert [row[-1] for row in verified.rows()] == ["ok", "failed", "ok"]
    assert "single" in str(verified.problems[0])


def test_a_run_without_its_partner_or_its_calibration_is_told(folder: Folder) -> None:
    found = problems(folder("tp"))
    assert len(found) == 2
    assert any("calibration 'link-2gbit' is not there" in p for p in found)
    assert any("partner 'single' is not there" in p for p in found)


def test_calls_that_do_not_match_are_counted(tmp_path: Path) -> None:
    def script(size: int) -> Script:
        return [Work(10), Issue("a", (0, 1), 5), Wait("a"), Issue("b", (0, 1), 5, bytes=size), Wait("b")]

    write_run(tmp_path, [script(1024), script(1024)], run_id="alike")
    write_run(tmp_path, [script(1024), script(2048)], run_id="unlike")
    unmatched = [p for p in problems(tmp_path) if "not matched" in p]
    assert len(unmatched) == 1
    assert "unlike/run.toml" in unmatched[0]
    assert "1 of 2 calls are not matched: size" in unmatched[0]


def test_a_folder_without_runs_is_a_problem(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path)
    assert "there are no runs" in problem
