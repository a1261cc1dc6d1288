"""What-ifs: against the independent simulation, and what they must never do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.errors import UserError
from generator.timeline.links import FreeLink, ring_link
from generator.timeline.metrics import METRICS
from generator.timeline.replay import isolated_durations, replay, scale_rank
from generator.timeline.whatif import (
    NOTHING,
    Replayable,
    WhatIf,
    parse_what_if,
    replay_what_if,
    replayable,
    what_if_durations,
    what_if_graph,
    what_if_text,
    what_if_timeline,
)
from tests.committed import calibration_of, ids_with_steps, run
from tests.properties import examples
from tests.timeline.synthetic import Issue, Laid, Script, Wait, Work, one_f_one_b, simulate, write_run
from tests.timeline.test_links import calibration, sends

RANKS = 3
EVERYONE = tuple(range(RANKS))
PHASES = ("forward", "backward_input", "backward_weight", "optimizer")
OPS = ("all_reduce", "all_gather")
LAYERS = range(3)
#: A link of 60 ns and one byte a ns.
LINK = calibration(*sends(60, 1.0))

ns = st.integers(0, 500)
per_mille = st.integers(0, 3000)
factors = st.one_of(per_mille, st.integers(0, 100_000))


@st.composite
def scripts(draw: st.DrawFn) -> list[Script]:
    """Ranks that compute in phases and layers and call the same operations in the same order."""
    calls = [
        (f"c{i}", draw(st.sampled_from(OPS)), draw(ns), draw(ns)) for i in range(draw(st.integers(1, 4)))
    ]
    out: list[Script] = []
    for _ in range(RANKS):
        script: list[Work | Issue | Wait] = [draw(works)]
        pending: list[str] = []
        for key, op, cost, size in calls:
            script.append(Issue(key, EVERYONE, cost, op, bytes=size, ns=draw(st.integers(0, 5))))
            pending.append(key)
            script += draw(st.lists(works, min_size=1, max_size=2))
            if draw(st.booleans()):
                script.append(Wait(pending.pop(0), draw(st.integers(0, 9))))
        out.append([*script, *(Wait(key, draw(st.integers(0, 9))) for key in pending)])
    return out


works = st.builds(Work, st.integers(1, 500), st.sampled_from(PHASES), layer=st.sampled_from([-1, *LAYERS]))


@st.composite
def what_ifs(draw: st.DrawFn) -> WhatIf:
    some = st.frozensets(st.sampled_from(OPS))
    asynchronous = draw(some)
    return WhatIf(
        ranks=draw(st.dictionaries(st.sampled_from(EVERYONE), factors, max_size=2)),
        phases=draw(st.dictionaries(st.sampled_from(("backward", "host", *PHASES)), per_mille, max_size=3)),
        layers=draw(st.dictionaries(st.sampled_from(LAYERS), per_mille, max_size=2)),
        latency=draw(factors),
        bandwidth=draw(st.integers(1, 100_000)),
        free=draw(st.booleans()) and draw(st.booleans()),
        free_ops=draw(some),
        asynchronous=asynchronous,
        blocking=draw(some) - asynchronous,
    )


def known(what_if: WhatIf, what: Replayable) -> WhatIf:
    """The part of a what-if that a run has, so that it can be asked."""
    phases = {PHASE_NAMES[n] for n in np.unique(what.phase) if n >= 0}
    if phases & {"backward_input", "backward_weight"}:
        phases.add("backward")
    ops = frozenset(what.ops)
    return replace(
        what_if,
        phases={k: v for k, v in what_if.phases.items() if k in phases},
        layers={k: v for k, v in what_if.layers.items() if k in what.layer},
        free_ops=what_if.free_ops & ops,
        asynchronous=what_if.asynchronous & ops,
        blocking=what_if.blocking & ops,
    )


PHASE_NAMES = ("forward", "backward", "backward_input", "backward_weight", "optimizer", "host")


def made(all_scripts: list[Script], mode: str = "recorded") -> Replayable:
    with TemporaryDirectory() as folder:
        ours = write_run(Path(folder), all_scripts)
    return replayable(ours, mode=mode, calibration=LINK)


# ---- the independent way: change the scripts, and simulate them


def changed(script: Script, rank: int, what_if: WhatIf, isolated: bool) -> Script:
    """What a rank does under other costs, written down from the definition of each."""
    out: list[Work | Issue | Wait] = []
    waits_for: dict[str, str] = {item.key: item.op for item in script if isinstance(item, Issue)}
    for item in script:
        if isinstance(item, Work):
            took = item.ns
            for table, name in (
                (what_if.ranks, rank),
                (what_if.phases, "backward" if item.phase.startswith("backward") else ""),
                (what_if.phases, item.phase),
                (what_if.layers, item.layer),
            ):
                took = scaled(took, table.get(name, 1000))  # type: ignore[call-overload]
            out.append(replace(item, ns=took))
        elif isinstance(item, Issue):
            took = scaled(scaled(item.ns, what_if.ranks.get(rank, 1000)), what_if.phases.get("host", 1000))
            out.append(replace(item, ns=took, cost_ns=cost(item, what_if, isolated)))
            if item.op in what_if.blocking:
                out.append(Wait(item.key))
        elif waits_for[item.key] not in what_if.asynchronous:
            out.append(Wait(item.key, 0 if isolated else item.lag_ns))
    return out


def cost(item: Issue, what_if: WhatIf, isolated: bool) -> int:
    if what_if.free or item.op in what_if.free_ops:
        return 0
    latency, transfer = 0, item.cost_ns
    if isolated:
        steps = {"all_reduce": 2 * (RANKS - 1), "all_gather": RANKS - 1}[item.op]
        latency = steps * 60
        transfer = round(latency + steps / RANKS * item.bytes) - latency
    slower = transfer * 1000 / what_if.bandwidth
    return scaled(latency, what_if.latency) + int(slower + 0.5)


def scaled(value: int, factor: int) -> int:
    return (value * factor + 500) // 1000


def end_of(laid: list[Laid]) -> int:
    """When the last thing ends: a rank, or a call that nobody waits for."""
    return max(max([lane.items[-1][2], *lane.done.values()]) for lane in laid)


@examples(120)
@given(scripts(), what_ifs(), st.booleans())
def test_a_what_if_is_what_the_simulation_of_the_changed_scripts_says(
    all_scripts: list[Script], asked: WhatIf, isolated: bool
) -> None:
    what = made(all_scripts, "isolated" if isolated else "recorded")
    what_if = known(asked, what)
    changed_scripts = [changed(s, rank, what_if, isolated) for rank, s in enumerate(all_scripts)]
    assert replay_what_if(what, what_if).step_ns == end_of(simulate(changed_scripts))


# ---- what it must never do


@examples(40)
@given(scripts(), st.sampled_from(["recorded", "isolated"]))
def test_a_what_if_that_changes_nothing_changes_nothing(all_scripts: list[Script], mode: str) -> None:
    what = made(all_scripts, mode)
    as_it_is = replay(what.graph, what.durations)
    ones = WhatIf(ranks={0: 1000}, phases={"host": 1000}, layers={1: 1000}, latency=1000, bandwidth=1000)
    for what_if in (NOTHING, ones, parse_what_if("")):
        found = replay_what_if(what, what_if)
        assert np.array_equal(found.begin_ns, as_it_is.begin_ns)
        assert np.array_equal(found.end_ns, as_it_is.end_ns)


@pytest.mark.parametrize("run_id", ids_with_steps())
def test_it_changes_nothing_in_any_committed_run_and_free_communication_is_a_free_link(run_id: str) -> None:
    ours, calibrated = run(run_id), calibration_of(run_id)
    for mode, link in (("recorded", ""), ("isolated", "ring"), ("isolated", "gloo")):
        what = replayable(ours, mode=mode, link_model=link, calibration=calibrated)
        as_it_is = replay(what.graph, what.durations)
        assert np.array_equal(replay_what_if(what, NOTHING).end_ns, as_it_is.end_ns)
        slower = what_if_durations(what, WhatIf(ranks={0: 1200}))
        assert np.array_equal(slower, scale_rank(what.graph, what.durations, 0, 1200))
        if mode == "isolated":
            free = replay(what.graph, isolated_durations(what.graph, FreeLink()))
            assert np.array_equal(replay_what_if(what, WhatIf(free=True)).end_ns, free.end_ns)
            assert replay_what_if(what, WhatIf(free_ops=frozenset(what.ops))).step_ns == free.step_ns


@examples(60)
@given(scripts(), what_ifs(), st.data())
def test_a_larger_factor_never_ends_anything_earlier_nor_a_wider_link_later(
    all_scripts: list[Script], asked: WhatIf, data: st.DataObject
) -> None:
    what = made(all_scripts, "isolated")
    what_if = known(asked, what)
    end = replay_what_if(what, what_if).end_ns
    more = data.draw(st.integers(1, 2000))

    def at_least(table: dict[object, int], name: object) -> dict[object, int]:
        return {**table, name: min(100_000, table.get(name, 1000) + more)}

    rank, layer = (
        data.draw(st.sampled_from(EVERYONE)),
        data.draw(st.sampled_from(sorted({*what.layer.tolist()}))),
    )
    op = data.draw(st.sampled_from(what.ops))
    longer = [
        replace(what_if, ranks=at_least(what_if.ranks, rank)),  # type: ignore[arg-type]
        replace(what_if, phases=at_least(what_if.phases, "host")),  # type: ignore[arg-type]
        replace(what_if, latency=min(100_000, what_if.latency + more)),
        replace(what_if, asynchronous=what_if.asynchronous - {op}, blocking=what_if.blocking | {op}),
    ]
    if layer >= 0:
        longer.append(replace(what_if, layers=at_least(what_if.layers, layer)))  # type: ignore[arg-type]
    shorter = [
        replace(what_if, bandwidth=min(100_000, what_if.bandwidth + more)),
        replace(what_if, free_ops=what_if.free_ops | {op}),
        replace(what_if, asynchronous=what_if.asynchronous | {op}, blocking=what_if.blocking - {op}),
    ]
    for other in longer:
        assert np.all(replay_what_if(what, other).end_ns >= end)
    for other in shorter:
        assert np.all(replay_what_if(what, other).end_ns <= end)


@examples(40)
@given(scripts(), st.sampled_from(OPS))
def test_to_let_a_call_block_that_blocks_already_changes_nothing(all_scripts: list[Script], op: str) -> None:
    at_once: list[Script] = []
    for script in all_scripts:
        lag = {item.key: item.lag_ns for item in script if isinstance(item, Wait)}
        out: list[Work | Issue | Wait] = []
        for item in script:
            if not isinstance(item, Wait):
                out += [item, Wait(item.key, lag[item.key])] if isinstance(item, Issue) else [item]
        at_once.append(out)
    what = made(at_once)
    ops = frozenset({op} & set(what.ops))
    blocked = replay_what_if(what, WhatIf(blocking=ops))
    assert np.array_equal(blocked.end_ns, replay_what_if(what, NOTHING).end_ns)


# ---- known answers


def test_balance_lets_every_rank_take_the_mean_piece_by_piece(tmp_path: Path) -> None:
    first, second = (101, 300), (200, 101)
    all_scripts = [
        [Work(first[r], layer=0), Issue("a", (0, 1), 50), Wait("a"), Work(second[r], layer=1)] for r in (0, 1)
    ]
    what = replayable(write_run(tmp_path, all_scripts), mode="recorded")
    assert replay_what_if(what, NOTHING).step_ns == 300 + 50 + 200
    # 200.5 and 150.5 are rounded up.
    assert replay_what_if(what, WhatIf(balance=True)).step_ns == 201 + 50 + 151


def test_balance_shares_a_pipelines_phases_by_rank_as_no_rank_has_anothers_layers(tmp_path: Path) -> None:
    m, forward, backward = 4, [10, 10, 10, 50], [20, 20, 20, 60]
    unequal = one_f_one_b(4, m, forward, backward)
    equal = one_f_one_b(4, m, [20] * 4, [30] * 4)
    layered = [
        [replace(i, layer=rank) if isinstance(i, Work) else i for i in script]
        for rank, script in enumerate(unequal)
    ]
    what = replayable(write_run(tmp_path, layered, stages=4, microbatches=m), mode="recorded")
    assert replay_what_if(what, WhatIf(balance=True)).step_ns == end_of(simulate(equal))


@examples(40)
@given(scripts())
def test_balance_keeps_the_sum_of_work_and_leaves_no_rank_with_more(all_scripts: list[Script]) -> None:
    what = made(all_scripts)
    durations = what_if_durations(what, WhatIf(balance=True))
    for share in np.unique(what.share[what.share >= 0]):
        nodes = (what.share == share) & (what.own_ns > 0)
        ranks = np.unique(what.graph.rank[nodes])
        sums = {int(durations[nodes & (what.graph.rank == r)].sum()) for r in ranks}
        assert len(sums) <= 1
        if sums:
            assert abs(sums.pop() * len(ranks) - int(what.own_ns[nodes].sum())) * 2 <= len(ranks)


def test_a_blocking_call_shows_its_issuer_blocked(tmp_path: Path) -> None:
    both = (0, 1)
    script = [Work(100), Issue("a", both, 50, ns=4), Work(30, "backward"), Wait("a"), Work(10, "optimizer")]
    what = replayable(write_run(tmp_path, [script, script]), mode="recorded")
    timeline = what_if_timeline(what, WhatIf(blocking=frozenset({"all_reduce"})))
    assert timeline.mode == "what-if"
    assert timeline.step_ns == 100 + 50 + 30 + 10
    assert METRICS["blocked"](timeline) == 50 - 4
    assert METRICS["busy"](timeline) == 140
    spans = timeline.ranks[0].computation
    assert np.array_equal(spans.start_ns[1:], spans.end_ns[:-1])


def test_a_call_that_nobody_waits_for_still_ends_in_the_step(tmp_path: Path) -> None:
    both = (0, 1)
    script = [Work(100), Issue("a", both, 500), Wait("a", 7), Work(30)]
    what = replayable(write_run(tmp_path, [script, script]), mode="recorded")
    timeline = what_if_timeline(what, WhatIf(asynchronous=frozenset({"all_reduce"})))
    assert timeline.step_ns == 600
    assert METRICS["blocked"](timeline) == 0


def test_sends_that_block_until_they_are_received_can_hang(tmp_path: Path) -> None:
    def exchange(rank: int) -> Script:
        there, back = (rank, 1 - rank), (1 - rank, rank)
        return [
            Work(10),
            Issue(f"{there}", there, 5, "send", group="p", reported=False),
            Issue(f"{back}", back, 5, "recv", group="p", reported=False),
            Wait(f"{there}"),
            Wait(f"{back}"),
        ]

    what = replayable(write_run(tmp_path, [exchange(0), exchange(1)]), mode="recorded")
    with pytest.raises(UserError, match=r"with send blocking, calls of ranks \[0, 1\] wait .* in a circle"):
        replay_what_if(what, WhatIf(blocking=frozenset({"send"})))


def test_the_graph_of_nothing_is_the_graph(tmp_path: Path) -> None:
    what = made([[Work(5), Issue("a", (0, 1), 50), Wait("a")], [Work(9), Issue("a", (0, 1), 50), Wait("a")]])
    assert what_if_graph(what, WhatIf(ranks={1: 2000})) is what.graph


@pytest.mark.parametrize("run_id", ["ddp", "fsdp-nodes", "pp-1f1b"])
def test_the_two_parts_of_a_call_add_up_to_it_and_half_the_bandwidth_doubles_one(run_id: str) -> None:
    calibrated = calibration_of(run_id)
    assert calibrated is not None
    what = replayable(run(run_id), calibration=calibrated)
    whole = isolated_durations(what.graph, ring_link(calibrated))
    assert np.array_equal(what.durations, whole)
    half = what_if_durations(what, WhatIf(bandwidth=500))
    assert np.array_equal(half, whole + what.transfer_ns)
    assert np.array_equal(what_if_durations(what, WhatIf(latency=2000)), whole + what.latency_ns)
    assert what.transfer_ns.max() > 0 < what.latency_ns.max()


# ---- as text


names = st.from_regex(r"[a-z][a-z0-9_]{0,9}", fullmatch=True)
any_what_ifs = st.builds(
    lambda asynchronous, blocking, **rest: WhatIf(
        asynchronous=asynchronous, blocking=blocking - asynchronous, **rest
    ),
    ranks=st.dictionaries(st.integers(0, 99), factors),
    phases=st.dictionaries(st.sampled_from(PHASE_NAMES), factors),
    layers=st.dictionaries(st.integers(0, 99), factors),
    latency=factors,
    bandwidth=st.integers(1, 100_000),
    free=st.booleans(),
    free_ops=st.frozensets(names),
    asynchronous=st.frozensets(names),
    blocking=st.frozensets(names),
    balance=st.booleans(),
)


@examples(50)
@given(any_what_ifs)
def test_a_what_if_survives_its_text_which_needs_no_escape_in_an_address(what_if: WhatIf) -> None:
    text = what_if_text(what_if)
    again = parse_what_if(text)
    assert again == what_if
    assert hash(again) == hash(what_if)
    assert what_if_text(again) == text
    assert set(text) <= set("abcdefghijklmnopqrstuvwxyz0123456789_=,")


def test_the_text_is_as_a_person_would_write_it() -> None:
    written = " bandwidth=2000, rank2=1200,async=all_reduce ,free=send, backward=500,layer3=0, balance"
    what_if = parse_what_if(written)
    assert what_if == WhatIf(
        ranks={2: 1200},
        phases={"backward": 500},
        layers={3: 0},
        bandwidth=2000,
        free_ops=frozenset({"send"}),
        asynchronous=frozenset({"all_reduce"}),
        balance=True,
    )
    assert what_if_text(what_if) == (
        "rank2=1200,backward=500,layer3=0,bandwidth=2000,free=send,async=all_reduce,balance"
    )
    assert parse_what_if("free=send,free") == WhatIf(free=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rnak2=1200", "a what-if has no 'rnak2'"),
        ("bandwith=2", "Did you mean 'bandwidth'?"),
        ("rank2", "'rank2' needs a whole number, per mille"),
        ("rank2=1.2", "'rank2' needs a whole number"),
        ("rank2=-5", "'rank2' needs a whole number"),
        ("rank02=5", "a what-if has no 'rank02'"),
        ("rank2=5,rank2=6", "'rank2' is given twice"),
        ("rank2=100001", "the factor of 2 is 100001. It may be 0 to 100000."),
        ("latency=200000", "the factor of latency is 200000"),
        ("bandwidth=0", "the factor of bandwidth is 0. It may be 1 to 100000."),
        ("balance=1", "'balance' has no value"),
        ("async", "'async' needs an operation"),
        ("free=", "'free' needs an operation"),
        ("block=All Reduce", "'All Reduce' is not the name of an operation"),
        ("async=send,block=send", "send cannot be asynchronous and blocking"),
    ],
)
def test_a_text_that_is_wrong_is_told_why(text: str, message: str) -> None:
    with pytest.raises(UserError) as error:
        parse_what_if(text)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rank4=1200", "the run 'ddp' has no rank 4. The nearest is 3."),
        ("layer9=1200", "has no layer 9. The nearest is 7."),
        ("backward_weight=1200", "has no phase backward_weight. Did you mean 'backward'?"),
        ("async=all_reduces", "has no operation all_reduces. Did you mean 'all_reduce'?"),
        ("free=send", "has no operation send. Known: all_reduce."),
    ],
)
def test_what_a_run_has_not_is_named_with_what_is_nearest(text: str, message: str) -> None:
    what = replayable(run("ddp"), calibration=calibration_of("ddp"))
    with pytest.raises(UserError) as error:
        replay_what_if(what, parse_what_if(text))
    assert message in str(error.value)


def test_a_phase_that_does_not_exist_is_named() -> None:
    with pytest.raises(UserError, match=r"there is no phase 'bakward'\. Did you mean 'backward'\?"):
        WhatIf(phases={"bakward": 500})


def test_an_unknown_mode_and_a_piece_too_long_to_be_multiplied_are_errors(tmp_path: Path) -> None:
    ours = write_run(tmp_path, [[Work(91 * 10**9)]])
    with pytest.raises(UserError, match="a piece of 91 s, too long for a what-if"):
        replayable(ours, mode="recorded")
    with pytest.raises(UserError, match="there is no mode 'real'"):
        replayable(ours, mode="real")
