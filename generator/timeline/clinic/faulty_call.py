"""Which call is missing on a rank, or differs there."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence

from generator.timeline.clinic.finding import (
    NAMED,
    Finding,
    Like,
    like_of,
    listed,
    modelled_ns,
    step_ns,
    where,
    worst,
)
from generator.timeline.collectives import Match, Verdict, match_step
from generator.timeline.links import TableLink
from generator.timeline.reconstruct import graph_of
from generator.timeline.replay import recorded_durations
from generator.timeline.whatif import Replayable

MISSING_CALL, MISMATCHED_CALL = "missing call", "mismatched call"


def faulty_calls(step: Replayable, link: TableLink | None) -> list[Finding]:
    """The calls of all steps that some rank did not make, or made otherwise, by rank and group."""
    found = []
    for index in (s.index for s in step.run.manifest.steps):
        faults: dict[tuple[Verdict, tuple[int, ...], str], list[Match]] = defaultdict(list)
        for match in match_step(step.run, index):
            if match.verdict not in (Verdict.MATCHED, Verdict.UNDECIDED):
                faults[match.verdict, match.culprits, match.group].append(match)
        found += [
            _faulty(step, link, index, verdict, ranks, matches)
            for (verdict, ranks, _), matches in faults.items()
        ]
    return found


def _faulty(
    step: Replayable,
    link: TableLink | None,
    index: int,
    verdict: Verdict,
    ranks: tuple[int, ...],
    faults: Sequence[Match],
) -> Finding:
    graph = graph_of(step.run, index)
    durations = recorded_durations(graph)
    usual = durations.copy()
    seen: dict[Like, list[int]] = defaultdict(list)
    for i, match in enumerate(graph.matches):
        if match.verdict is Verdict.MATCHED:
            seen[like_of(step.run, match)] += [int(durations[graph.done[i, m.rank]]) for m in match.members]
    long = []
    for i, match in enumerate(graph.matches):
        if match not in faults:
            continue
        likes = seen.get(like_of(step.run, match))
        ns = round(statistics.median(likes)) if likes else modelled_ns(link, like_of(step.run, match))
        nodes = [graph.done[i, m.rank] for m in match.members]
        for done in nodes:
            usual[done] = min(int(durations[done]), ns)
        long.append(where(index, match, max(int(durations[n] - usual[n]) for n in nodes)))
    whole = step_ns(graph, durations)
    return Finding(
        kind=MISSING_CALL if verdict is Verdict.MEMBER_MISSING else MISMATCHED_CALL,
        ranks=ranks,
        group=faults[0].group,
        calls=worst(long),
        count=len(long),
        cost_ns=whole - step_ns(graph, usual),
        step_ns=whole,
        evidence=tuple(
            f"{match.op} of '{match.group}' in step {index}: {verdict.value}, rank {listed(ranks)}"
            for match in faults[:NAMED]
        ),
    )
