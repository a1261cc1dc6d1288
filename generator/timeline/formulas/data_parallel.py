"""Data parallelism and its sharding: what is sent, in how many calls, and how buckets hide it.

Ψ are the parameters of the model, n the ranks. Elements are those that one rank sends under the ring
algorithm; times their size they are bytes. ZeRO's paper leaves out the factor (n − 1)/n.
"""

from __future__ import annotations

import math

from generator.timeline.formulas.entry import Number, formula

_PSI = 6_857_216


@formula("", "Rajbhandari et al. 2020 (arXiv 1910.02054), §7.1", _PSI, 4)
def ddp_wire_elements(parameters: int, n: int) -> Number:
    """Elements a rank sends to all-reduce the gradients of Ψ parameters once: 2·Ψ·(n − 1)/n.

    Accumulation over m micro-batches without no_sync sends m times as much.
    """
    return 2 * parameters * (n - 1) / n


@formula("", "Rajbhandari et al. 2020 (arXiv 1910.02054), §7.2.1", _PSI, 4)
def zero1_wire_elements(parameters: int, n: int) -> Number:
    """Elements a rank sends under ZeRO-1 or ZeRO-2, reduce-scatter and all-gather: 2·Ψ·(n − 1)/n.

    FSDP without resharding after forward sends the same.
    """
    return 2 * parameters * (n - 1) / n


@formula("", "derived here from PyTorch's ZeroRedundancyOptimizer: all-reduce, then broadcast", _PSI, 4)
def zero1_library_wire_elements(parameters: int, n: int) -> Number:
    """Elements a rank sends (mean) under ZeroRedundancyOptimizer with DDP: 3·Ψ·(n − 1)/n."""
    return 3 * parameters * (n - 1) / n


@formula(
    "",
    "derived here: ZeRO-3 (Rajbhandari et al. 2020, arXiv 1910.02054, §7.2.2) with the root gathered once",
    _PSI, 557_568, 4,
)  # fmt: skip
def fsdp_wire_elements(parameters: int, root: int, n: int, passes: int = 1, reductions: int = 1) -> Number:
    """Elements a rank sends under FSDP: (3·Ψ − Ψ_root)·(n − 1)/n.

    Units are gathered twice and reduced once, the root is gathered once. Each of m micro-batches is a pass
    that gathers anew; gradients are reduced in each, or once. A node sends as much, if the ring visits
    node after node: only one of its ranks sends to another node.
    """
    return (passes * (2 * parameters - root) + reductions * parameters) * (n - 1) / n


@formula("", "derived here: an all-reduce of a shard over the nodes", _PSI, 2, 2)
def hsdp_wire_elements_across(parameters: int, nodes: int, shards: int) -> Number:
    """Elements a rank sends to the other nodes under HSDP: 2·(Ψ/shards)·(nodes − 1)/nodes."""
    return 2 * parameters / shards * (nodes - 1) / nodes


@formula("", "derived here: each of a node's ranks all-reduces its shard", _PSI, 2)
def hsdp_egress_elements(parameters: int, nodes: int) -> Number:
    """Elements a node sends to the others under HSDP: 2·Ψ·(nodes − 1)/nodes."""
    return 2 * parameters * (nodes - 1) / nodes


@formula("", "derived here from PyTorch's fully_shard: the root is not resharded after forward", 8)
def fsdp_all_gathers(units: int) -> Number:
    """All-gathers of a step of FSDP with `units` wrapped below the root: 2·units + 1."""
    return 2 * units + 1


@formula("", "derived here: every unit and the root reduce their gradients once", 8)
def fsdp_reduce_scatters(units: int) -> Number:
    """Reduce-scatters of a step of FSDP with `units` wrapped below the root: units + 1."""
    return units + 1


@formula(
    "ns",
    "derived here; checked by simulation of the queue",
    14, 100_000_000, 100_000_000, 500_000,
    backward="ns", transfer="ns", latency="ns",
)  # fmt: skip
def ddp_exposed_time(buckets: int, backward: float, transfer: float, latency: float) -> Number:
    """Communication left after backward with k equal buckets: max(α + C/k, B/k + k·α + C − B).

    B is the time of backward, C that of all bytes at full rate, α what each bucket takes besides. With
    one bucket nothing is hidden; with very many their latencies add up.
    """
    return max(latency + transfer / buckets, backward / buckets + buckets * latency + transfer - backward)


@formula(
    "",
    "derived here; checked by simulation of the queue",
    100_000_000, 100_000_000, 500_000,
    backward="ns", transfer="ns", latency="ns",
)  # fmt: skip
def ddp_best_buckets(backward: float, transfer: float, latency: float) -> Number:
    """Number of equal buckets that leaves the least: max((B − C)/α, √(B/α)).

    The size of a bucket is the gradients over that. The run's own buckets are not equal, so it says about
    where to look.
    """
    return max((backward - transfer) / latency, math.sqrt(backward / latency))


@formula(
    "",
    "derived here; the parameters cancel",
    8, 2, 400_000, 100,
    element="B", peak="FLOP/ns", rate="B/ns",
)  # fmt: skip
def ddp_hidden_tokens(n: int, element: float, peak: float, rate: float) -> Number:
    """Tokens a rank needs for backward to take as long as the all-reduce: (n − 1)/n·w·A/(2·β).

    w bytes an element, A operations and β bytes a second of a rank: backward computes 4 operations a
    parameter and token, the all-reduce sends 2·(n − 1)/n elements a parameter.
    """
    return (n - 1) / n * element * peak / (2 * rate)
