"""Context parallelism over n ranks, each with s/n tokens of every sequence."""

from __future__ import annotations

from generator.timeline.formulas.entry import Number, formula


@formula("", "derived here; counted on the recorded messages", 1, 2048, 256, 4)
def cp_ring_wire_elements(b: int, s: int, h: int, n: int) -> Number:
    """Elements that a rank sends for one layer of ring attention: (2(n − 1) + 2(n − 1) + 2n)·b·(s/n)·h.

    Keys and values in n − 1 messages forward, again in n − 1 backward, and their gradients in n, home.
    """
    return (2 * (n - 1) + 2 * (n - 1) + 2 * n) * b * s / n * h


@formula("", "derived here; counted on the recorded messages", 4)
def cp_ring_messages(n: int) -> Number:
    """Messages that a rank sends for one layer of ring attention: n − 1 forward and 2n − 1 backward."""
    return n - 1 + 2 * n - 1


@formula("", "derived here; counted by brute force for n = 2, 4, 8", 64, 4, 3)
def causal_pairs(s: int, n: int, rank: int) -> Number:
    """Pairs of tokens that the rank-th of n equal parts attends to: i·c² + c·(c + 1)/2, c = s/n."""
    c = s / n
    return rank * c * c + c * (c + 1) / 2


@formula("", "derived here; counted by brute force for n = 2, 4, 8", 64, 4)
def zigzag_pairs(s: int, n: int) -> Number:
    """Pairs of tokens that every rank attends to in zig-zag order: s·(s + 1)/(2n).

    Of 2n chunks rank i has chunk i and chunk 2n − 1 − i.
    """
    return s * (s + 1) / (2 * n)


@formula("", "derived here; counted by brute force for n = 2, 4, 8", 4, 3)
def causal_share(n: int, rank: int) -> Number:
    """Share of causal attention of the rank-th of n equal parts of a long sequence: (2·rank + 1)/n²."""
    return (2 * rank + 1) / n**2


@formula("", "derived here; counted by brute force for n = 2, 4, 8", 4)
def causal_lockstep(n: int) -> Number:
    """How much longer causal attention takes in contiguous order than in zig-zag: (2n − 1)/n."""
    return (2 * n - 1) / n


@formula(
    "",
    "derived here: of each of q, k, v, the result and their gradients all but the own part",
    1, 2048, 256, 4,
)  # fmt: skip
def cp_ulysses_wire_elements(b: int, s: int, h: int, n: int) -> Number:
    """Elements that a rank sends for one layer of Ulysses: eight all-to-alls of (n − 1)/n·b·(s/n)·h."""
    return 8 * (n - 1) / n * b * s / n * h


@formula(
    "",
    "derived here, for as many key heads as query heads",
    2, 400_000, 100, 1,
    element="B", peak="FLOP/ns", rate="B/ns",
)  # fmt: skip
def cp_hidden_tokens(element: float, peak: float, rate: float, causal: int) -> Number:
    """Tokens a rank needs for one step of the ring to hide the next keys and values: w·A/(2·β).

    w bytes an element, A operations and β bytes a second of a rank. Twice as many with a causal mask in
    zig-zag order, which leaves half of the work.
    """
    return element * peak / rate if causal else element * peak / (2 * rate)
