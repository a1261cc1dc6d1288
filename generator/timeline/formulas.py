"""Closed forms that runs are held against. Each is executable and says where it comes from."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass

Number = int | float


@dataclass(frozen=True, slots=True)
class Formula:
    name: str
    function: Callable[..., Number]
    #: "B" or "" (a pure number).
    unit: str
    summary: str
    doc: str
    #: Where it stands, or "derived here".
    source: str
    parameters: tuple[str, ...]


FORMULAS: dict[str, Formula] = {}


def formula(unit: str, source: str) -> Callable[[Callable[..., Number]], Callable[..., Number]]:
    """Enter a function into the book's closed forms."""

    def enter(function: Callable[..., Number]) -> Callable[..., Number]:
        doc = inspect.getdoc(function) or ""
        FORMULAS[function.__name__] = Formula(
            name=function.__name__,
            function=function,
            unit=unit,
            source=source,
            doc=doc,
            summary=doc.split("\n\n")[0].replace("\n", " "),
            parameters=tuple(inspect.signature(function).parameters),
        )
        return function

    return enter


@formula("", "derived here; checked by simulation of the schedule")
def pipeline_bubble_fraction(p: int, m: int) -> Number:
    """Idle over total of GPipe and 1F1B with p equal stages and m micro-batches: (p − 1)/(m + p − 1)."""
    return (p - 1) / (m + p - 1)


@formula("", "Narayanan et al. 2021 (arXiv 2104.04473), §2.2.1")
def pipeline_bubble_overhead(p: int, m: int) -> Number:
    """Idle over ideal of GPipe and 1F1B with p equal stages and m micro-batches: (p − 1)/m."""
    return (p - 1) / m


@formula("", "derived here; checked by simulation of the schedule")
def pipeline_in_flight(p: int, m: int, stage: int) -> Number:
    """Most micro-batches whose activations 1F1B holds on a stage (from 0): min(m, p − stage)."""
    return min(m, p - stage)


@formula("", "derived here; ring simulated for n = 2, 3, 4, 8")
def ring_share(n: int) -> Number:
    """Share of a payload that each of n ranks sends in a ring all-gather or reduce-scatter: (n − 1)/n."""
    return (n - 1) / n


@formula("", "derived here; ring simulated for n = 2, 3, 4, 8")
def ring_all_reduce_steps(n: int) -> Number:
    """Steps of a ring all-reduce of n ranks: n − 1 that add and n − 1 that copy, 2·(n − 1)."""
    return 2 * (n - 1)


@formula("", "Rajbhandari et al. 2020 (arXiv 1910.02054), §7.1")
def ddp_wire_elements(parameters: int, n: int) -> Number:
    """Elements a rank sends to all-reduce the gradients of Ψ parameters once: 2·Ψ·(n − 1)/n."""
    return 2 * parameters * (n - 1) / n


@formula("", "Rajbhandari et al. 2020 (arXiv 1910.02054), §7.2.1")
def zero1_wire_elements(parameters: int, n: int) -> Number:
    """Elements a rank sends under ZeRO-1 or ZeRO-2, reduce-scatter and all-gather: 2·Ψ·(n − 1)/n."""
    return 2 * parameters * (n - 1) / n


@formula("", "derived here from PyTorch's ZeroRedundancyOptimizer: all-reduce, then broadcast")
def zero1_library_wire_elements(parameters: int, n: int) -> Number:
    """Elements a rank sends (mean) under ZeroRedundancyOptimizer with DDP: 3·Ψ·(n − 1)/n."""
    return 3 * parameters * (n - 1) / n


@formula("", "derived here; ZeRO-3's 3·Ψ (Rajbhandari et al. 2020, §7.2.2) with the root gathered once")
def fsdp_wire_elements(parameters: int, root: int, n: int) -> Number:
    """Elements a rank sends under FSDP with a root of `root` parameters: (3·Ψ − Ψ_root)·(n − 1)/n."""
    return (3 * parameters - root) * (n - 1) / n


@formula("", "derived here: an all-reduce of a shard over the nodes")
def hsdp_wire_elements_across(parameters: int, nodes: int, shards: int) -> Number:
    """Elements a rank sends to the other nodes under HSDP: 2·(Ψ/shards)·(nodes − 1)/nodes."""
    return 2 * parameters / shards * (nodes - 1) / nodes


@formula("", "Narayanan et al. 2021 (arXiv 2104.04473), §2.3, §3.2")
def tp_all_reduces(layers: int) -> Number:
    """All-reduces of tensor parallelism in a step of one micro-batch: two forward, two backward a layer."""
    return 4 * layers


@formula("", "Narayanan et al. 2021 (arXiv 2104.04473), §3.2")
def tp_wire_elements(b: int, s: int, h: int, t: int) -> Number:
    """Elements a rank sends per layer under tensor parallelism: 8·b·s·h·(t − 1)/t."""
    return 8 * b * s * h * (t - 1) / t


@formula("", "derived here from PyTorch's fully_shard: the root is not resharded after forward")
def fsdp_all_gathers(units: int) -> Number:
    """All-gathers of a step of FSDP with `units` wrapped below the root: 2·units + 1."""
    return 2 * units + 1


@formula("", "derived here: every unit and the root reduce their gradients once")
def fsdp_reduce_scatters(units: int) -> Number:
    """Reduce-scatters of a step of FSDP with `units` wrapped below the root: units + 1."""
    return units + 1


@formula("", "derived here: two matrix products in backward for each one in forward")
def backward_over_forward() -> Number:
    """FLOPs of backward over forward for matrix products: 2."""
    return 2


@formula("B", "Rajbhandari et al. 2020 (arXiv 1910.02054), §3.1 and §5, for 4-byte elements")
def adam_state_bytes(parameters: int, ranks: int = 1) -> Number:
    """Parameters, gradients and Adam's two moments in fp32, sharded over ranks: 16·Ψ/N bytes."""
    return 16 * parameters / ranks


@formula("B", "Rajbhandari et al. 2020 (arXiv 1910.02054), §5, for 4-byte elements")
def zero_state_bytes(parameters: int, ranks: int, stage: int) -> Number:
    """Parameters, gradients and Adam's moments in fp32 a rank: Ψ·16, 8 + 8/N, 4 + 12/N, 16/N by stage 0–3.

    FSDP without resharding, which stands for stage 2, holds 4·Ψ/N more while parameters are gathered:
    its shard stays beside them.
    """
    kept = (16, 8, 4, 0)[stage]
    return parameters * (kept + (16 - kept) / ranks)


@formula("", "derived here; counted on the recorded operations")
def block_forward_flops(b: int, s: int, h: int) -> Number:
    """FLOPs of one block's forward, a causal mask counted as the full square: 24·b·s·h² + 4·b·s²·h."""
    return 24 * b * s * h * h + 4 * b * s * s * h


@formula("", "derived here; PyTorch's default stops before the last product of the block (8·b·s·h²)")
def block_recompute_flops(b: int, s: int, h: int, early_stop: int) -> Number:
    """FLOPs of computing one block again: its forward, or with early stop 16·b·s·h² + 4·b·s²·h."""
    return block_forward_flops(b, s, h) - (8 * b * s * h * h if early_stop else 0)


@formula("", "derived here; backward taken as twice the forward, which flash attention exceeds")
def recompute_overhead(s: int, h: int, early_stop: int) -> Number:
    """Extra FLOPs over FLOPs of a block: 1/3, or with early stop (16·h + 4·s)/(72·h + 12·s)."""
    return (16 * h + 4 * s) / (72 * h + 12 * s) if early_stop else 1 / 3


@formula("", "derived here: no dropout, GELU, flash attention; counted on saved tensors")
def saved_elements(b: int, s: int, h: int, heads: int) -> Number:
    """Elements one block saves for backward: 16·b·s·h + 4·b·s (norms) + heads·b·s (log-sum-exp)."""
    return 16 * b * s * h + 4 * b * s + heads * b * s
