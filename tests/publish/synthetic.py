"""Timelines made by hand that look like recordings: for tests of figures, which need no run."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np

from generator.timeline.spans import (
    Activity,
    Call,
    Member,
    MemoryCurve,
    RankTimeline,
    Spans,
    Timeline,
)

MS = 1_000_000
MB = 1_000_000
F, B, OPT, HOST, BLOCKED, IDLE = (
    Activity.FORWARD,
    Activity.BACKWARD,
    Activity.OPTIMIZER,
    Activity.HOST,
    Activity.BLOCKED,
    Activity.IDLE,
)


@dataclass
class Lane:
    """One rank under construction: spans one after the other, and what memory does on the way."""

    rank: int
    noise: random.Random
    now: int = 0
    spans: list[tuple[int, int, int, int, int, int, int]] = field(default_factory=list)
    held: list[int] = field(default_factory=list)
    curve: list[tuple[int, list[int]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.hold(3, 0)

    def do(
        self,
        activity: Activity,
        ms: float,
        layer: int = -1,
        batch: int = -1,
        module: int = -1,
        call: int = -1,
    ) -> None:
        end = self.now + round(ms * MS * self.noise.uniform(0.97, 1.03))
        self.until(end, activity, layer, batch, module, call)

    def until(
        self,
        end: int,
        activity: Activity = IDLE,
        layer: int = -1,
        batch: int = -1,
        module: int = -1,
        call: int = -1,
    ) -> None:
        if end > self.now:
            self.spans.append((self.now, end, activity, layer, batch, module, call))
            self.now = end

    def layers(
        self,
        activity: Activity,
        plan: list[tuple[int, int, float]],
        batch: int = -1,
        activation_mb: float = 0.0,
    ) -> None:
        """A phase layer by layer: (layer, module, ms)."""
        for layer, module, ms in plan:
            self.do(HOST, 0.05)
            self.do(activity, ms, layer, batch, module)
            self.hold(3, round(activation_mb * MB))

    def hold(self, category: int, change: int) -> None:
        self.held[category] += change
        self.curve.append((self.now, list(self.held)))

    def finish(self) -> RankTimeline:
        columns = np.array(self.spans, np.int64).T
        start, end, activity, layer, batch, module, call = columns
        return RankTimeline(
            rank=self.rank,
            computation=Spans(
                start_ns=start,
                end_ns=end,
                activity=activity.astype(np.int8),
                layer=layer.astype(np.int32),
                microbatch=batch.astype(np.int32),
                module=module.astype(np.int8),
                call=call.astype(np.int32),
                row=np.arange(len(start), dtype=np.int32),
                chunk=np.full(len(start), -1, np.int32),
            ),
            memory=MemoryCurve(
                np.array([t for t, _ in self.curve], np.int64), np.array([b for _, b in self.curve], np.int64)
            ),
        )


def model(forward: bool, first: int = 0, last: int = 7, ms: float = 16.0) -> list[tuple[int, int, float]]:
    """Layers of a part of the model in the order they run in: (layer, module, ms)."""
    plan = [(-1, 0, ms * 0.15)] if first == 0 else []
    plan += [(n, 1, ms) for n in range(first, last + 1)]
    plan += [(-1, 2, ms * 0.6)] if last == 7 else []
    return plan if forward else [(n, m, 2 * t) for n, m, t in reversed(plan)]


def finished(
    run: str, ranks: list[Lane], calls: list[Call], stages: int = 1, microbatches: int = 1
) -> Timeline:
    end = max(lane.now for lane in ranks)
    for lane in ranks:
        lane.until(end)
    return Timeline(
        run=run,
        mode="isolated",
        link_model="ring",
        step=3,
        step_ns=end,
        ranks=tuple(lane.finish() for lane in ranks),
        calls=tuple(calls),
        stages=stages,
        microbatches=microbatches,
    )


def collective(
    op: str, seq: int, size: int, parts: list[tuple[int, int, int]], phase: str, layer: int
) -> Call:
    """A call of all ranks; parts: (arrive, begin, end) by rank."""
    members = tuple(Member(r, a, b, e, 0) for r, (a, b, e) in enumerate(parts))
    return Call(op, "world", tuple(range(len(parts))), seq, size, "float32", members, phase, layer, -1)


def lanes_of(count: int, seed: int = 1, parameters: int = 28) -> list[Lane]:
    return [
        Lane(r, random.Random(seed * 100 + r), held=[parameters * MB, 0, 2 * parameters * MB, 0, 0, MB])
        for r in range(count)
    ]


def single() -> Timeline:
    (lane,) = lanes_of(1)
    lane.layers(F, model(True, ms=59), activation_mb=11)
    lane.layers(B, model(False, ms=59), activation_mb=-11)
    lane.do(OPT, 46)
    return finished("single", [lane], [])


def ddp() -> Timeline:
    ranks, calls = lanes_of(4, 2), []
    issued: list[list[int]] = [[] for _ in ranks]
    for lane in ranks:
        lane.layers(F, model(True, ms=16), activation_mb=3)
        for layer, module, ms in model(False, ms=16):
            count = 3 if module == 1 else 1
            for _ in range(count):
                lane.do(B, ms / count, layer, -1, module)
                lane.do(HOST, 0.1)
                issued[lane.rank].append(lane.now)
                lane.hold(1, 1 * MB)
            lane.hold(3, -3 * MB)
    done = 0
    for k in range(len(issued[0])):
        begin = max(done, *(times[k] for times in issued))
        done = begin + round(6.8 * MS)
        calls.append(collective("all_reduce", k, MB, [(t[k], begin, done) for t in issued], "backward", -1))
    for lane in ranks:
        lane.until(done, BLOCKED, call=len(calls) - 1)
        lane.do(OPT, 48)
    return finished("ddp", ranks, calls)


def fsdp() -> Timeline:
    ranks, calls, free = lanes_of(4, 3, 7), [], 0

    def gather(op: str, phase: str, layer: int, ms: float, wait: bool) -> None:
        nonlocal free
        begin = max(free, *(lane.now for lane in ranks))
        free = begin + round(ms * MS)
        calls.append(collective(op, len(calls), 3 * MB, [(x.now, begin, free) for x in ranks], phase, layer))
        for lane in ranks:
            lane.do(HOST, 0.3)
            if wait:
                lane.until(free, BLOCKED, call=len(calls) - 1)

    gather("all_gather", "forward", -1, 7, True)
    for phase, activity in (("forward", F), ("backward", B)):
        for layer, module, ms in model(activity is F, ms=17):
            gather("all_gather", phase, layer, 9.6, activity is B)
            for lane in ranks:
                lane.do(activity, ms, layer, -1, module)
                lane.hold(3, 3 * MB if activity is F else -3 * MB)
                lane.hold(4, MB if layer % 2 else -MB)
            if activity is F:
                for lane in ranks:
                    lane.until(free, BLOCKED, call=len(calls) - 1)
            else:
                gather("reduce_scatter", phase, layer, 8, False)
    for lane in ranks:
        lane.until(free, BLOCKED, call=len(calls) - 1)
        lane.do(OPT, 14)
    return finished("fsdp", ranks, calls)


def tp() -> Timeline:
    ranks, calls = lanes_of(4, 4, 7), []

    def reduce(phase: str, layer: int) -> None:
        arrive = [lane.now for lane in ranks]
        begin = max(arrive)
        end = begin + round(5.2 * MS)
        parts = [(a, begin, end) for a in arrive]
        calls.append(collective("all_reduce", len(calls), MB, parts, phase, layer))
        for lane in ranks:
            lane.until(end, BLOCKED, call=len(calls) - 1)
            lane.do(HOST, 0.2)

    for phase, activity in (("forward", F), ("backward", B)):
        for layer, module, ms in model(activity is F, ms=18):
            for _ in range(2 if module == 1 else 1):
                for lane in ranks:
                    lane.do(activity, ms / 2, layer, -1, module)
                    lane.hold(3, 2 * MB if activity is F else -2 * MB)
                if module == 1:
                    reduce(phase, layer)
    for lane in ranks:
        lane.do(OPT, 22)
    return finished("tp", ranks, calls)


def one_forward_one_backward(stages: int = 4, batches: int = 8) -> Timeline:
    """1F1B: `stages` - 1 - s forwards to warm up, then in turns; each message takes 0.8 ms."""
    ranks, calls = lanes_of(stages, 5, 7), []
    orders = []
    for s in range(stages):
        warm = min(stages - 1 - s, batches)
        order = [(F, n) for n in range(warm)]
        for n in range(batches):
            order += [(F, n + warm)] if n + warm < batches else []
            order.append((B, n))
        orders.append(order)
    sent: dict[tuple[Activity, int, int], int] = {}
    at = [0] * stages
    while any(at[s] < len(orders[s]) for s in range(stages)):
        for s in range(stages):
            while at[s] < len(orders[s]):
                activity, n = orders[s][at[s]]
                source = s - 1 if activity is F else s + 1
                lane = ranks[s]
                if 0 <= source < stages:
                    key = (activity, n, source)
                    if key not in sent:
                        break
                    arrive, begin = lane.now, sent[key]
                    end = begin + round(0.8 * MS)
                    lane.until(begin, IDLE)
                    lane.until(end, BLOCKED, call=len(calls))
                    calls.append(
                        Call(
                            "send",
                            "pp",
                            (source, s),
                            n,
                            131_072,
                            "float32",
                            (
                                Member(source, begin, begin, end, 0),
                                Member(s, min(arrive, begin), begin, end, 0),
                            ),
                            activity.name.lower(),
                            -1,
                            n,
                        )
                    )
                per_layer = 9.3
                plan = model(activity is F, 2 * s, 2 * s + 1 if s < stages - 1 else 7, per_layer)
                lane.layers(activity, plan, n, activation_mb=3 if activity is F else -3)
                if activity is B and n == 0:
                    lane.hold(1, 7 * MB)
                sent[(activity, n, s)] = lane.now
                at[s] += 1
    for lane in ranks:
        lane.do(OPT, 14)
    return finished("pp-1f1b", ranks, calls, stages, batches)


ALL = {"single": single, "ddp": ddp, "fsdp": fsdp, "tp": tp, "pp-1f1b": one_forward_one_backward}
