"""What parameters, gradients, optimizer state and activations hold.

Ψ are the parameters of the model, E = b·s·h the elements of one layer's input: b sequences of s tokens
of width h.
"""

from __future__ import annotations

from generator.timeline.formulas.entry import Number, formula


@formula("", "derived here: of the model of these runs", 256)
def block_parameters(h: int) -> Number:
    """Parameters of one block: 12·h² + 4·h, of its six matrices and two norms. There are no biases."""
    return 12 * h * h + 4 * h


@formula(
    "B",
    "Rajbhandari et al. 2020 (arXiv 1910.02054), §3.1 and §5",
    7_500_000_000, 64, 1, 2, 2, 12,
    weight="B", gradient="B", optimizer="B",
)  # fmt: skip
def zero_state_bytes(
    parameters: int, ranks: int, stage: int, weight: float = 4, gradient: float = 4, optimizer: float = 8
) -> Number:
    """What a rank holds of parameters, gradients and Adam's state under ZeRO stage 0 to 3.

    Bytes a parameter: w + g + o in stage 0; w + g + o/N; w + (g + o)/N; (w + g + o)/N. Ours are fp32,
    4, 4 and 8 bytes; mixed precision has 2, 2 and 12. The sum of both is 16, but what stages 1 and 2
    leave whole is twice as much in fp32. FSDP without resharding, which stands for stage 2, holds w/N
    more while parameters are gathered: its shard stays beside them.
    """
    parts = (weight, gradient, optimizer)
    whole = 3 - stage
    each = sum(part if i < whole else part / ranks for i, part in enumerate(parts))
    return parameters * each


@formula("B", "Rajbhandari et al. 2020 (arXiv 1910.02054), §3.1 and §5, for 4-byte elements", 6_857_216)
def adam_state_bytes(parameters: int, ranks: int = 1) -> Number:
    """Parameters, gradients and Adam's two moments in fp32, sharded over ranks: 16·Ψ/N bytes."""
    return zero_state_bytes(parameters, ranks, 3)


@formula(
    "", "derived here: the shard, the gathered root and one gathered unit", 6_857_216, 557_568, 787_456, 4
)
def fsdp_parameter_peak(parameters: int, root: int, unit: int, n: int) -> Number:
    """Most parameters a rank holds under FSDP: Ψ/n + Ψ_root + Ψ_unit.

    Its shard of everything, the root, which is not let go after forward, and the unit in use.
    """
    return parameters / n + root + unit


@formula("", "derived here: no dropout, GELU, flash attention; counted on saved tensors", 8, 128, 256, 8)
def saved_elements(b: int, s: int, h: int, heads: int) -> Number:
    """Elements one block saves for backward: 16·E + 4·b·s (norms) + a·b·s (log-sum-exp).

    The sixteen: inputs of the norms, of the products and of GELU (4), q, k and v, and what attention
    gives.
    """
    return 16 * b * s * h + 4 * b * s + heads * b * s


@formula("", "derived here; counted on saved tensors", 8, 128, 256, 8, 8, 1024)
def model_saved_elements(b: int, s: int, h: int, heads: int, layers: int, vocabulary: int) -> Number:
    """Elements the whole model saves for backward: its blocks, and 2·E + 2·b·s + b·s·V for the head.

    The head keeps its norm's input and output, two numbers a token, and the log-softmax.
    """
    return layers * saved_elements(b, s, h, heads) + 2 * b * s * h + 2 * b * s + b * s * vocabulary


@formula("", "derived here; counted on saved tensors", 8, 128, 256, 8, 8)
def recomputed_saved_elements(b: int, s: int, h: int, heads: int, layers: int) -> Number:
    """Elements the blocks hold at most when each is computed again: their L inputs and one block's own."""
    return (layers - 1) * b * s * h + saved_elements(b, s, h, heads)


@formula(
    "B",
    "Korthikanti et al. 2022 (arXiv 2205.05198), Eq. (1)",
    1, 2048, 12_288, 96,
    element="B", mask="B",
)  # fmt: skip
def classic_activation_bytes(
    b: int, s: int, h: int, heads: int, element: float = 2, mask: float = 1
) -> Number:
    """Activations of a layer with dropout and without flash attention: s·b·h·(34 + 5·a·s/h) bytes.

    Sixteen elements of 2 bytes and two dropout masks of 1 byte are the 34; scores, their dropout and its
    mask the 5·a·s/h. Flash attention keeps none of those, so the second term belongs to older runs.
    """
    return b * s * h * (16 * element + 2 * mask) + heads * s * s * b * (2 * element + mask)
