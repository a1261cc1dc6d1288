"""The ring algorithm, and its price on a link of a latency α and a rate β."""

from __future__ import annotations

from generator.timeline.formulas.entry import Number, formula


@formula("", "derived here; ring simulated for n = 2, 3, 4, 8", 4)
def ring_share(n: int) -> Number:
    """Share of a payload that each of n ranks sends in a ring all-gather or reduce-scatter: (n − 1)/n."""
    return (n - 1) / n


@formula("", "derived here; ring simulated for n = 2, 3, 4, 8", 4)
def ring_all_reduce_steps(n: int) -> Number:
    """Steps of a ring all-reduce of n ranks: n − 1 that add and n − 1 that copy, 2·(n − 1)."""
    return 2 * (n - 1)


@formula(
    "ns",
    "derived here; ring simulated for n = 2, 3, 4, 8",
    8, 100_000_000, 5_000, 100,
    size="B", latency="ns", rate="B/ns",
)  # fmt: skip
def ring_all_reduce_time(n: int, size: float, latency: float, rate: float) -> Number:
    """Time of a ring all-reduce of S bytes: 2(n − 1)·α + 2(n − 1)/n·S/β."""
    return 2 * (n - 1) * latency + 2 * (n - 1) / n * size / rate


@formula(
    "B",
    "derived here: where both terms of the ring's time are equal",
    8,
    5_000,
    100,
    latency="ns",
    rate="B/ns",
)
def half_bandwidth_size(n: int, latency: float, rate: float) -> Number:
    """Payload at which a ring all-reduce reaches half of its bandwidth: n·α·β.

    Below it latency decides, above it the rate. It grows with the ranks.
    """
    return n * latency * rate
