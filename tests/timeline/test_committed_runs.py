"""What must hold for every committed recording, whatever its scheme."""

from __future__ import annotations

import gzip
import statistics
from collections import Counter, defaultdict
from functools import cache
from typing import Any

import numpy as np
import orjson
import pytest

from generator.recorder import RUNS as CATALOGUE
from generator.runs.manifest import nodes_of
from generator.runs.reader import run_ids
from generator.runs.run import MEMORY_CATEGORIES, Kind
from generator.timeline.collectives import match_step
from generator.timeline.links import ring_link
from generator.timeline.reconstruct import graph_of, representative_step, step_wall_ns
from generator.timeline.replay import isolated_durations, recorded_durations, replay
from generator.timeline.validation import LOSS_TOLERANCE, REPLAY_TOLERANCE, Validation, validate
from generator.units import wire_bytes
from tests.committed import RUNS, calibration_of, ids_with_steps, manifest, run, timeline

EVERY = ids_with_steps()
PARALLEL = [r for r in EVERY if manifest(r).world_size > 1]
PARTNERED = [r for r in EVERY if manifest(r).partner]
CALIBRATIONS = [r for r in run_ids(RUNS) if manifest(r).kind == "calibration"]


@cache
def validation(run_id: str) -> Validation:
    return validate(run(run_id))


# ---- what was trained


def test_there_are_runs_enough_and_their_files_are_small() -> None:
    assert len(EVERY) >= 32
    sizes = [p.stat().st_size for r in EVERY for p in (RUNS / r).glob("rank-*.json.gz")]
    assert sum(sizes) <= 15_000_000


@pytest.mark.parametrize("run_id", EVERY)
def test_a_manifest_says_what_the_catalogue_says(run_id: str) -> None:
    found, spec = manifest(run_id), CATALOGUE[run_id]
    assert (found.title, found.description, found.scheme) == (spec.title, spec.description, spec.scheme)
    assert (found.partner, found.options, found.schedule) == (spec.partner, spec.options, spec.schedule)
    assert (found.world_size, found.source) == (spec.world_size, spec.source)
    assert not spec.mesh or found.mesh == spec.full_mesh()


@pytest.mark.parametrize("run_id", PARTNERED)
def test_a_run_does_the_work_of_its_partner(run_id: str) -> None:
    ours, theirs = manifest(run_id), manifest(manifest(run_id).partner)
    assert theirs.world_size == 1
    assert (ours.batch, ours.optimizer, ours.precision) == (theirs.batch, theirs.optimizer, theirs.precision)
    assert ours.model is not None
    assert theirs.model is not None
    assert ours.model.parameters == theirs.model.parameters
    losses, expected = ({s.index: s.loss for s in m.steps} for m in (ours, theirs))
    common = sorted(losses.keys() & expected)
    # Runs that are recorded in turn share the training: each has every other step.
    assert len(common) >= len(expected) // 2
    assert [losses[i] for i in common] == pytest.approx([expected[i] for i in common], rel=LOSS_TOLERANCE)
    # Were there no training, equal losses would say little.
    assert len(set(losses)) == len(losses) >= 5


@pytest.mark.parametrize("run_id", PARALLEL)
def test_ranks_communicate_over_the_link_that_was_calibrated(run_id: str) -> None:
    link = manifest(run_id).link
    theirs = manifest(link.calibration).link
    assert link.method == theirs.method == "tbf"
    assert (link.rate_mbit, link.ranks_per_node) == (theirs.rate_mbit, theirs.ranks_per_node)


@pytest.mark.parametrize("run_id", CALIBRATIONS)
def test_a_calibrated_rate_is_the_links_rate(run_id: str) -> None:
    """Mbit/s ÷ 8000 are bytes a ns; Ethernet, IP and TCP headers take some of it."""
    nominal = manifest(run_id).link.rate_mbit / 8000
    assert 0.9 * nominal < ring_link(run(run_id)).bytes_per_ns < nominal


@cache
def events(run_id: str, rank: int) -> list[dict[str, Any]]:
    """Events of a rank file as they are written."""
    file = RUNS / run_id / manifest(run_id).ranks[rank].file
    found: list[dict[str, Any]] = orjson.loads(gzip.decompress(file.read_bytes()))["traceEvents"]
    return [e for e in found if e["ph"] == "X"]


@pytest.mark.parametrize("run_id", ["ddp", "zero1-library", "tp", "pp-zbv", "cp-ulysses", "ep-skewed"])
def test_the_ratio_is_that_of_the_bytes_and_the_processor_time_in_the_files(run_id: str) -> None:
    ours = manifest(run_id)
    assert ours.ratio is not None
    sent_ms, computed_ms = [], []
    for rank in range(ours.world_size):
        sent, computed = Counter[int](), Counter[int]()
        for event in events(run_id, rank):
            told = event["args"]
            if event["name"].startswith("ProfilerStep"):
                computed[told["step"]] += told["cpu_dur"]
            elif event["name"] == "wait":
                computed[told["step"]] -= told["cpu_dur"]
            elif "op" in told:
                exact = wire_bytes(told["op"], told["bytes"], len(told["ranks"]))
                sent[told["step"]] += told.get("sent", exact)
        sent_ms.append(statistics.median(sent[s] for s in ours.timed_steps) * 8e-3 / ours.link.rate_mbit)
        computed_ms.append(statistics.median(computed[s] for s in ours.timed_steps) / 1e3)
    found = statistics.fmean(sent_ms), statistics.fmean(computed_ms)
    assert found == pytest.approx((ours.ratio.communication_ms, ours.ratio.computation_ms), abs=0.001)
    assert ours.ratio.value == pytest.approx(found[0] / found[1], abs=0.0001)


# ---- what the ranks saw


@pytest.mark.parametrize("run_id", EVERY)
def test_every_call_of_every_step_is_matched_and_the_replay_gives_back_the_step(run_id: str) -> None:
    found = validation(run_id)
    assert found.matched == found.calls
    assert (found.calls > 0) == (run_id in PARALLEL)
    assert abs(found.median_replay_error) <= REPLAY_TOLERANCE


@pytest.mark.parametrize("run_id", PARALLEL)
def test_no_effect_comes_before_its_cause(run_id: str) -> None:
    for step in manifest(run_id).steps:
        assert [m for m in match_step(run(run_id), step.index) if m.early] == []


@pytest.mark.parametrize("run_id", PARALLEL)
def test_every_call_is_waited_for_once(run_id: str) -> None:
    for trace in run(run_id).ranks:
        issued, waited = (np.sort(trace.call[trace.kind == kind]) for kind in (Kind.ISSUE, Kind.WAIT))
        assert np.array_equal(issued, waited)
        assert len(np.unique(issued)) == len(issued)


@pytest.mark.parametrize("run_id", EVERY)
def test_the_recorded_timeline_is_the_recorded_step(run_id: str) -> None:
    recorded = timeline(run_id, "recorded")
    assert recorded.step_ns == step_wall_ns(run(run_id), recorded.step)
    durations = recorded_durations(graph_of(run(run_id), recorded.step))
    assert durations.min() >= 0


@pytest.mark.parametrize("run_id", EVERY)
def test_memory_is_never_negative_and_only_sharding_moves_parameters(run_id: str) -> None:
    for trace in run(run_id).ranks:
        held = dict(zip(MEMORY_CATEGORIES, trace.memory.bytes.T, strict=True))
        assert len(trace.memory.time_ns) > 0
        assert all(sizes.min() >= 0 for sizes in held.values())
        assert np.ptp(held["optimizer"]) == 0
        # FSDP gathers what it needs and lets it go.
        assert (np.ptp(held["parameters"]) > 0) == (manifest(run_id).options.units > 0)


# ---- isolated, what a link can carry


@pytest.mark.parametrize("run_id", PARALLEL)
def test_no_interface_carries_more_than_its_rate(run_id: str) -> None:
    """Bytes under way at any instant, of all calls that leave a node together, over their durations."""
    calibration = calibration_of(run_id)
    assert calibration is not None
    link = ring_link(calibration)
    graph = graph_of(run(run_id), representative_step(run(run_id)), eager=True)
    laid = replay(graph, isolated_durations(graph, link))
    changes: dict[int, list[tuple[int, float]]] = defaultdict(list)
    for index, match in enumerate(graph.matches):
        nodes = nodes_of(match.expected, link.ranks_per_node)
        for m in match.members:
            node = graph.done[index, m.rank]
            begin, end = int(laid.begin_ns[node]), int(laid.end_ns[node])
            receives = match.point_to_point and m.rank != match.expected[0]
            if nodes == 1 or receives or end == begin:
                continue
            sent = wire_bytes(match.op, match.bytes, len(match.expected)) if m.sent < 0 else m.sent
            # In a ring over nodes one of a node's members sends at a time.
            here = 1 if match.point_to_point else len(match.expected) / max(1, nodes)
            rate = sent / (end - begin) / (here if nodes else 1)
            changes[m.rank // link.ranks_per_node] += [(begin, rate), (end, -rate)]
    nominal = manifest(run_id).link.rate_mbit / 8000
    for found in changes.values():
        # Ends before begins, where both fall on one instant.
        carried = np.cumsum([rate for _, rate in sorted(found)])
        assert carried.max() < nominal


def test_one_large_all_reduce_uses_most_of_the_rate() -> None:
    """So that the bound above is no idle one."""
    (call,) = timeline("ddp-one-bucket").calls
    sent = wire_bytes(call.op, call.bytes, len(call.ranks))
    assert sent / (call.members[0].end_ns - call.members[0].begin_ns) > 0.9 * 0.25
