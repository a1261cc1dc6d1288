"""Small simulations that closed forms are held against: written apart from the engine, in exact numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

#: (kind, micro-batch): F forward, B whole backward, I input gradient, W weight gradient.
Op = tuple[str, int]


def gpipe(p: int, m: int) -> list[list[Op]]:
    return [[("F", i) for i in range(m)] + [("B", i) for i in range(m)] for _ in range(p)]


def one_f_one_b(p: int, m: int) -> list[list[Op]]:
    orders = []
    for stage in range(p):
        warm = min(m, p - 1 - stage)
        order: list[Op] = [("F", i) for i in range(warm)]
        for i in range(m - warm):
            order += [("F", warm + i), ("B", i)]
        orders.append(order + [("B", i) for i in range(m - warm, m)])
    return orders


def zb_h1(p: int, m: int) -> list[list[Op]]:
    """1F1B with backward cut in two; stage s puts off its weight gradients by s micro-batches."""
    orders = []
    for stage in range(p):
        warm = min(m, p - 1 - stage)
        order: list[Op] = [("F", i) for i in range(warm)]
        done = weights = 0
        for i in range(warm, m):
            order += [("F", i), ("I", done)]
            done += 1
            if done - weights > stage:
                order.append(("W", weights))
                weights += 1
        while done < m:
            order.append(("I", done))
            done += 1
            if weights < done:
                order.append(("W", weights))
                weights += 1
        orders.append(order + [("W", i) for i in range(weights, m)])
    return orders


def lay_out(
    orders: Sequence[Sequence[Op]], times: Sequence[Mapping[str, Fraction]], message: Fraction = Fraction(0)
) -> list[list[tuple[Op, Fraction, Fraction]]]:
    """When every operation begins and ends, as soon as it can; `times` are those of each stage."""
    p = len(orders)
    ends: dict[tuple[int, Op], Fraction] = {}
    laid: list[list[tuple[Op, Fraction, Fraction]]] = [[] for _ in range(p)]

    def needs(stage: int, op: Op) -> list[tuple[int, Op, bool]]:
        kind, i = op
        if kind == "F":
            return [(stage - 1, op, True)] if stage else []
        if kind == "W":
            return [(stage, ("I", i), False)]
        below = [(stage + 1, op, True)] if stage < p - 1 else []
        return [(stage, ("F", i), False), *below]

    moved = True
    while moved:
        moved = False
        for stage, order in enumerate(orders):
            while len(laid[stage]) < len(order):
                op = order[len(laid[stage])]
                causes = needs(stage, op)
                if any((s, o) not in ends for s, o, _ in causes):
                    break
                ready = [ends[s, o] + (message if sent else 0) for s, o, sent in causes]
                free = [laid[stage][-1][2]] if laid[stage] else []
                begin = max([Fraction(0), *ready, *free])
                ends[stage, op] = begin + times[stage][op[0]]
                laid[stage].append((op, begin, ends[stage, op]))
                moved = True
    assert [len(lane) for lane in laid] == [len(order) for order in orders], "the orders deadlock"
    return laid


def length(laid: Sequence[Sequence[tuple[Op, Fraction, Fraction]]]) -> Fraction:
    return max(end for lane in laid for _, _, end in lane)


def busy(lane: Sequence[tuple[Op, Fraction, Fraction]]) -> Fraction:
    return sum((end - begin for _, begin, end in lane), Fraction(0))


def bucket_tail(buckets: int, backward: float, transfer: float, latency: float) -> float:
    """What is left after backward when equal buckets become ready evenly and are sent one after another."""
    now = 0.0
    for i in range(1, buckets + 1):
        now = max(now, i * backward / buckets) + latency + transfer / buckets
    return now - backward


def ring_all_reduce(n: int) -> tuple[int, list[int], bool]:
    """Steps, chunks that each rank sends, and whether every rank ends with every sum: chunk by chunk."""
    held = [[{(rank, chunk)} for chunk in range(n)] for rank in range(n)]
    sent = [0] * n
    steps = 0
    for phase in ("add", "copy"):
        for step in range(n - 1):
            moves = []
            for rank in range(n):
                chunk = (rank - step + (phase == "copy")) % n
                moves.append(((rank + 1) % n, chunk, set(held[rank][chunk])))
                sent[rank] += 1
            for target, chunk, parts in moves:
                held[target][chunk] = held[target][chunk] | parts if phase == "add" else parts
            steps += 1
    whole = all(len(held[rank][chunk]) == n for rank in range(n) for chunk in range(n))
    return steps, sent, whole
