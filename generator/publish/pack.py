"""A run's step for the browser: everything from which it lays out recorded, isolated and what-if timelines.

Durations and recorded times are whole ns, exactly those of the recording: the browser's replay must give the
same integers as `generator.timeline.whatif`. `templates/js/timeline/graph.js` builds the graph anew from what
is here, with the nodes of `generator.timeline.graph` in their order. What is only drawn, the operators of the
detail step, has times in units of TICK_NS. Like memory, operators lie between the boundaries of phases and
layers of the detail step, and the browser moves both to the step it shows.

Columns, those of one rank after those of the other; -1 where something does not apply:

* `event…`, the events that a segment lies directly in, by their first segment: `Row` in the rank file,
  `Role`, `Activity`, `Layer`, `Microbatch`, `Chunk`, `Module`, `Match` (of an issue or a wait);
* `segment…`: `Back` (0: the first segment of the next event; n: of the event n before that one), `Wall`
  and `Idle`, which is the part of it in which the thread did not run (of a wait that has a match, 0);
* `boundary`: segments before each boundary of a phase or a layer;
* `match…`: `Op`, `Group`, `Dtype`, `Phase` (strings), `Seq`, `Bytes`, `Layer`, `Microbatch`, `Latency` and
  `Transfer` (the parts of its isolated duration), `Members` and `Expected` (how many of them follow);
* `member…`, in the order of the match: `Rank`, `Row`, `End` (recorded, after the end of its wait or the last
  arrival), `Begin` (recorded, after the last end of its predecessors), `Sent` and `Received` (bytes of an
  all-to-all with uneven parts); `expected`: ranks;
* `detail…`, of the detail step: `Boundary` times, `Time` of each sample of memory and, a column for each
  category, bytes; `operation…`: `Gap` after the one before it and `Ticks` it took, in TICK_NS, `Name`
  (string), `Row` and `Label`: which of the head's `labels` (activity, layer, micro-batch, chunk, module).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence

import numpy as np

from generator.publish.columnar import Column, Integers, encode
from generator.publish.figures.facts import rank_notes
from generator.runs.run import I64, MEMORY_CATEGORIES, MISSING, Kind, RankTrace, Run
from generator.timeline.graph import Node
from generator.timeline.memory import boundary_times
from generator.timeline.program import Program, Role, program
from generator.timeline.reconstruct import graph_of, isolated_link, received_bytes, representative_step
from generator.timeline.replay import isolated_parts, recorded_schedule
from generator.timeline.spans import Activity

FORMAT = 1
#: The clock of operators, ns; reading the recorder's takes twice as long.
TICK_NS = 500
_NOTHING: I64 = np.zeros(0, np.int64)
_MATCH = (
    "Op", "Group", "Dtype", "Phase", "Seq", "Bytes", "Layer", "Microbatch", "Latency", "Transfer", "Members",
    "Expected",
)  # fmt: skip
_MEMBER = ("Rank", "Row", "End", "Begin", "Sent", "Received")


def script(
    run: Run, *, link_model: str = "ring", calibration: Run | None = None, step: int | None = None
) -> str:
    """A classic script that hands a step to the page: the representative one unless given.

    Raises UserError.
    """
    # A run's id is the name of a folder, and may hold anything that such a name may.
    name = json.dumps(run.id).replace("<", "\\u003c")
    head, columns = collect(run, link_model=link_model, calibration=calibration, step=step)
    return f'Shardbook.register({name}, "{encode(head, columns)}");\n'


def collect(
    run: Run, *, link_model: str = "ring", calibration: Run | None = None, step: int | None = None
) -> tuple[dict[str, object], list[Column]]:
    """What the script holds: the head, and the columns. Raises UserError."""
    packer = _Packer(run, representative_step(run) if step is None else step)
    columns = packer.columns(isolated_parts(packer.graph, isolated_link(run, link_model, calibration)))
    return {**packer.head(), "linkModel": link_model}, columns


class _Packer:
    def __init__(self, run: Run, step: int) -> None:
        self.run, self.step = run, step
        self.graph = graph_of(run, step)
        self.seen = recorded_schedule(self.graph)
        self.detail = next((s.index for s in run.manifest.steps if s.detail), MISSING)
        #: Texts and labels of operators, and the index of each.
        self.strings: dict[str, int] = {}
        self.labels: dict[tuple[int, ...], int] = {}
        #: Of each rank, how many rows of each kind are its own.
        self.counts: list[dict[str, int]] = []

    def head(self) -> dict[str, object]:
        """Everything but the columns, once these are made."""
        manifest = self.run.manifest
        chunks = manifest.schedule.chunks if manifest.schedule else 1
        return {
            "format": FORMAT,
            "run": self.run.id,
            "title": manifest.title,
            "step": self.step,
            "detail": self.detail,
            "stages": manifest.mesh.pp * chunks,
            "microbatches": manifest.microbatches,
            "ranksPerNode": manifest.link.ranks_per_node,
            "tick": TICK_NS,
            "memoryCategories": MEMORY_CATEGORIES,
            "strings": list(self.strings),
            "labels": list(self.labels),
            "ranks": self._places(chunks),
        }

    def _places(self, chunks: int) -> list[dict[str, object]]:
        mesh, link = self.run.manifest.mesh, self.run.manifest.link
        origin = min(p.begin_ns for p in self.graph.programs)
        notes, found = dict(enumerate(rank_notes(mesh, chunks))), []
        for own, counts in zip(self.graph.programs, self.counts, strict=True):
            where = dict(enumerate(mesh.coordinates)).get(own.rank, {})
            place = {
                "rank": own.rank,
                "note": notes.get(own.rank, ""),
                # With several stages on a rank its place in the pipeline is no stage.
                "stage": where.get("pp", MISSING) if mesh.pp > 1 and chunks == 1 else MISSING,
                "node": own.rank // link.ranks_per_node,
                "coordinates": where,
                "begin": own.begin_ns - origin,
            }
            found.append({**place, **counts})
        return found

    def columns(self, isolated: tuple[I64, I64, I64]) -> list[Column]:
        programs = [self._program(index) for index in range(len(self.graph.programs))]
        details = [
            self._details(trace, own) for trace, own in zip(self.run.ranks, self.graph.programs, strict=True)
        ]
        for of_program, of_details in zip(programs, details, strict=True):
            rows = {c.name: len(c.values) for c in (*of_program, *of_details)}
            self.counts.append(
                {
                    "events": rows["eventRow"],
                    "segments": rows["segmentWall"],
                    "boundaries": rows["boundary"],
                    "details": rows["detailBoundary"],
                    "samples": rows["detailTime"],
                    "operations": rows["operationRow"],
                }
            )
        return [*_joined(programs), *self._calls(isolated), *_joined(details)]

    def _string(self, text: str) -> int:
        return self.strings.setdefault(text, len(self.strings))

    def _program(self, index: int) -> list[Column]:
        p, lane, graph = self.graph.programs[index], self.graph.lanes[index], self.graph
        if not np.array_equal(p.start_ns[1:], p.start_ns[:-1] + p.wall_ns[:-1]):
            raise ValueError("segments that do not follow one another")
        _, first, event = np.unique(p.row, return_index=True, return_inverse=True)
        # By their first segment instead of by their row.
        event, first = np.argsort(np.argsort(first))[event.reshape(-1)], np.sort(first)
        following = np.maximum.accumulate(np.concatenate([[MISSING], event]))[:-1] + 1
        match_of = {(m.rank, m.call): i for i, match in enumerate(graph.matches) for m in match.members}
        match = [match_of.get((p.rank, call), MISSING) for call in p.call[first].tolist()]
        waits = graph.kind[lane[graph.segment[lane] >= 0]] == Node.WAIT
        return [
            Column("eventRow", p.row[first], delta=True),
            Column("eventRole", p.role[first]),
            Column("eventActivity", p.activity[first]),
            Column("eventLayer", p.layer[first], delta=True),
            Column("eventMicrobatch", p.microbatch[first], delta=True),
            Column("eventChunk", p.chunk[first], delta=True),
            Column("eventModule", p.module[first]),
            Column("eventMatch", np.array(match, np.int64), delta=True),
            Column("segmentBack", following - event),
            Column("segmentWall", p.wall_ns, wide=True),
            Column("segmentIdle", np.where(waits, 0, p.wall_ns - p.cpu_ns), wide=True),
            Column("boundary", p.boundary, delta=True),
        ]

    # ---- calls

    def _calls(self, isolated: tuple[I64, I64, I64]) -> list[Column]:
        graph, begin, end = self.graph, self.seen.begin_ns.tolist(), self.seen.end_ns.tolist()
        _, latency, transfer = isolated
        matches: list[tuple[int, ...]] = []
        members: list[tuple[int, ...]] = []
        expected: list[int] = []
        woken, received = self._woken(), received_bytes(self.run)
        for index, match in enumerate(graph.matches):
            one = match.members[0]
            texts = (self._string(t) for t in (match.op, match.group, one.dtype, one.phase))
            parts = (int(of[graph.done[index, one.rank]]) for of in (latency, transfer))
            counts = (len(match.members), len(match.expected))
            matches.append((*texts, one.seq, match.bytes, one.layer, one.microbatch, *parts, *counts))
            last = max(end[graph.arrive[index, m.rank]] for m in match.members)
            for m in match.members:
                done = graph.done[index, m.rank]
                times = (
                    end[done] - woken.get(done, last),
                    begin[done] - max(end[node] for node in graph.before(done)),
                )
                members.append((m.rank, m.row, *times, m.sent, received.get((m.rank, m.row), MISSING)))
            expected += match.expected
        return [
            *_table(
                "match", _MATCH, matches, {"Seq", "Layer", "Microbatch"}, {"Bytes", "Latency", "Transfer"}
            ),
            *_table("member", _MEMBER, members, {"Row"}, {"End", "Begin", "Sent", "Received"}),
            Column("expected", np.array(expected, np.int64)),
        ]

    def _woken(self) -> dict[int, int]:
        """When the thread went on that first waited for a call, by the node of its completion there."""
        graph, ends = self.graph, dict[int, int]()
        for node in np.flatnonzero(graph.kind == Node.WAIT).tolist():
            done = graph.done[int(graph.match[node]), int(graph.rank[node])]
            ends.setdefault(done, int(self.seen.end_ns[node]))
        return ends

    # ---- the detail step

    def _details(self, trace: RankTrace, shown: Program) -> list[Column]:
        own = program(trace, self.detail) if self.detail != MISSING else shown
        times, sampled = _NOTHING, _NOTHING
        held: I64 = np.zeros((0, len(MEMORY_CATEGORIES)), np.int64)
        operations: list[Integers] = [_NOTHING] * 5
        # Without the same boundaries nothing can be moved to the step that is shown.
        if self.detail != MISSING and len(own.boundary) == len(shown.boundary):
            times = boundary_times(own, own.start_ns + own.wall_ns, own.begin_ns) - own.begin_ns
            inside = trace.memory.time_ns <= own.end_ns
            sampled = np.maximum(trace.memory.time_ns[inside], own.begin_ns) - own.begin_ns
            held = trace.memory.bytes[inside]
            operations = self._operations(trace, own)
        gap, ticks, name, row, label = operations
        return [
            Column("detailBoundary", times, delta=True, wide=True),
            Column("detailTime", sampled, delta=True, wide=True),
            *(
                Column(f"detail{category.capitalize()}", held[:, i], delta=True, wide=True)
                for i, category in enumerate(MEMORY_CATEGORIES)
            ),
            Column("operationGap", gap),
            Column("operationTicks", ticks),
            Column("operationName", name),
            Column("operationRow", row, delta=True),
            Column("operationLabel", label, delta=True),
        ]

    def _operations(self, trace: RankTrace, own: Program) -> list[Integers]:
        """The outermost operators of the detail step."""
        end_ns = trace.start_ns + trace.dur_ns
        chosen = (trace.kind == Kind.OTHER) & (trace.step == self.detail) & (trace.dur_ns >= 0)
        found = np.flatnonzero(chosen & (trace.start_ns >= own.begin_ns) & (end_ns <= own.end_ns))
        before = np.maximum.accumulate(np.concatenate([[own.begin_ns], end_ns[found]]))[:-1]
        found = found[trace.start_ns[found] >= before]
        begin, end = ((t[found] - own.begin_ns) // TICK_NS for t in (trace.start_ns, end_ns))
        return [
            begin - np.concatenate([[0], end])[:-1],
            end - begin,
            _numbered(trace.name[found], lambda name: self._string(trace.text(name))),
            trace.row[found],
            self._labels(own, trace.start_ns[found]),
        ]

    def _labels(self, own: Program, times: I64) -> I64:
        """Which labels the work has that a thread was at, at some times."""
        work = np.flatnonzero(own.role == Role.WORK)
        at = np.maximum(np.searchsorted(own.start_ns[work], times, side="right") - 1, 0)
        columns = (own.activity, own.layer, own.microbatch, own.chunk, own.module)
        nothing = (int(Activity.HOST), MISSING, MISSING, MISSING, MISSING)

        def number(index: int) -> int:
            labels = tuple(int(column[work[index]]) for column in columns) if len(work) else nothing
            return self.labels.setdefault(labels, len(self.labels))

        return _numbered(at, number)


def _numbered(values: Integers, number: Callable[[int], int]) -> I64:
    """The number of each value, asked for once."""
    distinct, which = np.unique(values, return_inverse=True)
    return np.array([number(value) for value in distinct.tolist()], np.int64)[which.reshape(-1)]


def _table(
    prefix: str,
    names: Sequence[str],
    rows: Sequence[tuple[int, ...]],
    delta: Collection[str],
    wide: Collection[str],
) -> list[Column]:
    columns = np.array(rows, np.int64).reshape(len(rows), len(names)).T
    return [
        Column(prefix + name, column, name in delta, name in wide)
        for name, column in zip(names, columns, strict=True)
    ]


def _joined(of_ranks: Sequence[list[Column]]) -> list[Column]:
    """The same columns of several ranks, one after the other."""
    return [
        Column(same[0].name, np.concatenate([c.values for c in same]), same[0].delta, same[0].wide)
        for same in zip(*of_ranks, strict=True)
    ]
