"""Tensor and sequence parallelism over t ranks: E = b·s·h elements of a layer's input."""

from __future__ import annotations

from generator.timeline.formulas.entry import Number, formula


@formula("", "Narayanan et al. 2021 (arXiv 2104.04473), §2.3, §3.2", 8)
def tp_all_reduces(layers: int) -> Number:
    """All-reduces of tensor parallelism in a step of one micro-batch: two forward, two backward a layer.

    Those of embedding and loss are not among them.
    """
    return 4 * layers


@formula("", "Narayanan et al. 2021 (arXiv 2104.04473), §3.2", 8, 128, 256, 4)
def tp_wire_elements(b: int, s: int, h: int, t: int) -> Number:
    """Elements a rank sends per layer under tensor parallelism: 8·b·s·h·(t − 1)/t."""
    return 8 * b * s * h * (t - 1) / t


@formula("", "Korthikanti et al. 2022 (arXiv 2205.05198), §4.2.2", 8, 128, 256, 4, 0)
def sp_wire_elements(b: int, s: int, h: int, t: int, kept: int) -> Number:
    """Elements a rank sends per layer with sequence parallelism: 8 or 10·b·s·h·(t − 1)/t.

    An all-gather and a reduce-scatter send what an all-reduce does. If the gathered input is not kept
    for backward (`kept` = 0), each of the two column-parallel products gathers its own again.
    """
    return 8 * b * s * h * (t - 1) / t if kept else 10 * b * s * h * (t - 1) / t


@formula("", "derived here; counted on saved tensors for t = 2, 4", 8, 128, 256, 8, 4)
def tp_saved_elements(b: int, s: int, h: int, heads: int, t: int) -> Number:
    """Elements one block saves under tensor parallelism: (4 + 12/t)·E + 4·b·s + (a/t)·b·s.

    What the norms see stays whole on every rank.
    """
    return (4 + 12 / t) * b * s * h + 4 * b * s + heads / t * b * s


@formula("", "derived here; counted on saved tensors for t = 2, 4", 8, 128, 256, 8, 4, 1)
def sp_saved_elements(b: int, s: int, h: int, heads: int, t: int, kept: int) -> Number:
    """Elements one block saves with sequence parallelism: (2 + 14/t)·E, or 16/t·E, and a t-th of the rest.

    The first if the gathered inputs of its two column-parallel products are kept (`kept` = 1), the second
    if only the shard is.
    """
    rest = (4 + heads) * b * s / t
    return (2 + 14 / t) * b * s * h + rest if kept else 16 / t * b * s * h + rest
