"""Predicting a step with a core for each rank from one on a shared core."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest

from generator.runs.reader import read_run
from generator.runs.run import Run
from generator.timeline.corecheck import (
    CORE_MEDIAN_TOLERANCE,
    CORE_TOLERANCE,
    CoreCheck,
    Pair,
    core_check,
    median_error,
    pairs_among,
)
from generator.timeline.validation import REPLAY_MEDIAN_TOLERANCE, validate
from tests.committed import calibration_of, ids_with_steps, manifest, run
from tests.publish.small import MS, write_link
from tests.timeline.synthetic import Issue, Script, Wait, Work, write_run

SIZE = 65536
#: What the calibration says of an all-reduce of that size between two ranks.
CALL_NS = 300_000 + 4 * SIZE


def scripts(wall_ms: int, call_ns: int) -> list[Script]:
    """Two ranks whose work takes 10 ms of thread-CPU time, before and after an all-reduce."""
    work = Work(wall_ms * MS, cpu_ns=10 * MS)
    last = replace(work, phase="backward")
    return [[work, Issue("sum", (0, 1), call_ns, bytes=SIZE), Wait("sum"), last] for _ in range(2)]


@pytest.fixture
def calibration(tmp_path: Path) -> Run:
    write_link(tmp_path)
    return read_run(tmp_path / "link")


def pair(folder: Path, calibration: Run, *, each_ms: int) -> Pair:
    shared = write_run(folder, scripts(21, 3 * MS), run_id="cores-shared-ddp")
    each = write_run(folder, scripts(each_ms, MS), run_id="cores-each-ddp")
    return Pair("ddp", shared, each, calibration)


def test_work_takes_its_own_time_and_a_call_what_was_calibrated(tmp_path: Path, calibration: Run) -> None:
    (found,) = core_check([pair(tmp_path, calibration, each_ms=10)])
    assert (found.shared, found.each, found.scheme) == ("cores-shared-ddp", "cores-each-ddp", "ddp")
    assert found.predicted_ns == 20 * MS + CALL_NS
    assert found.contended_ns == 45 * MS
    assert (found.measured_ns, found.shortest_ns, found.longest_ns) == (21 * MS,) * 3
    assert (found.steps, found.steps_of, found.spread) == (1, 1, 0)
    assert found.error == (20 * MS + CALL_NS) / (21 * MS) - 1


def test_a_device_that_is_slower_than_the_shared_core_is_not_predicted(
    tmp_path: Path, calibration: Run
) -> None:
    """The prediction does not look at the second recording."""
    (found,) = core_check([pair(tmp_path, calibration, each_ms=15)])
    assert found.error == pytest.approx((20 * MS + CALL_NS) / (31 * MS) - 1)
    assert found.error < -0.3


def test_pairs_are_those_that_are_whole() -> None:
    ids = ["ddp", "cores-each-tp", "cores-shared-tp", "cores-shared-ddp", "cores-each-pp"]
    assert pairs_among(ids) == (("tp", "cores-shared-tp", "cores-each-tp"),)
    assert pairs_among([]) == ()


def test_errors_of_both_signs_count_in_the_median() -> None:
    def of(predicted: int) -> CoreCheck:
        return CoreCheck("", "", "", 0, predicted, 100, 90, 120, 3, 5)

    checks = [of(101), of(95), of(98)]
    assert median_error(checks) == pytest.approx(0.02)
    assert checks[0].spread == pytest.approx(0.3)


def test_the_committed_pairs_are_predicted_as_promised() -> None:
    found = pairs_among(ids_with_steps())
    assert [scheme for scheme, _, _ in found] == ["ddp", "fsdp", "pp", "tp"]
    pairs = []
    for scheme, shared, each in found:
        link = calibration_of(shared)
        assert link is not None
        assert (manifest(shared).machine.pinned_cores, manifest(each).machine.pinned_cores) == (1, 2)
        pairs.append(Pair(scheme, run(shared), run(each), link))
    checks = core_check(pairs)
    assert max(abs(c.error) for c in checks) <= CORE_TOLERANCE
    assert median_error(checks) <= CORE_MEDIAN_TOLERANCE
    # They would not be without the prediction: a shared core makes a step much longer.
    assert min(c.contended_ns / c.measured_ns for c in checks) > 1.5


def test_replay_is_right_in_the_median_of_the_committed_runs() -> None:
    """Near zero by construction; an edge that contradicts many recordings would show."""
    errors = [abs(validate(run(run_id)).median_replay_error) for run_id in ids_with_steps()]
    assert median(errors) <= REPLAY_MEDIAN_TOLERANCE
