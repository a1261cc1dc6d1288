"""Context parallelism by all-to-all (Ulysses): for attention, ranks swap parts of the sequence for heads.

Outside attention a rank has all heads of its own tokens. An all-to-all of queries, of keys and of values
gives it all tokens of its own heads, attention is then as in a single process, and a fourth all-to-all
takes the result back: four a layer in forward and, for the gradients, four in backward.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from generator.recorder.model import causal_attention
from generator.recorder.schemes.base import Context
from generator.recorder.schemes.sequence_parts import ContextParallel


class AllToAll(torch.autograd.Function):
    """Give block i to rank i, get a block from each; the gradients go the same way back."""

    @staticmethod
    def forward(ctx: Any, blocks: Tensor) -> Tensor:
        received = torch.empty_like(blocks)
        dist.all_to_all_single(received, blocks)
        return received

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        returned = torch.empty_like(gradient, memory_format=torch.contiguous_format)
        dist.all_to_all_single(returned, gradient.contiguous())
        return returned


def to_heads(x: Tensor, ranks: int) -> Tensor:
    """[batch, all heads, our tokens, size] to [batch, our heads, all tokens, size]."""
    blocks: Tensor = AllToAll.apply(x.unflatten(1, (ranks, -1)).movedim(1, 0).contiguous())
    return blocks.movedim(0, 2).flatten(2, 3)


def to_tokens(x: Tensor, ranks: int) -> Tensor:
    """[batch, our heads, all tokens, size] to [batch, all heads, our tokens, size]."""
    blocks: Tensor = AllToAll.apply(x.unflatten(2, (ranks, -1)).movedim(2, 0).contiguous())
    return blocks.movedim(0, 1).flatten(1, 2)


def build(context: Context) -> ContextParallel:
    ranks = context.world_size

    def mix(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        mixed = causal_attention(*(to_heads(x, ranks) for x in (q, k, v)))
        return to_tokens(mixed, ranks)

    return ContextParallel(context, mix)
