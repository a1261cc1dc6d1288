"""The facts of a step in numbers and sentences: a figure's gutter, description and table."""

from __future__ import annotations

from dataclasses import dataclass

from generator.publish.figures.lanes import (
    MODULES,
    computing,
    doing,
    layer_name,
    numbered,
)
from generator.publish.show import integer, percent, size, time
from generator.runs.manifest import Mesh
from generator.timeline.intervals import clip, length
from generator.timeline.metrics import METRICS
from generator.timeline.spans import Activity, RankTimeline, Timeline
from generator.timeline.turns import turns

_BACKWARD = (Activity.BACKWARD, Activity.BACKWARD_INPUT, Activity.BACKWARD_WEIGHT)
_OPS = {
    "all_reduce": "all-reduce",
    "all_gather": "all-gather",
    "reduce_scatter": "reduce-scatter",
    "all_to_all": "all-to-all",
    "broadcast": "broadcast",
    "barrier": "barrier",
    "send": "send",
}


@dataclass(frozen=True, slots=True)
class RankFacts:
    """Shares of the step (fractions) and bytes of one rank."""

    rank: int
    forward: float
    backward: float
    optimizer: float
    host: float
    blocked: float
    idle: float
    #: Communication above which nothing is computed.
    exposed: float
    #: Idle share of the pipeline's common span; 0 without a pipeline.
    bubble: float
    #: Most bytes held at once; 0 where memory was not recorded.
    peak_bytes: int


@dataclass(frozen=True, slots=True)
class Table:
    """A figure in words, for readers who cannot see it: text cells only."""

    caption: str
    head: tuple[str, ...]
    #: The first cell of each row is its header.
    rows: tuple[tuple[str, ...], ...]


def rank_facts(timeline: Timeline, rank: int) -> RankFacts:
    """Measure one rank of a step."""
    lane = timeline.ranks[rank]
    step = timeline.step_ns

    def share(*activities: Activity) -> float:
        return length(doing(lane.computation, *activities)) / step

    # A rank that has finished its step stands idle until the last one has.
    ended = int(lane.computation.end_ns[-1]) if len(lane.computation) else 0
    return RankFacts(
        rank=rank,
        forward=share(Activity.FORWARD),
        backward=share(*_BACKWARD),
        optimizer=share(Activity.OPTIMIZER),
        host=share(Activity.HOST),
        blocked=share(Activity.BLOCKED),
        idle=share(Activity.IDLE) + max(0, step - ended) / step,
        exposed=METRICS["exposed_comm"](timeline, rank=rank) / step,
        bubble=METRICS["bubble_fraction"](timeline, rank=rank) if timeline.stages > 1 else 0.0,
        peak_bytes=peak_bytes(lane),
    )


def gutter(timeline: Timeline, facts: RankFacts) -> tuple[float, str]:
    """The one share that says most about a rank of this run, and its name."""
    if timeline.stages > 1:
        return facts.bubble, "bubble"
    return (facts.exposed, "exposed") if timeline.calls else (facts.idle, "idle")


def peak_bytes(lane: RankTimeline) -> int:
    """The most bytes a rank held at once, 0 where memory was not recorded."""
    return int(lane.memory.bytes.sum(axis=1).max()) if len(lane.memory.time_ns) else 0


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def stage_words(timeline: Timeline, rank: int) -> str:
    """What part of the model a rank works on, e.g. 'embedding, layers 0–1'."""
    spans = timeline.ranks[rank].computation
    layers = sorted({int(n) for n in spans.layer if n >= 0})
    modules = {int(m) for m, n in zip(spans.module, spans.layer, strict=True) if m >= 0 > n}
    words = [layer_name(-1, 0)] if MODULES.index("embedding") in modules else []
    if layers:
        whole = layers == list(range(layers[0], layers[-1] + 1))
        shown = f"{layers[0]}–{layers[-1]}" if whole and len(layers) > 1 else ", ".join(map(str, layers))
        words.append(f"layer{'s' if len(layers) > 1 else ''} {shown}")
    if MODULES.index("head") in modules:
        words.append("head")
    return ", ".join(words)


#: Between the coordinates of a rank.
_APART = " · "


def rank_notes(mesh: Mesh, chunks: int = 1) -> tuple[str, ...]:
    """Where each rank stands in the mesh, e.g. 'stage 2', 'tp 1 · dp 0'; for the left gutter.

    With several stages (`chunks`) on a rank its place in the pipeline is no stage: 'pp 2'.
    """
    sizes = {name: getattr(mesh, name) for name in ("pp", "dp", "shard", "tp", "cp", "ep")}
    return tuple(
        _APART.join(
            f"{'stage' if name == 'pp' and chunks == 1 else name} {where[name]}"
            for name, count in sizes.items()
            if count > 1 and name in where
        )
        for where in mesh.coordinates
    )


def numbers_alone(notes: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    """Notes as their numbers, '0 · 1', and what each number is, 'shard · tp'; others as they are."""
    parts = [[part.rpartition(" ") for part in note.split(_APART)] for note in notes]
    if not all(number.isdigit() for note in parts for _, _, number in note):
        return notes, ""
    names = _APART.join(name for name, _, _ in parts[0])
    return tuple(_APART.join(number for _, _, number in note) for note in parts), names


def origin(timeline: Timeline) -> str:
    """The label of every number read off this timeline."""
    return "recorded" if timeline.mode == "recorded" else "reconstructed"


def title(timeline: Timeline) -> str:
    """A figure's name: run, ranks, length and origin."""
    count = len(timeline.ranks)
    on = "1 rank" if count == 1 else f"{integer(count)} ranks"
    return f"{timeline.run}: one training step on {on}, {time(timeline.step_ns)}, {origin(timeline)}"


def description(timeline: Timeline) -> str:
    """What there is to see, in sentences with the computed facts."""
    facts = [rank_facts(timeline, r) for r in range(len(timeline.ranks))]
    said = []
    if numbered(timeline):
        stages = f"{integer(timeline.stages)} stages and " if timeline.stages > 1 else ""
        said.append(f"{stages}{integer(timeline.microbatches)} micro-batches.")
    said.append(
        f"On average a rank spends {percent(mean([f.forward for f in facts]))} of the step in forward, "
        f"{percent(mean([f.backward for f in facts]))} in backward and "
        f"{percent(mean([f.optimizer for f in facts]))} in the optimizer."
    )
    if len(facts) > 1:
        said.append(
            f"It is idle for {percent(mean([f.idle for f in facts]))} and blocked in waits for "
            f"{percent(mean([f.blocked for f in facts]))}; {percent(mean([f.exposed for f in facts]))} "
            "is communication with no computation beside it."
        )
    if timeline.stages > 1:
        said.append(f"The bubble is {percent(mean([f.bubble for f in facts]))} of the pipeline's time.")
    if counted := operations(timeline):
        said.append(f"The step has {counted}.")
    if most := max(f.peak_bytes for f in facts):
        said.append(f"A rank holds {size(most)} at most.")
    return " ".join(said)


def operations(timeline: Timeline) -> str:
    """The step's calls by operation, e.g. '32 all-reduces' or '17 all-gathers and 9 reduce-scatters'."""
    found: dict[str, int] = {}
    for call in timeline.calls:
        found[call.op] = found.get(call.op, 0) + 1
    words = [_counted(count, _OPS.get(op, op)) for op, count in sorted(found.items())]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _counted(count: int, word: str) -> str:
    return f"{integer(count)} {word}{'' if count == 1 else 'es' if word.endswith('h') else 's'}"


def hidden_calls(timeline: Timeline) -> int:
    """How many calls run beside computation for more than half of their turn on the link, on every rank."""
    hidden = [True] * len(timeline.calls)
    for rank, lane in enumerate(timeline.ranks):
        busy = computing(lane.computation)
        for index, (start, end) in turns(timeline, rank).items():
            hidden[index] &= 2 * length(clip(busy, start, end)) > end - start
    return sum(hidden)


def remark(timeline: Timeline) -> str:
    """The one thing to notice about a step, computed from it; empty for a single rank."""
    facts = [rank_facts(timeline, r) for r in range(len(timeline.ranks))]
    if len(facts) == 1:
        return ""
    if timeline.stages > 1:
        return f"the bubble: {percent(mean([f.bubble for f in facts]))} of the pipeline's time is idle"
    count, hidden = len(timeline.calls), hidden_calls(timeline)
    if not count:
        return ""
    if hidden == 0:
        return f"{operations(timeline)}, none beside computation"
    how_many = "all" if hidden == count else f"{integer(hidden)} of {integer(count)}"
    return f"{operations(timeline)}: {how_many} run beside computation"


def timeline_table(timeline: Timeline, notes: tuple[str, ...] = ()) -> Table:
    """A figure's companion table: per rank, shares of the step and the memory peak."""
    rows = []
    for r in range(len(timeline.ranks)):
        f = rank_facts(timeline, r)
        name = f"rank {timeline.ranks[r].rank}" + (f", {notes[r]}" if r < len(notes) and notes[r] else "")
        shares = (f.forward, f.backward, f.optimizer, f.host, f.blocked, f.idle, f.exposed)
        rows.append((name, *(percent(s) for s in shares), size(f.peak_bytes) if f.peak_bytes else "–"))
    return Table(
        caption=f"{title(timeline)}. Shares of the step.",
        head=(
            "rank",
            "forward",
            "backward",
            "optimizer",
            "host",
            "blocked",
            "idle",
            "exposed communication",
            "peak memory",
        ),
        rows=tuple(rows),
    )
