"""Context parallelism by ring attention: a rank keeps its queries; keys and values pass from rank to rank.

In every turn a rank sends on the block of keys and values it has, meets it with its own queries, and
merges what comes out with what it had (online softmax). In backward the blocks go round again, and the
gradients of each block travel after it, one hop more, until they are home.

Attention is causal: queries skip keys that come after them. If a rank holds neighbouring tokens
(contiguous), the first rank skips nearly all and the last nothing; zig-zag gives each rank an equal share.
Work is done in tiles, and one on the diagonal costs the processor a whole one although half is masked: of
n ranks, rank i has 4i + 3 pairs of tiles in contiguous order, and each has 2n + 1 in zig-zag.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from generator.recorder.schemes.base import Context
from generator.recorder.schemes.sequence_parts import ContextParallel, tiles_of

# Attention of some queries to some keys, with the logarithm of the softmax's denominator for the merge.
attend = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
attend_backward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward

KEYS_AND_VALUES, GRADIENTS = 0, 1


class Ring:
    """The ring as one rank sees it."""

    def __init__(self, rank: int, ranks: int, order: str) -> None:
        self.rank, self.ranks = rank, ranks
        self.tiles = [tiles_of(r, ranks, order) for r in range(ranks)]

    def owner(self, turn: int) -> int:
        """Whose keys and values are here in a turn: first our own, then those of the ranks before us."""
        return (self.rank - turn) % self.ranks

    def pairs(self, owner: int) -> Iterator[tuple[int, int, bool]]:
        """Our tile of queries, the owner's tile of keys, and whether it is the diagonal; no masked ones."""
        for i, query in enumerate(self.tiles[self.rank]):
            for j, key in enumerate(self.tiles[owner]):
                if key <= query:
                    yield i, j, key == query

    def pass_on(self, block: Tensor, tag: int) -> Passing:
        """Start sending a block to the next rank and receiving one from the rank before."""
        return Passing(block, (self.rank + 1) % self.ranks, (self.rank - 1) % self.ranks, tag)


class Passing:
    """A block on its way out and another on its way in."""

    def __init__(self, block: Tensor, after: int, before: int, tag: int) -> None:
        self.arriving = torch.empty_like(block)
        self.works = (dist.isend(block, after, tag=tag), dist.irecv(self.arriving, before, tag=tag))

    def wait(self) -> Tensor:
        for work in self.works:
            work.wait()
        return self.arriving


def tile(x: Tensor, index: int) -> Tensor:
    """One of the two tiles of tokens of [..., tokens, head size]."""
    return x.chunk(2, dim=-2)[index]


class RingAttention(torch.autograd.Function):
    """Causal attention over whole sequences; q, k, v are of our tokens, [batch, heads, tokens, size]."""

    @staticmethod
    def forward(ctx: Any, ring: Ring, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        out = torch.zeros_like(q)
        log_sum = q.new_full((*q.shape[:3], 1), -torch.inf)
        block = torch.stack((k, v))
        for turn in range(ring.ranks):
            # While this block is attended to, it is already on its way to the next rank.
            passing = ring.pass_on(block, KEYS_AND_VALUES) if turn < ring.ranks - 1 else None
            for i, j, diagonal in ring.pairs(ring.owner(turn)):
                part, part_log_sum = attend(tile(q, i), *(tile(x, j) for x in block), 0.0, diagonal)
                merge(tile(out, i), tile(log_sum, i), part, part_log_sum.unsqueeze(-1))
            if passing:
                block = passing.wait()
        ctx.ring = ring
        ctx.save_for_backward(q, k, v, out, log_sum)
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor, Tensor, Tensor]:
        ring: Ring = ctx.ring
        q, k, v, out, log_sum = ctx.saved_tensors
        of_q = torch.zeros_like(q)
        block = torch.stack((k, v))
        travelling = None
        for turn in range(ring.ranks):
            passing = ring.pass_on(block, KEYS_AND_VALUES) if turn < ring.ranks - 1 else None
            of_block = torch.zeros_like(block)
            for i, j, diagonal in ring.pairs(ring.owner(turn)):
                # With the denominator of the whole row, each part's gradients are right by themselves.
                parts = attend_backward(
                    tile(gradient, i),
                    tile(q, i),
                    *(tile(x, j) for x in block),
                    tile(out, i),
                    tile(log_sum, i).squeeze(-1),
                    0.0,
                    diagonal,
                )
                for total, part in zip((of_q, *of_block), parts, strict=True):
                    tile(total, i if total is of_q else j).add_(part)
            if travelling:
                of_block += travelling.wait()
            travelling = ring.pass_on(of_block, GRADIENTS)
            if passing:
                block = passing.wait()
        assert travelling is not None
        of_k, of_v = travelling.wait()
        return None, of_q, of_k, of_v


def merge(out: Tensor, log_sum: Tensor, part: Tensor, part_log_sum: Tensor) -> None:
    """Add to a softmax over some keys, in place, the softmax over others."""
    both = torch.logaddexp(log_sum, part_log_sum)
    out.mul_(torch.exp(log_sum - both)).add_(part * torch.exp(part_log_sum - both))
    log_sum.copy_(both)


def build(context: Context) -> ContextParallel:
    ring = Ring(context.rank, context.world_size, context.options.sequence_order)
    return ContextParallel(context, lambda q, k, v: RingAttention.apply(ring, q, k, v))
