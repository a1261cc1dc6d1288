"""What matching must hold for any run: invariance to order, and one missing call that shifts nothing."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from generator.runs.run import RankTrace
from generator.timeline.collectives import Arrival, Match, Verdict, arrivals, match
from tests.timeline.calls import as_sets, faults, traces
from tests.timeline.synthetic import Issue, Script, Wait, Work


@st.composite
def runs(draw: st.DrawFn) -> list[Script]:
    """Ranks that compute and call: collectives of all or of pairs, messages, batches round a ring.

    All ranks go through the same list of what happens, so nobody waits in a circle.
    """
    count = draw(st.integers(2, 4))
    scripts: list[list[Work | Issue | Wait]] = [[] for _ in range(count)]
    pending: list[list[Wait]] = [[] for _ in range(count)]
    for k in range(draw(st.integers(1, 9))):
        for script in scripts:
            script.append(Work(draw(st.integers(1, 300))))
        kind = draw(st.sampled_from(("all", "some", "message", "ring")))
        cost, size = draw(st.integers(1, 90)), draw(st.sampled_from((64, 128)))
        if kind in ("all", "some"):
            ranks = tuple(range(count))
            if kind == "some":
                first = draw(st.integers(0, count - 2))
                ranks = (first, draw(st.integers(first + 1, count - 1)))
            op = draw(st.sampled_from(("all_reduce", "all_gather")))
            blocking = draw(st.booleans())
            for rank in ranks:
                issue = Issue(f"c{k}", ranks, cost, op, bytes=size, group=f"g{ranks}")
                scripts[rank].append(issue)
                (scripts if blocking else pending)[rank].append(Wait(f"c{k}"))
        else:
            pairs = [tuple(draw(st.permutations(range(count)))[:2])]
            if kind == "ring":
                pairs = [(rank, (rank + 1) % count) for rank in range(count)]
            issued: list[list[Issue]] = [[] for _ in range(count)]
            for src, dst in pairs:
                for rank, op in ((src, "send"), (dst, "recv")):
                    key = f"m{k}:{src}>{dst}"
                    issued[rank].append(
                        Issue(key, (src, dst), cost, op, size, group=f"p{src}>{dst}", reported=False)
                    )
            for rank, batch in enumerate(issued):
                batch = draw(st.permutations(batch))
                scripts[rank] += [*batch, *(Wait(issue.key) for issue in batch)]
    for script, waits in zip(scripts, pending, strict=True):
        script += [*waits, Work(1)]
    return [tuple(script) for script in scripts]


def calls_of(ranks: list[RankTrace]) -> list[Arrival]:
    return list(chain.from_iterable(arrivals(trace, 0) for trace in ranks))


def found(matches: tuple[Match, ...]) -> list[tuple[object, ...]]:
    """All that a matching says, but for the rows of the files."""
    return [
        (m.op, m.group, m.expected, m.verdict, m.culprits, m.naming, m.pairing, m.part,
         [(a.rank, a.call, a.phase, a.done_ns) for a in m.members])
        for m in matches
    ]  # fmt: skip


@given(runs(), st.booleans(), st.randoms(use_true_random=False))
def test_matching_does_not_depend_on_the_order_of_files_or_events(
    scripts: list[Script], seq: bool, dice: random.Random
) -> None:
    expected = match(calls_of(traces(scripts, seq=seq)))
    ranks = traces(scripts, seq=seq, shuffle=dice)
    dice.shuffle(ranks)
    calls = calls_of(ranks)
    assert found(match(calls)) == found(expected)
    dice.shuffle(calls)
    assert found(match(calls)) == found(expected)


@given(runs(), st.booleans())
def test_a_whole_run_matches_and_members_are_those_of_one_key(scripts: list[Script], seq: bool) -> None:
    matches = match(calls_of(traces(scripts, seq=seq)))
    assert faults(matches) == []
    keys = [[i.key for i in script if isinstance(i, Issue)] for script in scripts]
    # The trace numbers the calls of a rank in the order in which it issues them.
    assert all(len({keys[a.rank][a.call] for a in m.members}) == 1 for m in matches)
    assert len(matches) == len({key for own in keys for key in own})


@given(runs(), st.data())
def test_a_call_that_is_gone_is_named_on_its_rank_and_shifts_nothing(
    scripts: list[Script], data: st.DataObject
) -> None:
    calls = calls_of(traces(scripts))
    whole = as_sets(match(calls))
    if not calls:
        return
    gone = data.draw(st.sampled_from(calls))
    matches = match(a for a in calls if a is not gone)
    assert faults(matches) == [(Verdict.MEMBER_MISSING, (gone.rank,))]
    assert as_sets(matches) == {members - {(gone.rank, gone.call)} for members in whole}


@given(runs(), st.data())
def test_without_numbers_too_where_time_tells_calls_apart(scripts: list[Script], data: st.DataObject) -> None:
    """Else it is still that rank and that group, though another of the calls that cannot be told apart."""
    calls = calls_of(traces(scripts, seq=False))
    whole = as_sets(match(calls))
    if not calls:
        return
    gone = data.draw(st.sampled_from(calls))
    matches = match(a for a in calls if a is not gone)
    (short,) = (m for m in matches if m.verdict is not Verdict.MATCHED)
    assert (short.verdict, short.culprits) == (Verdict.MEMBER_MISSING, (gone.rank,))
    assert short.members[0].group == gone.group
    alike = [a for a in calls if (a.rank, a.group, a.signature) == (gone.rank, gone.group, gone.signature)]
    if len(alike) == 1:
        assert as_sets(matches) == {members - {(gone.rank, gone.call)} for members in whole}


@given(runs(), st.booleans())
def test_names_that_each_rank_gives_to_its_groups_change_nothing(scripts: list[Script], seq: bool) -> None:
    calls = calls_of(traces(scripts, seq=seq))
    renamed = [replace(a, group=f"{a.group} on {a.rank}") for a in calls]
    matches = match(renamed)
    assert faults(matches) == []
    assert as_sets(matches) == as_sets(match(calls))


@given(runs(), st.integers(2, 4), st.data())
def test_coalescing_changes_nothing_and_a_missing_part_stays_in_its_block(
    scripts: list[Script], size: int, data: st.DataObject
) -> None:
    """Every few calls of a group under one number."""
    calls = calls_of(traces(scripts))
    blocks = [a if a.point_to_point else replace(a, seq=a.seq // size) for a in calls]
    matches = match(blocks)
    assert faults(matches) == []
    assert as_sets(matches) == as_sets(match(calls))
    if not blocks:
        return
    gone = data.draw(st.sampled_from(blocks))
    (short,) = (m for m in match(a for a in blocks if a is not gone) if m.verdict is not Verdict.MATCHED)
    assert (short.verdict, short.culprits) == (Verdict.MEMBER_MISSING, (gone.rank,))
    assert {(a.group, a.seq) for a in short.members} == {(gone.group, gone.seq)}
