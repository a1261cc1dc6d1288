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


@formula("", "Narayanan et al. 2021 (arXiv 2104.04473), §2.2.2; checked with PyTorch's own order")
def interleaved_bubble_fraction(p: int, m: int, v: int) -> Number:
    """Idle over total of interleaved 1F1B with v stages on each of p ranks: (p − 1)/(v·m + p − 1)."""
    return (p - 1) / (v * m + p - 1)


@formula("", "derived here: a micro-batch crosses each cut down in forward and up in backward")
def pipeline_messages(p: int, m: int, v: int = 1) -> Number:
    """Messages of a step with v stages on each of p ranks, one after the other: 2m(p·v − 1).

    In a V the two stages of the last rank follow each other, which needs none: 2m(p·v − 2).
    """
    return 2 * m * (p * v - 1)


@formula("", "derived here; checked by simulation of the schedule")
def gpipe_message_delays(p: int) -> Number:
    """How many message times c a step of GPipe is longer than with free messages: 2(p − 1)."""
    return 2 * (p - 1)


@formula("", "derived here; checked by simulation of the schedule for p | m")
def one_f_one_b_message_delays(p: int, m: int) -> Number:
    """How many message times c a step of 1F1B is longer than with free messages: 2(m(p − 1)/p + p − 2).

    Of a schedule that waits for what it receives and for nothing else.
    """
    return 2 * (m * (p - 1) / p + p - 2)


@formula("", "derived here from PyTorch's Schedule1F1B; checked by simulation for p | m")
def torch_one_f_one_b_message_delays(p: int, m: int) -> Number:
    """How many message times c PyTorch's 1F1B is longer than with free messages: 2m + 2p − 5.

    It issues each send together with the next receive and waits for both, so a stage also stands still
    until its own message has left: 2m/p − 1 message times more.
    """
    return 2 * m + 2 * p - 5


@formula("", "derived here and checked by simulation; ZB-H1 of Qi et al. 2023 (arXiv 2401.10241)")
def zero_bubble_idle(p: int, forward: float, backward_input: float, backward_weight: float) -> Number:
    """Idle time of a stage in ZB-H1, in the unit of its three parts: (p − 1)(F + I − W), W ≤ F and I.

    PyTorch's interleaved zero bubble with v stages on each rank has the v-th part of it.
    """
    return (p - 1) * (forward + backward_input - backward_weight)


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


@formula("", "derived here; counted on the recorded messages")
def cp_ring_wire_elements(b: int, s: int, h: int, n: int) -> Number:
    """Elements that a rank sends for one layer of ring attention: (2(n − 1) + 2(n − 1) + 2n)·B·(s/n)·h.

    Keys and values in n − 1 messages forward, again in n − 1 backward, and their gradients in n, home.
    """
    return (2 * (n - 1) + 2 * (n - 1) + 2 * n) * b * s / n * h


@formula("", "derived here; counted on the recorded messages")
def cp_ring_messages(n: int) -> Number:
    """Messages that a rank sends for one layer of ring attention: n − 1 forward and 2n − 1 backward."""
    return n - 1 + 2 * n - 1


@formula("", "derived here; counted by brute force for n = 2, 4, 8")
def causal_share(n: int, rank: int) -> Number:
    """Share of causal attention of the rank-th of n equal parts of a long sequence: (2·rank + 1)/n²."""
    return (2 * rank + 1) / n**2


@formula("", "derived here; counted by brute force for n = 2, 4, 8")
def causal_lockstep(n: int) -> Number:
    """How much longer causal attention takes in contiguous order than in zig-zag: (2n − 1)/n."""
    return (2 * n - 1) / n


@formula("", "derived here: of each of q, k, v, the result and their gradients all but the own part")
def cp_ulysses_wire_elements(b: int, s: int, h: int, n: int) -> Number:
    """Elements that a rank sends for one layer of Ulysses: eight all-to-alls of (n − 1)/n·B·(s/n)·h."""
    return 8 * (n - 1) / n * b * s / n * h


@formula("", "derived here; four all-to-alls, for equal loads and one expert a token")
def ep_wire_elements(tokens: int, h: int, n: int) -> Number:
    """Elements that a rank of n sends for one layer of experts: 4·(n − 1)/n·tokens·h, tokens of the rank."""
    return 4 * (n - 1) / n * tokens * h


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
