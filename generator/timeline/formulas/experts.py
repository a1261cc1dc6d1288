"""Expert parallelism: one expert a token, experts spread over n ranks."""

from __future__ import annotations

import math

import numpy as np

from generator.timeline.formulas.entry import Number, formula


@formula("", "derived here; four all-to-alls, for equal loads and one expert a token", 256, 256, 4)
def ep_wire_elements(tokens: int, h: int, n: int) -> Number:
    """Elements that a rank of n sends for one layer of experts: 4·(n − 1)/n·tokens·h, tokens of the rank."""
    return 4 * (n - 1) / n * tokens * h


@formula("", "derived here, exactly; checked by drawing", 32, 8)
def uniform_router_imbalance(tokens: int, experts: int) -> Number:
    """Load of the hottest expert over the mean, expected of a router that chooses at random.

    `tokens` are those of an expert in the mean. Even such a router leaves the others idle: there is no
    closed form, so this sums the exact chances; 1 + √(2·ln E/tokens) is a little more.
    """
    total = tokens * experts
    expected = float(tokens)
    # No expert can have most with less than the mean, and hardly more than ten deviations above it.
    for most in range(tokens, min(total, tokens + 10 * math.isqrt(tokens) + 30)):
        left = 1 - _none_above(most, tokens, experts)
        expected += left
        if left < 1e-12:
            break
    return expected / tokens


def _none_above(most: int, mean: int, experts: int) -> float:
    """Chance that of mean·experts tokens, thrown at random, no expert gets more than `most`.

    Loads are Poisson numbers, given their sum. The sum's chance is read off the product of their
    generating functions, at roots of unity.
    """
    total = mean * experts
    loads = np.arange(most + 1)
    chances = np.exp(loads * math.log(mean) - mean - np.array([math.lgamma(k + 1) for k in loads.tolist()]))
    # Long enough for no other sum to fall on the same place.
    size = 1 << (max(total, experts * most - total) + 1).bit_length()
    product = np.fft.fft(chances, size) ** experts
    here = np.exp(2j * np.pi * total * np.arange(size) / size)
    of_sum = float(np.real(np.mean(product * here)))
    return of_sum / math.exp(total * math.log(total) - total - math.lgamma(total + 1))
