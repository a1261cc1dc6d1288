"""What the committed recordings show, held against closed forms and independent computations."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

import numpy as np
import pytest

from generator.runs.manifest import Model
from generator.runs.run import MISSING
from generator.timeline.collectives import Arrival, Match, Verdict, arrivals, match, match_step
from generator.timeline.formulas import FORMULAS
from generator.timeline.graph import Graph, Node, build
from generator.timeline.links import FreeLink, LinkModel, ring_link
from generator.timeline.metrics import METRICS, PIPELINE_WORK
from generator.timeline.program import Role
from generator.timeline.reconstruct import graph_of, representative_step, step_wall_ns, timeline_of
from generator.timeline.replay import isolated_durations, recorded_durations, replay, scale_rank
from generator.timeline.spans import Activity
from generator.timeline.validation import loss_difference, validate
from tests.committed import RUNS, calibration_of, run, timeline, training_ids
from tests.timeline.synthetic import Issue, Script, Wait, Work, end_ns, simulate

FIVE = ("ddp", "fsdp", "pp-1f1b", "single", "tp")
PARALLEL = ("ddp", "fsdp", "pp-1f1b", "tp")


def model(run_id: str) -> Model:
    found = run(run_id).manifest.model
    assert found is not None
    return found


def count(run_id: str, **filters: object) -> float:
    return METRICS["count"](timeline(run_id), **filters)


# ---- the recordings


def test_the_five_runs_and_their_link_are_there() -> None:
    assert set(FIVE) <= set(training_ids())
    assert run("link-2gbit").manifest.kind == "calibration"


def test_rank_files_stay_small() -> None:
    sizes = {r: sum(p.stat().st_size for p in (RUNS / r).glob("rank-*.json.gz")) for r in training_ids()}
    assert sum(sizes[r] for r in FIVE) <= 4_000_000
    assert sum(sizes.values()) <= 15_000_000


@pytest.mark.parametrize("run_id", FIVE)
def test_losses_of_five_steps_agree_with_one_process(run_id: str) -> None:
    ours, single = run(run_id), run("single")
    assert len(ours.manifest.steps) >= 5
    assert len({s.loss for s in ours.manifest.steps}) == len(ours.manifest.steps)
    assert loss_difference(ours, single) <= 1e-6


@pytest.mark.parametrize("run_id", FIVE)
def test_the_runs_share_model_text_and_batch(run_id: str) -> None:
    ours, single = run(run_id).manifest, run("single").manifest
    assert ours.batch == single.batch
    assert ours.model is not None
    assert single.model is not None
    assert replace(ours.model, parameters_per_rank=()) == replace(single.model, parameters_per_rank=())


@pytest.mark.parametrize("run_id", PARALLEL)
def test_ranks_communicated_over_the_one_link(run_id: str) -> None:
    link = run(run_id).manifest.link
    assert (link.method, link.rate_mbit, link.calibration) == ("tbf", 2000, "link-2gbit")


def test_the_calibrated_rate_is_the_links_rate() -> None:
    """2 Gbit/s on the wire are 0.25 bytes a ns; Ethernet, IP and TCP headers take some of it."""
    assert ring_link(run("link-2gbit")).bytes_per_ns == pytest.approx(0.25, rel=0.10)


# ---- matching


@pytest.mark.parametrize("run_id", FIVE)
def test_every_call_of_every_step_is_matched(run_id: str) -> None:
    verdicts = {m.verdict for s in run(run_id).manifest.steps for m in match_step(run(run_id), s.index)}
    assert verdicts == ({Verdict.MATCHED} if run_id != "single" else set())


def as_sets(matches: tuple[Match, ...]) -> set[frozenset[tuple[int, int]]]:
    return {frozenset((a.rank, a.call) for a in m.members) for m in matches}


@pytest.mark.parametrize("numbered", [True, False])
@pytest.mark.parametrize("run_id", PARALLEL)
def test_without_one_members_call_the_verdict_names_it_and_nothing_shifts(
    run_id: str, numbered: bool
) -> None:
    ours = run(run_id)
    step = representative_step(ours)
    calls = list(chain.from_iterable(arrivals(trace, step) for trace in ours.ranks))
    if not numbered:
        calls = [replace(a, seq=MISSING) for a in calls]
    whole = as_sets(match(calls))
    of_rank_2 = [a for a in calls if a.rank == 2 and (numbered or stands_apart(a, calls))]
    assert len(of_rank_2) >= 6
    for gone in of_rank_2[:: len(of_rank_2) // 6]:
        matches = match(a for a in calls if a is not gone)
        wrong = [m for m in matches if m.verdict is not Verdict.MATCHED]
        assert [(m.verdict, m.culprits) for m in wrong] == [(Verdict.MEMBER_MISSING, (2,))]
        expected = {members - {(2, gone.call)} for members in whole}
        assert as_sets(matches) == expected


def stands_apart(call: Arrival, calls: list[Arrival]) -> bool:
    """Whether a call can be told from its likes without a number: by when it ended, to 5 ms."""
    alike = [a for a in calls if lane(a) == lane(call)]
    ends = [abs((a.done_ns or 0) - (call.done_ns or 0)) for a in alike if a is not call]
    return min(ends, default=10**9) > 5_000_000


def lane(call: Arrival) -> tuple[object, ...]:
    return (call.rank, call.group, call.src, call.dst, call.signature)


# ---- counts and bytes


@pytest.mark.parametrize("layer", range(8))
def test_tensor_parallelism_has_four_all_reduces_a_layer(layer: int) -> None:
    per_phase = [count("tp", op="all_reduce", layer=layer, phase=p) for p in ("forward", "backward")]
    assert per_phase == [2, 2]


def test_tensor_parallelism_has_no_other_calls_in_its_layers() -> None:
    layers = model("tp").layers
    assert count("tp", op="all_reduce") == FORMULAS["tp_all_reduces"].function(layers) == count("tp")


def test_fsdp_gathers_each_unit_twice_and_the_root_once() -> None:
    units = run("fsdp").manifest.options.units
    assert units == model("fsdp").layers
    assert count("fsdp", op="all_gather") == FORMULAS["fsdp_all_gathers"].function(units) == 17
    assert count("fsdp", op="reduce_scatter") == FORMULAS["fsdp_reduce_scatters"].function(units) == 9
    assert count("fsdp", op="all_reduce") == 0


def parameter_bytes(m: Model, tokens: int) -> list[int]:
    """Sizes of the model's parameters, last gradient first: fp32, no biases, two vectors a norm.

    That is the order of definition, but that the token table's gradient comes before the positions'.
    """
    d = m.d_model
    block = [d, d, d * d, d * d, d * d, d * d, d, d, 4 * d * d, 4 * d * d]
    return [4 * n for n in [tokens * d, m.vocabulary * d, *(block * m.layers), d, d, m.vocabulary * d]]


def test_ddp_has_one_all_reduce_a_bucket() -> None:
    """Buckets fill from the last parameter on and close when they reach the cap: a trigger, not a limit."""
    batch = run("ddp").manifest.batch
    assert batch is not None
    sizes = parameter_bytes(model("ddp"), batch.tokens)
    assert sum(sizes) == 4 * model("ddp").parameters
    cap = int(run("ddp").manifest.options.bucket_mib * 2**20)
    buckets, filled = 0, 0
    for size in reversed(sizes):
        filled += size
        if filled >= cap:
            buckets, filled = buckets + 1, 0
    assert count("ddp", op="all_reduce") == buckets + (filled > 0) == count("ddp")


def test_ddp_has_one_bucket_in_its_first_step() -> None:
    assert len(match_step(run("ddp"), 0)) == 1


def test_pipeline_sends_each_micro_batch_over_each_cut_down_and_up() -> None:
    schedule = run("pp-1f1b").manifest.schedule
    assert schedule is not None
    assert count("pp-1f1b", op="send") == 2 * schedule.microbatches * 3 == count("pp-1f1b")


def test_wire_bytes_of_ddp_and_fsdp_are_those_of_the_ring() -> None:
    """DDP 2fΨ elements a rank, FSDP f(2Ψ_blocks + Ψ_root + Ψ), f = 3/4."""
    m = model("ddp")
    wire = METRICS["wire_bytes"]
    assert wire(timeline("ddp"), rank=0) == pytest.approx(2 * 0.75 * 4 * m.parameters)
    d = m.d_model
    blocks = m.layers * (12 * d * d + 4 * d)
    expected = 0.75 * 4 * (2 * blocks + (m.parameters - blocks) + m.parameters)
    assert wire(timeline("fsdp"), rank=0) == pytest.approx(expected)


def test_wire_bytes_of_tensor_parallelism_are_those_of_the_formula() -> None:
    batch = run("tp").manifest.batch
    assert batch is not None
    m = model("tp")
    elements = FORMULAS["tp_wire_elements"].function(batch.sequences, batch.tokens, m.d_model, 4) * m.layers
    assert METRICS["wire_bytes"](timeline("tp"), rank=0) == pytest.approx(4 * elements)


# ---- memory


def peak(run_id: str, category: str, rank: int = 0) -> float:
    return METRICS["peak_memory"](timeline(run_id), rank=rank, category=category)


def test_memory_of_one_process_is_what_adam_in_fp32_needs() -> None:
    psi = model("single").parameters
    got = [peak("single", c) for c in ("parameters", "gradients", "optimizer")]
    assert got == pytest.approx([4 * psi, 4 * psi, 8 * psi], rel=0.02)
    assert sum(got) == pytest.approx(FORMULAS["adam_state_bytes"].function(psi), rel=0.02)


def test_activations_of_one_process_are_those_of_the_formula() -> None:
    """FP32, without dropout: L(16E + 4Bs + aBs) + 2E + 2Bs + BsV elements, E = B·s·h; derived by hand."""
    m, batch = model("single"), run("single").manifest.batch
    assert batch is not None
    bs = batch.sequences * batch.tokens
    e = bs * m.d_model
    elements = m.layers * (16 * e + 4 * bs + m.heads * bs) + 2 * e + 2 * bs + bs * m.vocabulary
    assert peak("single", "activations") == pytest.approx(4 * elements, rel=0.05)


@pytest.mark.parametrize("rank", range(4))
def test_fsdp_keeps_a_quarter_of_the_optimizer_and_little_more_of_the_rest(rank: int) -> None:
    psi = model("fsdp").parameters
    assert peak("fsdp", "optimizer", rank) == pytest.approx(8 * psi / 4, rel=0.02)
    assert peak("fsdp", "parameters", rank) < 4 * psi


def test_one_f_one_b_holds_fewer_micro_batches_on_later_stages() -> None:
    held = [peak("pp-1f1b", "activations", r) for r in range(3)]
    assert held == sorted(held, reverse=True)
    assert held[0] / held[2] == pytest.approx(4 / 2, rel=0.25)


# ---- replay


@pytest.mark.parametrize("run_id", FIVE)
def test_recorded_replay_gives_back_the_step(run_id: str) -> None:
    found = validate(run(run_id))
    assert abs(found.median_replay_error) <= 0.05


def test_the_edges_between_ranks_carry_a_pipelines_replay() -> None:
    found = validate(run("pp-1f1b"))
    assert abs(found.median_replay_error_alone) > 0.10


@pytest.mark.parametrize("run_id", FIVE)
def test_the_recorded_timeline_is_the_recorded_step(run_id: str) -> None:
    recorded = timeline(run_id, "recorded")
    assert recorded.step_ns == step_wall_ns(run(run_id), recorded.step)


def test_unit_costs_on_the_recorded_pipeline_give_the_closed_form() -> None:
    ours = run("pp-1f1b")
    step = representative_step(ours)
    graph = graph_of(ours, step, eager=True)
    costs = unit_costs(graph)
    unit = timeline_of(ours, step, graph, replay(graph, costs), mode="isolated", link_model="free")
    assert METRICS["bubble_fraction"](unit) == pytest.approx(3 / 11, abs=1e-12)
    assert METRICS["bubble_overhead"](unit) == pytest.approx(3 / 8, abs=1e-12)


def unit_costs(graph: Graph) -> np.ndarray:
    """1 for a forward, 2 for a backward of a micro-batch, nothing for anything else."""
    durations = np.zeros(len(graph), np.int64)
    for program, lane in zip(graph.programs, graph.lanes, strict=True):
        seen: set[tuple[int, int]] = set()
        for node in lane:
            i = graph.segment[node]
            if graph.kind[node] != Node.WORK or program.activity[i] not in PIPELINE_WORK:
                continue
            key = (int(program.activity[i]), int(program.microbatch[i]))
            if key not in seen:
                seen.add(key)
                durations[node] = 1 if program.activity[i] == Activity.FORWARD else 2
    return durations


@pytest.mark.parametrize("run_id", PARALLEL)
@pytest.mark.parametrize("rank", [0, 2])
def test_a_rank_twenty_per_cent_slower_shifts_replay_as_an_independent_simulation_says(
    run_id: str, rank: int
) -> None:
    ours = run(run_id)
    calibration = calibration_of(run_id)
    assert calibration is not None
    link = ring_link(calibration)
    graph = graph_of(ours, representative_step(ours))
    durations = isolated_durations(graph, link)
    healthy, slow = replay(graph, durations), replay(graph, scale_rank(graph, durations, rank, 1200))
    assert healthy.step_ns == end_ns(simulate(scripts_of(graph, link)))
    assert slow.step_ns == end_ns(simulate(scripts_of(graph, link, slow=rank)))
    assert slow.step_ns > healthy.step_ns


def scripts_of(graph: Graph, link: LinkModel, slow: int = -1) -> list[Script]:
    """A step as scripts for the simulation of the tests: thread-CPU times, calls priced by a link."""
    keys = {(m.rank, m.call): (i, found) for i, found in enumerate(graph.matches) for m in found.members}
    scripts: list[Script] = []
    for program in graph.programs:
        script: list[Work | Issue | Wait] = []
        for i in range(len(program)):
            ns = int(program.cpu_ns[i])
            if program.rank == slow:
                ns = (ns * 1200 + 500) // 1000
            index, found = keys.get((program.rank, int(program.call[i])), (-1, None))
            if found is None or program.role[i] == Role.WORK:
                script.append(Work(ns))
            elif program.role[i] == Role.WAIT:
                script.append(Wait(str(index)))
            else:
                cost = link.duration_ns(found.op, found.members[0].bytes, len(found.expected))
                script.append(Issue(str(index), found.expected, cost, group=found.group, ns=ns))
        scripts.append(script)
    return scripts


def test_free_communication_leaves_the_work_of_the_busiest_rank() -> None:
    ours = run("ddp")
    graph = graph_of(ours, representative_step(ours), eager=True)
    step = replay(graph, isolated_durations(graph, FreeLink())).step_ns
    own = [int(p.cpu_ns[p.role != Role.WAIT].sum()) for p in graph.programs]
    assert step >= max(own)
    apart = build(graph.programs, graph.matches, cross_rank=False)
    assert replay(apart, isolated_durations(apart, FreeLink())).step_ns == max(own)


def test_recorded_durations_are_never_negative() -> None:
    for run_id in FIVE:
        graph = graph_of(run(run_id), representative_step(run(run_id)))
        assert recorded_durations(graph).min() >= 0


# ---- causality


def test_no_effect_comes_before_its_cause_in_the_recordings() -> None:
    for run_id in PARALLEL:
        for s in run(run_id).manifest.timed_steps:
            for found in match_step(run(run_id), s):
                check_causality(found)


def check_causality(found: Match) -> None:
    arrived: list[Arrival] = [m for m in found.members if m.op != "recv"]
    last = max(m.issue_ns for m in arrived)
    for m in found.members:
        if m.op != "send":
            assert m.done_ns is not None
            assert m.done_ns >= last
