"""The clinic on runs whose fault is known, and on the committed ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from generator.runs.manifest import LinkRow
from generator.runs.run import Run
from generator.timeline.clinic import (
    LATE_RANK,
    MISMATCHED_CALL,
    MISSING_CALL,
    SLOW_LINK,
    Finding,
    diagnose,
)
from tests.committed import calibration_of, ids_with_steps, run
from tests.timeline.synthetic import Issue, Script, Wait, Work, end_ns, one_f_one_b, simulate, write_run
from tests.timeline.test_links import calibration

RANKS, LAYERS, MICROBATCHES = 4, 6, 8
MS = 1_000_000
EVERYONE = tuple(range(RANKS))
Scripts = list[Script]


def noise() -> Callable[[float], int]:
    """Milliseconds as ns, give or take a hundredth; the same ones each time."""
    random = Random(1)
    return lambda ms: round(ms * MS * random.uniform(0.99, 1.01))


def ddp() -> Scripts:
    """Gradients of each layer are all-reduced under the backward of the next, and waited for at the end."""
    took, out = noise(), []
    for _ in range(RANKS):
        script: list[Work | Issue | Wait] = [Work(took(6), layer=n) for n in range(LAYERS)]
        for n in reversed(range(LAYERS)):
            script.append(Work(took(12), "backward", layer=n))
            script.append(Issue(f"g{n}", EVERYONE, 11 * MS, bytes=1 << 20))
        script += [Wait(f"g{n}") for n in reversed(range(LAYERS))]
        out.append([*script, Work(took(5), "optimizer")])
    return out


def fsdp() -> Scripts:
    """Two shard groups. Each layer is gathered ahead, and its gradients are scattered behind."""
    took, out = noise(), []
    for rank in range(RANKS):
        group = (0, 1) if rank < 2 else (2, 3)

        def gather(key: str, group: tuple[int, ...] = group) -> Issue:
            return Issue(f"{key}{group}", group, 7 * MS, "all_gather", 1 << 20, f"shard{group}")

        def scatter(key: str, group: tuple[int, ...] = group) -> Issue:
            return Issue(f"{key}{group}", group, 8 * MS, "reduce_scatter", 1 << 20, f"shard{group}")

        # Both groups meet in the end: their gradients are summed.
        meet = Issue("norm", EVERYONE, MS, bytes=4)
        script: list[Work | Issue | Wait] = [gather("f0")]
        for n in range(LAYERS):
            script.append(Wait(f"f{n}{group}"))
            script += [gather(f"f{n + 1}")] if n + 1 < LAYERS else []
            script.append(Work(took(9), layer=n))
        script.append(gather(f"b{LAYERS - 1}"))
        for n in reversed(range(LAYERS)):
            script.append(Wait(f"b{n}{group}"))
            script += [gather(f"b{n - 1}")] if n else []
            script += [Work(took(18), "backward", layer=n), scatter(f"s{n}")]
        script += [Wait(f"s{n}{group}") for n in reversed(range(LAYERS))]
        out.append([*script, meet, Wait("norm"), Work(took(3), "optimizer")])
    return out


def tp() -> Scripts:
    """Two pairs of tensor parallel ranks that wait for every all-reduce, and meet in the end."""
    took, out = noise(), []
    for rank in range(RANKS):
        pair = (0, 1) if rank < 2 else (2, 3)
        script: list[Work | Issue | Wait] = []
        for phase, layers in (("forward", range(LAYERS)), ("backward", reversed(range(LAYERS)))):
            for n in layers:
                key = f"{phase}{n}{pair}"
                script.append(Work(took(8), phase, layer=n))
                script += [Issue(key, pair, 6 * MS, bytes=1 << 19, group=f"tp{pair}"), Wait(key)]
        script += [Issue("g", EVERYONE, 9 * MS, bytes=1 << 20), Wait("g"), Work(took(4), "optimizer")]
        out.append(script)
    return out


def pipeline() -> Scripts:
    """1F1B, whose micro-batches are waited for on arrival."""
    took = noise()
    plan = one_f_one_b(RANKS, MICROBATCHES, [10 * MS] * RANKS, [20 * MS] * RANKS, send_ns=MS)
    return [
        [replace(i, ns=took(i.ns / MS), layer=rank) if isinstance(i, Work) else i for i in script]
        for rank, script in enumerate(plan)
    ]


SCHEMES = {"ddp": ddp, "fsdp": fsdp, "tp": tp, "pipeline": pipeline}
#: Whose link is made slow: a pair that has others beside it; of DDP the only group there is.
SLOW = {"ddp": EVERYONE, "fsdp": (2, 3), "tp": (2, 3), "pipeline": (1, 2)}
schemes = pytest.mark.parametrize("scheme", SCHEMES)


def late(scripts: Scripts, rank: int) -> Scripts:
    out = list(scripts)
    out[rank] = [replace(i, ns=i.ns * 13 // 10) if isinstance(i, Work) else i for i in out[rank]]
    return out


def slow(scripts: Scripts, ranks: tuple[int, ...]) -> Scripts:
    return [
        [
            replace(i, cost_ns=3 * i.cost_ns + 10 * MS)
            if isinstance(i, Issue) and set(i.ranks) == set(ranks)
            else i
            for i in script
        ]
        for script in scripts
    ]


def without(scripts: Scripts, key: str, rank: int) -> Scripts:
    """One rank never makes a call; the others give it up after 500 ms.

    Of the sends between two ranks that can only be the last: an earlier one's receive gets the next send.
    """
    out: Scripts = []
    for r, script in enumerate(scripts):
        kept: list[Work | Issue | Wait] = []
        for i in script:
            if not isinstance(i, Work) and i.key == key:
                if r == rank:
                    continue
                if isinstance(i, Issue):
                    others = tuple(x for x in i.ranks if x != rank)
                    i = replace(i, ranks=others, claims=i.ranks, cost_ns=500 * MS)
            kept.append(i)
        out.append(kept)
    return out


def link() -> Run:
    """A calibrated link on which DDP's all-reduce takes what it takes in a run that is well."""
    rows = [LinkRow("all_reduce", RANKS, size, ns, 0, 0, 5, 0) for size, ns in ((4, MS), (1 << 20, 11 * MS))]
    return calibration(*rows)


def only(found: tuple[Finding, ...]) -> Finding:
    assert len(found) == 1, [(f.kind, f.ranks) for f in found]
    return found[0]


def truth(sick: Scripts, well: Scripts) -> int:
    return end_ns(simulate(sick)) - end_ns(simulate(well))


@schemes
def test_a_run_that_is_well_has_no_finding(tmp_path: Path, scheme: str) -> None:
    ours = write_run(tmp_path, SCHEMES[scheme]())
    assert diagnose(ours, calibration=link()) == ()
    assert diagnose(ours, mode="isolated", link_model="free") == ()


@schemes
@pytest.mark.parametrize("rank", [0, 2])
def test_a_late_rank_is_named_with_its_cost_and_the_calls_it_is_last_at(
    tmp_path: Path, scheme: str, rank: int
) -> None:
    well = SCHEMES[scheme]()
    sick = late(well, rank)
    found = only(diagnose(write_run(tmp_path, sick), calibration=link()))
    assert (found.kind, found.ranks) == (LATE_RANK, (rank,))
    assert found.cost_ns == pytest.approx(truth(sick, well), rel=0.05)
    assert found.step_ns == end_ns(simulate(sick))
    assert found.count > 0
    assert all(rank in call.ranks and call.ns > 0 for call in found.calls)
    assert "30% longer" in found.evidence[0] or "29% longer" in found.evidence[0]


@schemes
def test_a_slow_link_is_named_with_its_cost_and_its_calls(tmp_path: Path, scheme: str) -> None:
    well = SCHEMES[scheme]()
    sick = slow(well, SLOW[scheme])
    found = only(diagnose(write_run(tmp_path, sick), calibration=link()))
    assert (found.kind, found.ranks) == (SLOW_LINK, SLOW[scheme])
    assert found.cost_ns == pytest.approx(truth(sick, well), rel=0.05)
    assert all(set(call.ranks) == set(SLOW[scheme]) for call in found.calls)


@pytest.mark.parametrize(
    ("scheme", "key", "rank"),
    [("ddp", "g3", 2), ("fsdp", "b2(2, 3)", 3), ("tp", "forward4(0, 1)", 1), ("pipeline", "F7:(1, 2)", 1)],
)
def test_a_call_that_a_rank_never_made_is_named_with_its_cost(
    tmp_path: Path, scheme: str, key: str, rank: int
) -> None:
    well = SCHEMES[scheme]()
    sick = without(well, key, rank)
    found = only(diagnose(write_run(tmp_path, sick, seq=False), calibration=link()))
    assert (found.kind, found.ranks, found.count) == (MISSING_CALL, (rank,), 1)
    assert found.cost_ns == pytest.approx(truth(sick, well), rel=0.05)
    made = next(i for s in well for i in s if isinstance(i, Issue) and i.key == key)
    (call,) = found.calls
    assert call.ranks == made.ranks
    assert call.op == ("send" if scheme == "pipeline" else made.op)
    assert call.ns == pytest.approx(500 * MS, rel=0.05)


def test_a_call_that_differs_on_one_rank_is_named(tmp_path: Path) -> None:
    sick = tp()
    sick[3] = [replace(i, op="all_gather") if isinstance(i, Issue) and i.key == "g" else i for i in sick[3]]
    found = only(diagnose(write_run(tmp_path, sick), calibration=link()))
    assert (found.kind, found.ranks, found.calls[0].op) == (MISMATCHED_CALL, (3,), "all_reduce")
    assert "collective type mismatch, rank 3" in found.evidence[0]


def test_two_ranks_that_are_late_together_are_one_finding(tmp_path: Path) -> None:
    well = tp()
    sick = late(late(well, 1), 2)
    found = only(diagnose(write_run(tmp_path, sick), calibration=link()))
    assert (found.kind, found.ranks) == (LATE_RANK, (1, 2))
    assert found.cost_ns == pytest.approx(truth(sick, well), rel=0.05)


def test_a_rank_that_is_late_where_nobody_waits_for_it_is_no_finding(tmp_path: Path) -> None:
    sick = ddp()
    sick[1] = [
        replace(i, ns=2 * i.ns) if isinstance(i, Work) and i.phase == "optimizer" else i for i in sick[1]
    ]
    found = diagnose(write_run(tmp_path, sick), calibration=link())
    assert found == ()


def test_the_dearest_comes_first(tmp_path: Path) -> None:
    both = slow(late(fsdp(), 0), (2, 3))
    found = diagnose(write_run(tmp_path, both), calibration=link())
    assert {f.kind for f in found} <= {LATE_RANK, SLOW_LINK}
    assert [f.cost_ns for f in found] == sorted((f.cost_ns for f in found), reverse=True)
    assert found[0].kind == SLOW_LINK


# ---- the committed runs

#: Runs that are to show a rank with more work than its peers, and which.
UNEVEN = {"late-rank": 2, "ep-skewed": 0, "cp-ring": 3}


@pytest.mark.parametrize("mode", ["isolated", "recorded"])
@pytest.mark.parametrize("run_id", ids_with_steps())
def test_of_the_committed_runs_only_those_made_uneven_have_a_finding(run_id: str, mode: str) -> None:
    found = diagnose(run(run_id), mode=mode, calibration=calibration_of(run_id))
    expected = [(LATE_RANK, (UNEVEN[run_id],))] if run_id in UNEVEN else []
    assert [(f.kind, f.ranks) for f in found] == expected
