"""Events in words, as an answer is told to those who do not see the figure."""

from __future__ import annotations

from collections.abc import Sequence

from generator.lessons.events import Event
from generator.timeline.spans import Timeline
from generator.units import quantity, show

#: More are counted only.
_MOST = 3
_PHASES = {"backward_input": "backward (input)", "backward_weight": "backward (weights)"}


def name_events(events: Sequence[Event], timeline: Timeline) -> str:
    """What was selected, where and when: "backward of layer 3 on rank 0, 12 ms to 14 ms"."""
    alike: dict[str, list[Event]] = {}
    for event in events:
        alike.setdefault(_words(event, timeline), []).append(event)
    said = [f"{words} on {_ranks(found)}{_when(found)}" for words, found in list(alike.items())[:_MOST]]
    rest = len(alike) - len(said)
    return "; ".join(said) + (f"; and {rest} more" if rest else "")


def _words(event: Event, timeline: Timeline) -> str:
    labels = event.labels
    if not event.rows:
        return "the gap"
    if event.call >= 0:
        call = timeline.calls[event.call]
        same = [i for i, c in enumerate(timeline.calls) if c.op == call.op]
        of = f" in {_phase(call.phase)}" if call.phase else ""
        return f"{call.op.replace('_', '-')} {same.index(event.call) + 1} of {len(same)}{of}"
    words = _phase(str(labels.get("phase") or labels["activity"]))
    if timeline.stages > 1 or timeline.microbatches > 1:
        microbatch = labels.get("microbatch")
        words += f" of micro-batch {microbatch}" if microbatch not in (None, -1) else ""
    layer, module = labels.get("layer"), labels.get("module")
    if len(event.rows) == 1 and layer not in (None, -1):
        words += f" in layer {layer}"
    elif len(event.rows) == 1 and module:
        words += f" in the {module}"
    return words


def _phase(name: str) -> str:
    return _PHASES.get(name, name)


def _ranks(events: Sequence[Event]) -> str:
    ranks = sorted({e.rank for e in events})
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    if ranks == list(range(ranks[0], ranks[-1] + 1)) and len(ranks) > 2:
        return f"ranks {ranks[0]} to {ranks[-1]}"
    return f"ranks {', '.join(map(str, ranks[:-1]))} and {ranks[-1]}"


def _when(events: Sequence[Event]) -> str:
    """When an event is; several at different times have none in common."""
    times = {(e.begin_ns, e.end_ns) for e in events}
    if len(times) > 1:
        return ""
    begin, end = (show(quantity(t, "ns"), "ms") for t in times.pop())
    return f", {begin} to {end}"
