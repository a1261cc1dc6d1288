"""Which rank is late: its work, held against that of its peers."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence

from generator.runs.run import I64, MISSING
from generator.timeline.clinic.finding import Finding, ms, step_ns, where, worst, worth
from generator.timeline.program import MODULES, Program, Role, program
from generator.timeline.replay import replay
from generator.timeline.spans import Activity
from generator.timeline.whatif import Replayable, stretch

LATE_RANK = "late rank"
#: Least excess of a late rank's work over its peers', by mode.
LATE_WORK = {"isolated": 0.05, "recorded": 0.10}
_PIPELINE_WORK = (Activity.FORWARD, Activity.BACKWARD, Activity.BACKWARD_INPUT, Activity.BACKWARD_WEIGHT)

#: Activity, module, layer and micro-batch.
_Key = tuple[int, int, int, int]
_Works = Mapping[int, Mapping[_Key, int]]


def late_ranks(step: Replayable) -> list[Finding]:
    """The ranks that are late in every timed step, where that costs something."""
    works = {s: _work(step, s) for s in {step.step, *step.run.manifest.timed_steps}}
    excess = {
        rank: [_excess(works[s], rank) for s in step.run.manifest.timed_steps] for rank in works[step.step]
    }
    late = [rank for rank in excess if min(excess[rank]) >= LATE_WORK[step.mode]]
    chosen = [(rank,) for rank in late]
    found = [_late(step, works[step.step], ranks, excess) for ranks in chosen]
    if len(late) > 1 and not any(worth(f) for f in found):
        found = [_late(step, works[step.step], tuple(late), excess)]
    return [f for f in found if worth(f)]


def _late(
    step: Replayable, work: _Works, ranks: tuple[int, ...], excess: Mapping[int, Sequence[float]]
) -> Finding:
    schedule = replay(step.graph, step.durations)
    shared, last = 0, []
    for index, match in enumerate(step.graph.matches):
        arrive = {m.rank: int(schedule.end_ns[step.graph.arrive[index, m.rank]]) for m in match.members}
        others = [at for rank, at in arrive.items() if rank not in ranks]
        own = [at for rank, at in arrive.items() if rank in ranks]
        if own and others:
            shared += 1
            if max(own) > max(others):
                last.append(where(step.step, match, max(own) - max(others)))
    evidence = [
        f"the work of rank {rank} takes {statistics.median(excess[rank]):.0%} longer than that of its peers "
        f"in the median of {len(excess[rank])} steps, and at least {min(excess[rank]):.0%} in each"
        for rank in ranks
    ]
    if last:
        late_ns = statistics.median(w.ns for w in last)
        evidence.append(f"last to arrive at {len(last)} of {shared} calls, by {ms(late_ns)} in the median")
    return Finding(
        kind=LATE_RANK,
        ranks=ranks,
        group="",
        calls=worst(last),
        count=len(last),
        cost_ns=schedule.step_ns - step_ns(step.graph, _on_time(step, work, ranks)),
        step_ns=schedule.step_ns,
        evidence=tuple(evidence),
    )


def _work(step: Replayable, index: int) -> dict[int, dict[_Key, int]]:
    """What each rank worked in a step of the run, by key, ns."""
    return {trace.rank: _of_program(step, program(trace, index)) for trace in step.run.ranks}


def _of_program(step: Replayable, own: Program) -> dict[_Key, int]:
    took = own.wall_ns if step.mode == "recorded" else own.cpu_ns
    work: dict[_Key, int] = defaultdict(int)
    for role, ns, *key in zip(
        own.role.tolist(), took.tolist(), own.activity.tolist(), own.module.tolist(), own.layer.tolist(),
        own.microbatch.tolist(), strict=True,
    ):  # fmt: skip
        if role != Role.WAIT:
            work[key[0], key[1], key[2], key[3]] += ns
    return dict(work)


def _targets(work: _Works, rank: int) -> dict[_Key, float]:
    """What the rank's comparable work would take if it took what it takes its peers, ns."""
    own, layers = work[rank], {r: _layers(w) for r, w in work.items()}
    alike = [r for r in work if r != rank and layers[r] == layers[rank]]
    if alike:
        seen = {key: [work[r][key] for r in alike if key in work[r]] for key in own}
        return {key: statistics.median(times) for key, times in seen.items() if times}
    targets: dict[_Key, float] = {}
    for activity in _PIPELINE_WORK:
        per_layer = {r: _in_blocks(w, activity) / max(1, len(layers[r])) for r, w in work.items()}
        others = [ns for r, ns in per_layer.items() if r != rank and ns]
        if others and per_layer[rank]:
            share = statistics.median(others) / per_layer[rank]
            targets |= {key: own[key] * share for key in own if _block(key, activity)}
    return targets


def _layers(work: Mapping[_Key, int]) -> frozenset[int]:
    return frozenset(layer for _, _, layer, _ in work if layer != MISSING)


def _block(key: _Key, activity: Activity) -> bool:
    """Whether it is such work, and of neither the embedding nor the head."""
    return key[0] == activity and key[1] in (MISSING, MODULES.index("block"))


def _in_blocks(work: Mapping[_Key, int], activity: Activity) -> int:
    return sum(ns for key, ns in work.items() if _block(key, activity))


def _excess(work: _Works, rank: int) -> float:
    """By how much a rank's work is longer than its peers', as a share of theirs."""
    targets = _targets(work, rank)
    whole = sum(targets.values())
    return sum(work[rank][key] for key in targets) / whole - 1 if whole else 0.0


def _on_time(step: Replayable, work: _Works, ranks: Sequence[int]) -> I64:
    """Durations in which the comparable work of some ranks takes what it takes the others, ns."""
    durations = step.durations
    others = {r: w for r, w in work.items() if r not in ranks}
    for rank in ranks:
        nodes: dict[_Key, list[int]] = defaultdict(list)
        own, lane = step.graph.programs[rank], step.graph.lanes[rank]
        for node in lane[step.graph.segment[lane] >= 0].tolist():
            i = int(step.graph.segment[node])
            if own.role[i] != Role.WAIT:
                key = int(own.activity[i]), int(own.module[i]), int(own.layer[i]), int(own.microbatch[i])
                nodes[key].append(node)
        for key, ns in _targets({**others, rank: work[rank]}, rank).items():
            if work[rank][key]:
                stretch(durations, nodes[key], round(ns))
    return durations
