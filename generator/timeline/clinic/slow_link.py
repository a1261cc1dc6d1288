"""Which link is slow: transfers, held against such calls elsewhere and against the calibrated link."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from generator.runs.run import Run
from generator.timeline.clinic.finding import (
    Finding,
    Like,
    like_of,
    listed,
    modelled_ns,
    ms,
    step_ns,
    where,
    worst,
    worth,
)
from generator.timeline.collectives import Match
from generator.timeline.graph import Node
from generator.timeline.links import TableLink
from generator.timeline.reconstruct import graph_of
from generator.timeline.replay import recorded_schedule
from generator.timeline.whatif import Replayable

SLOW_LINK = "slow link"
#: How much longer calls on a slow link take than such calls elsewhere, or than the calibrated link says.
SLOW_ELSEWHERE, SLOW_BY_MODEL = 1.5, 2.0
SLOW_BY_NS = 5_000_000


@dataclass(frozen=True, slots=True)
class _Seen:
    """A call whose transfer was seen: where it stands and what it took, ns."""

    step: int
    index: int
    match: Match
    ns: float


def slow_links(step: Replayable, link: TableLink | None) -> list[Finding]:
    """The places (ranks that call each other) whose calls take long, where that costs something."""
    places: dict[tuple[int, ...], dict[Like, list[_Seen]]] = defaultdict(lambda: defaultdict(list))
    for index in step.run.manifest.timed_steps:
        for seen in _transfers(step.run, index):
            places[tuple(sorted(seen.match.expected))][like_of(step.run, seen.match)].append(seen)
    found = []
    for place in sorted(places):
        others = [calls for ranks, calls in places.items() if ranks != place]
        slow = {}
        for like, calls in places[place].items():
            usual = _usual(_median(calls), [_median(o[like]) for o in others if like in o], link, like)
            if usual is not None:
                slow[like] = usual
        if slow:
            found.append(_slow(step, place, places[place], slow))
    return [f for f in found if worth(f)]


def _usual(own: float, elsewhere: Sequence[float], link: TableLink | None, like: Like) -> float | None:
    """What calls would take if the link were as others, ns; None where they do not take much longer."""
    if elsewhere:
        # Of an even number the lower: of two others one may be slow too.
        usual = statistics.median_low(elsewhere)
        if _longer(own, usual, SLOW_ELSEWHERE):
            return usual
    modelled = modelled_ns(link, like)
    return modelled if modelled and _longer(own, modelled, SLOW_BY_MODEL) else None


def _longer(own: float, usual: float, times: float) -> bool:
    return own >= times * usual and own >= usual + SLOW_BY_NS


def _median(calls: Sequence[_Seen]) -> float:
    return statistics.median(c.ns for c in calls)


def _transfers(run: Run, index: int) -> list[_Seen]:
    """The calls of a step whose completion was seen, and the median of what they took on those ranks."""
    graph = graph_of(run, index)
    schedule = recorded_schedule(graph)
    origin = min(p.begin_ns for p in graph.programs)
    waits: dict[tuple[int, int], int] = {}
    for own, lane in zip(graph.programs, graph.lanes, strict=True):
        for node in lane[graph.kind[lane] == Node.WAIT].tolist():
            begin = int(own.start_ns[graph.segment[node]]) - origin
            waits.setdefault((int(graph.match[node]), own.rank), begin)
    found = []
    for i, match in enumerate(graph.matches):
        took = []
        for m in match.members:
            done = graph.done[i, m.rank]
            begin = int(schedule.begin_ns[done])
            # A sender may be through before its bytes have arrived. A thread that came to its wait after
            # the call had begun can only tell that it was complete by then.
            if m.op != "send" and (m.done_seen or waits.get((i, m.rank), begin + 1) <= begin):
                took.append(int(schedule.end_ns[done]) - begin)
        if took:
            found.append(_Seen(index, i, match, statistics.median(took)))
    return found


def _slow(
    step: Replayable,
    place: tuple[int, ...],
    calls: Mapping[Like, Sequence[_Seen]],
    slow: Mapping[Like, float],
) -> Finding:
    durations, graph = step.durations, step.graph
    for index, match in enumerate(graph.matches):
        like = like_of(step.run, match)
        if tuple(sorted(match.expected)) == place and like in slow:
            for m in match.members:
                done = graph.done[index, m.rank]
                durations[done] = min(int(durations[done]), round(slow[like]))
    long = [where(c.step, c.match, round(c.ns - slow[like])) for like in slow for c in calls[like]]
    whole = step_ns(graph, step.durations)
    return Finding(
        kind=SLOW_LINK,
        ranks=place,
        group=", ".join(sorted({c.match.group for like in slow for c in calls[like]})),
        calls=worst(long),
        count=len(long),
        cost_ns=whole - step_ns(graph, durations),
        step_ns=whole,
        evidence=tuple(
            f"{like[0]} of {like[1]} B between ranks {listed(place)} takes {ms(_median(calls[like]))} in the "
            f"median of {len(calls[like])} calls, {ms(usual)} were usual"
            for like, usual in sorted(slow.items())
        ),
    )
