"""Going on with a recording: what is left out, and the time left over all runs."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import tomli_w

from generator.recorder import RUNS
from generator.recorder.progress import Progress
from generator.recorder.resume import is_recorded
from generator.runs.manifest import FILE_NAME, Manifest, Options, read_manifest, to_toml

COMMITTED = Path(__file__).parent.parent.parent / "measured_runs"


def recorded_as(change: Callable[[Manifest], Manifest], name: str, folder: Path) -> bool:
    """Whether a recording passes for that of a run if the run's manifest would now be another one."""
    head = read_manifest(folder / name / FILE_NAME)
    return is_recorded(RUNS[name], change(head), folder / name)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The committed run 'tp', as the recorder would describe it now."""
    target = tmp_path / "tp"
    target.mkdir()
    for file in (COMMITTED / "tp").iterdir():
        (target / file.name).write_bytes(file.read_bytes())
    spec, found = RUNS["tp"], read_manifest(target / FILE_NAME)
    found = replace(found, title=spec.title, description=spec.description, options=spec.options)
    (target / FILE_NAME).write_text(tomli_w.dumps(to_toml(found)), encoding="utf-8")
    return tmp_path


def test_a_run_that_is_there_as_it_would_be_recorded_is_left_out(copy: Path) -> None:
    pytest.importorskip("torch", reason="recording needs PyTorch: pip install shardbook[record]")
    assert recorded_as(lambda m: m, "tp", copy)


@pytest.mark.parametrize(
    "change",
    [
        lambda m: replace(m, title="Another title"),
        lambda m: replace(m, options=Options(prefetch=1)),
        lambda m: replace(m, machine=replace(m.machine, torch="1.0")),
        lambda m: replace(m, partner="ddp"),
    ],
)
def test_a_run_that_would_be_another_now_is_recorded_again(
    change: Callable[[Manifest], Manifest], copy: Path
) -> None:
    assert not recorded_as(change, "tp", copy)


def test_so_is_one_on_another_link_or_of_another_model(copy: Path) -> None:
    head = read_manifest(copy / "tp" / FILE_NAME)
    slower = replace(RUNS["tp"], rate_mbit=1000)
    assert not is_recorded(slower, head, copy / "tp")
    pytest.importorskip("torch", reason="recording needs PyTorch: pip install shardbook[record]")
    wider = replace(RUNS["tp"], shape={"d_model": 512})
    assert not is_recorded(wider, head, copy / "tp")


def test_so_is_one_with_a_damaged_or_a_missing_file(copy: Path) -> None:
    pytest.importorskip("torch", reason="recording needs PyTorch: pip install shardbook[record]")
    file = copy / "tp" / "rank-001.json.gz"
    data = file.read_bytes()
    file.write_bytes(data[:-1])
    assert not recorded_as(lambda m: m, "tp", copy)
    file.unlink()
    assert not recorded_as(lambda m: m, "tp", copy)
    head = read_manifest(copy / "tp" / FILE_NAME)
    (copy / "tp" / FILE_NAME).unlink()
    assert not is_recorded(RUNS["tp"], head, copy / "tp")


def test_progress_estimates_the_time_left_over_all_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    stream = io.StringIO()
    progress = Progress(stream)
    # The second run is expected to take three times as long as the first.
    progress.expect({"short": 10, "long": 30})
    progress.start("short", 4)
    now = 60.0
    progress.update(4)
    progress.stop()
    progress.start("long", 4)
    now = 150.0
    progress.update(2)
    lines = stream.getvalue().splitlines()
    assert lines[0] == "short: 0 of 4 (run 1 of 2)"
    assert lines[1] == "short: 4 of 4, 0 s left (run 1 of 2, about 3 min left for all)"
    # Of 40 units 25 took 150 s, so the other 15 take 90 s.
    assert lines[-1] == "long: 2 of 4, 90 s left (run 2 of 2, about 2 min left for all)"
