"""Floating-point operations of the model, and what computing some of them again costs.

h is the width of the model, s the tokens of a sequence, b the sequences of a batch. A causal mask is
counted as the full square, as PaLM, Narayanan et al. and Korthikanti et al. do; counted exactly, the
attention terms were half as large.
"""

from __future__ import annotations

from generator.timeline.formulas.entry import Number, formula


@formula("", "derived here: two matrix products in backward for each one in forward")
def backward_over_forward() -> Number:
    """FLOPs of backward over forward for matrix products: 2."""
    return 2


@formula("", "derived here: five attention products in backward for two in forward", 128, 256)
def flash_backward_over_forward(s: int, h: int) -> Number:
    """FLOPs of backward over forward of one block with flash attention: (48·h + 10·s)/(24·h + 4·s).

    Flash attention does not keep the scores and computes them again in backward.
    """
    return (48 * h + 10 * s) / (24 * h + 4 * s)


@formula("FLOP", "derived here; counted on the recorded operations", 8, 128, 256)
def block_forward_flops(b: int, s: int, h: int) -> Number:
    """FLOPs of one block's forward: 24·b·s·h² + 4·b·s²·h.

    Four products of h × h and two of h × 4h, and the two products of attention.
    """
    return 24 * b * s * h * h + 4 * b * s * s * h


@formula("FLOP", "Korthikanti et al. 2022 (arXiv 2205.05198), App. A", 8, 128, 256, 8, 1024)
def step_flops(b: int, s: int, h: int, layers: int, vocabulary: int) -> Number:
    """FLOPs of a step that the model needs: 72·b·L·s·h²·(1 + s/6h + V/12hL).

    Three times those of forward. Flash attention runs 2·b·L·s²·h more, recomputation the forward of
    what it computes again: those are work of the machine, not of the model.
    """
    return 72 * b * layers * s * h * h + 12 * b * layers * s * s * h + 6 * b * s * h * vocabulary


@formula("FLOP", "derived here: the FLOPs of a step, for one token", 6_553_600, 8, 128, 256)
def token_flops(parameters: int, layers: int, s: int, h: int) -> Number:
    """FLOPs of a step for one token: 6·Ψ + 12·L·s·h.

    Ψ are the parameters that stand in matrix products: without the embedding's tables, which are only
    looked up. Counting all of them overstates small models most.
    """
    return 6 * parameters + 12 * layers * s * h


@formula(
    "FLOP",
    "derived here from PyTorch's checkpoint, which stops before the last product of the block",
    8, 128, 256, 1,
)  # fmt: skip
def block_recompute_flops(b: int, s: int, h: int, early_stop: int) -> Number:
    """FLOPs of computing one block again: its forward, or with early stop 16·b·s·h² + 4·b·s²·h."""
    return block_forward_flops(b, s, h) - (8 * b * s * h * h if early_stop else 0)


@formula("", "derived here; backward taken as twice the forward, which flash attention exceeds", 128, 256, 1)
def recompute_overhead(s: int, h: int, early_stop: int) -> Number:
    """Extra FLOPs over FLOPs of a block: 1/3, or with early stop (16·h + 4·s)/(72·h + 12·s)."""
    return (16 * h + 4 * s) / (72 * h + 12 * s) if early_stop else 1 / 3


@formula("", "derived here: one more forward", 7_700_000, 11_900_000, forward="ns", backward="ns")
def recompute_slowdown(forward: float, backward: float) -> Number:
    """Extra time over time of a step that computes every forward again: F/(F + B).

    1/3 only where backward takes exactly twice as long as forward.
    """
    return forward / (forward + backward)


@formula(
    "",
    "derived here",
    48_586_817_536, 560_000_000, 100,
    operations="FLOP", time="ns", peak="FLOP/ns",
)  # fmt: skip
def utilization(operations: float, time: float, peak: float) -> Number:
    """Share of a device's peak that is reached: operations ÷ time ÷ peak.

    Of the model's operations it is the model FLOPs utilization (MFU), of all that ran the hardware FLOPs
    utilization (HFU). Recomputation raises the second and never the first.
    """
    return operations / time / peak


@formula("", "derived here", 200_000_000, 50_000_000, step="ns", exposed="ns")
def overlap_speedup(step: float, exposed: float) -> Number:
    """The most that hiding all exposed communication can win: T/(T − exposed)."""
    return step / (step - exposed)
