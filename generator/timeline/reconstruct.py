"""From a run to a timeline: match, build the graph, lay it out, label the spans.

Modes: *recorded* shows the times of the recording. *isolated* replays the graph with the
computation each rank's thread did and calls priced by a link model: what the ranks would have done
each on a device of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from generator.errors import UserError
from generator.runs.manifest import FILE_NAME
from generator.runs.run import I64, MISSING, Run
from generator.timeline.collectives import Match, match_step
from generator.timeline.graph import Graph, Node, build
from generator.timeline.links import LinkModel
from generator.timeline.links import link_model as named_link_model
from generator.timeline.memo import once_a_step
from generator.timeline.memory import NO_MEMORY, boundary_times, memory_curve
from generator.timeline.program import Program, program, step_bounds
from generator.timeline.replay import Schedule, isolated_durations, recorded_schedule, replay
from generator.timeline.spans import (
    NO_WORK,
    Activity,
    Call,
    Member,
    MemoryCurve,
    RankTimeline,
    Spans,
    Timeline,
    Work,
)
from generator.timeline.work import work

MODES = ("recorded", "isolated")


def reconstruct(
    run: Run,
    *,
    mode: str = "isolated",
    link_model: str = "ring",
    calibration: Run | None = None,
    step: int | None = None,
) -> Timeline:
    """One step of a run on all ranks.

    `step` is the representative one unless given. `calibration` is the run named by the manifest's
    link, needed for isolated mode where ranks communicate. Raises UserError.
    """
    if mode not in MODES:
        raise UserError(f"there is no mode '{mode}'", remedy="Known: " + ", ".join(MODES) + ".")
    if not run.ranks:
        raise UserError(
            f"the run '{run.id}' has no rank files: it is a calibration",
            path=run.folder / FILE_NAME,
            remedy="Name a training run.",
        )
    chosen = representative_step(run) if step is None else step
    if mode == "recorded":
        graph = graph_of(run, chosen)
        return timeline_of(run, chosen, graph, recorded_schedule(graph), mode=mode, link_model="")
    link = isolated_link(run, link_model, calibration)
    graph = graph_of(run, chosen, eager=link_model != "gloo")
    schedule = replay(graph, isolated_durations(graph, link))
    return timeline_of(run, chosen, graph, schedule, mode=mode, link_model=link_model)


def isolated_link(run: Run, name: str, calibration: Run | None) -> LinkModel:
    """The link model for a run, made sure that the calibration is the one it was recorded with."""
    wanted = run.manifest.link.calibration
    if run.manifest.world_size > 1 and name != "free":
        if calibration is None:
            raise UserError(
                f"the run '{run.id}' needs its calibration '{wanted}' to be replayed isolated",
                path=run.folder / FILE_NAME,
                remedy=f"Add the run '{wanted}' to the book.",
            )
        if calibration.id != wanted:
            raise UserError(
                f"the run '{run.id}' was recorded with the calibration '{wanted}', not '{calibration.id}'",
                path=run.folder / FILE_NAME,
                remedy=f"Give '{wanted}'.",
            )
    return named_link_model(name, calibration if run.manifest.world_size > 1 else None)


def step_wall_ns(run: Run, step: int) -> int:
    """Recorded duration of a step: from the earliest begin to the latest end over ranks."""
    bounds = [step_bounds(trace, step) for trace in run.ranks]
    return max(end for _, end in bounds) - min(begin for begin, _ in bounds)


def representative_step(run: Run) -> int:
    """The timed step of median recorded duration (of an even number, the lower of the middle two)."""
    steps = run.manifest.timed_steps
    if not steps:
        raise UserError(
            f"the run '{run.id}' has no timed step",
            path=run.folder / FILE_NAME,
            remedy="Record more steps than are for warming up.",
        )
    return sorted(steps, key=lambda s: (step_wall_ns(run, s), s))[(len(steps) - 1) // 2]


def graph_of(run: Run, step: int, *, eager: bool = False, cross_rank: bool = True) -> Graph:
    """The dependency graph of a step. The one that a recording is held against is made once."""
    if not eager and cross_rank:
        return _recorded_graph(run, step)
    return _graph(run, step, eager=eager, cross_rank=cross_rank)


@once_a_step
def _recorded_graph(run: Run, step: int) -> Graph:
    return _graph(run, step, eager=False, cross_rank=True)


def _graph(run: Run, step: int, *, eager: bool, cross_rank: bool) -> Graph:
    programs = [program(trace, step) for trace in run.ranks]
    return build(programs, match_step(run, step), eager=eager, cross_rank=cross_rank)


def timeline_of(
    run: Run, step: int, graph: Graph, schedule: Schedule, *, mode: str, link_model: str
) -> Timeline:
    """Label a schedule: spans, calls and memory of every rank."""
    step_ns = schedule.step_ns
    calls = {(m.rank, m.call): i for i, match in enumerate(graph.matches) for m in match.members}
    schedule_of = run.manifest.schedule
    received = received_bytes(run)
    return Timeline(
        run=run.id,
        mode=mode,
        link_model=link_model,
        step=step,
        step_ns=step_ns,
        ranks=tuple(
            RankTimeline(
                rank=p.rank,
                computation=_computation(graph, schedule, p, lane, step_ns, calls),
                memory=_memory(run, graph, schedule, p, lane),
                work=_work(run, p.rank),
            )
            for p, lane in zip(graph.programs, graph.lanes, strict=True)
        ),
        calls=tuple(_call(graph, schedule, i, m, received) for i, m in enumerate(graph.matches)),
        stages=run.manifest.mesh.pp * (schedule_of.chunks if schedule_of else 1),
        microbatches=run.manifest.microbatches,
        ranks_per_node=run.manifest.link.ranks_per_node,
    )


_Labels = tuple[int, int, int, int, int, int]


@dataclass(slots=True)
class _Piece:
    """A span that is still growing."""

    start_ns: int
    end_ns: int
    #: Activity, layer, micro-batch, module, stage, call.
    labels: _Labels
    row: int


def _computation(
    graph: Graph,
    schedule: Schedule,
    own: Program,
    lane: I64,
    step_ns: int,
    calls: dict[tuple[int, int], int],
) -> Spans:
    """The computation lane of a rank: the nodes of its own program in order, alike neighbours joined.

    `lane`: these nodes. `calls`: (rank, the trace's id of a call) to the index of its match.
    """
    idle = (int(Activity.IDLE), MISSING, MISSING, MISSING, MISSING, MISSING)
    pieces: list[_Piece] = []

    def add(start: int, end: int, labels: _Labels, row: int) -> None:
        if end <= start:
            return
        if pieces and pieces[-1].labels == labels:
            pieces[-1].end_ns = end
        else:
            pieces.append(_Piece(start, end, labels, row))

    now = int(schedule.end_ns[lane[0]])
    add(0, now, idle, MISSING)
    nodes = lane[graph.segment[lane] >= 0]
    segments = graph.segment[nodes]
    host, blocked = int(Activity.HOST), int(Activity.BLOCKED)
    issued, issued_row = idle[1:], MISSING
    for waits, begin, end, activity, call, layer, microbatch, module, chunk, row in zip(
        (graph.kind[nodes] == Node.WAIT).tolist(),
        schedule.begin_ns[nodes].tolist(),
        schedule.end_ns[nodes].tolist(),
        *(
            column[segments].tolist()
            for column in (
                own.activity, own.call, own.layer, own.microbatch, own.module, own.chunk, own.row,
            )
        ),
        strict=True,
    ):  # fmt: skip
        where = (layer, microbatch, module, chunk, calls.get((own.rank, call), MISSING))
        if waits:
            add(now, begin, (blocked, *where), row)
            add(begin, end, (host, *where), row)
        else:
            # Work begins late only where a what-if lets the issuer of the call before it stand still.
            add(now, begin, (blocked, *issued), issued_row)
            add(max(now, begin), end, (activity, *where), row)
        now = max(now, end)
        issued, issued_row = where, row
    add(now, step_ns, idle, MISSING)
    columns = np.array([p.labels for p in pieces], np.int64).reshape(-1, 6).T
    return Spans(
        start_ns=np.array([p.start_ns for p in pieces], np.int64),
        end_ns=np.array([p.end_ns for p in pieces], np.int64),
        activity=columns[0].astype(np.int8),
        layer=columns[1].astype(np.int32),
        microbatch=columns[2].astype(np.int32),
        module=columns[3].astype(np.int8),
        chunk=columns[4].astype(np.int32),
        call=columns[5].astype(np.int32),
        row=np.array([p.row for p in pieces], np.int32),
    )


def received_bytes(run: Run) -> dict[tuple[int, int], int]:
    """(rank, row of the issuing event) to the bytes that an all-to-all with uneven parts brings there."""
    return {
        (trace.rank, int(trace.row[i])): int(trace.received[i])
        for trace in run.ranks
        for i in np.flatnonzero(trace.received != MISSING).tolist()
    }


def _call(
    graph: Graph, schedule: Schedule, index: int, match: Match, received: dict[tuple[int, int], int]
) -> Call:
    arrive = {m.rank: int(schedule.end_ns[graph.arrive[index, m.rank]]) for m in match.members}
    last = max(arrive.values())
    members = []
    for m in match.members:
        done = graph.done[index, m.rank]
        end = int(schedule.end_ns[done])
        # A send is under way when its own node begins; a collective when its last member is there.
        begin = int(schedule.begin_ns[done]) if match.point_to_point else last
        begin = max(arrive[m.rank], min(begin, end))
        members.append(
            Member(
                rank=m.rank,
                arrive_ns=arrive[m.rank],
                begin_ns=begin,
                end_ns=max(begin, end),
                row=m.row,
                sent=m.sent,
                received=received.get((m.rank, m.row), MISSING),
            )
        )
    order = {rank: i for i, rank in enumerate(match.expected)}
    first = match.members[0]
    return Call(
        op=match.op,
        group=match.group,
        ranks=match.expected,
        seq=first.seq,
        bytes=match.bytes,
        dtype=first.dtype,
        members=tuple(sorted(members, key=lambda m: order.get(m.rank, m.rank))),
        phase=first.phase,
        layer=first.layer,
        microbatch=first.microbatch,
    )


def _work(run: Run, rank: int) -> Work:
    details = [s.index for s in run.manifest.steps if s.detail]
    return work(run.ranks[rank], details[0]) if details else NO_WORK


def _memory(run: Run, graph: Graph, schedule: Schedule, own: Program, lane: I64) -> MemoryCurve:
    trace = run.ranks[own.rank]
    details = [s.index for s in run.manifest.steps if s.detail]
    if not details or not len(trace.memory.time_ns):
        return NO_MEMORY
    nodes = lane[graph.segment[lane] >= 0]
    times = boundary_times(own, schedule.end_ns[nodes], int(schedule.end_ns[lane[0]]))
    detail = program(trace, details[0])
    ends = detail.start_ns + detail.wall_ns
    return memory_curve(trace, detail, boundary_times(detail, ends, detail.begin_ns), times)
