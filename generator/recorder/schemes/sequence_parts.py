"""What ring attention and Ulysses share: a rank holds the whole model and a part of every sequence.

Only attention looks at other tokens, so only attention communicates; the rest of the step is the single
process's on fewer tokens, and the gradients, each rank's from its own tokens, are added up at the end.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.optim import AdamW

from generator.recorder.data import Batch
from generator.recorder.model import build_model, loss_of
from generator.recorder.schemes.base import Context
from generator.recorder.schemes.gradients import add_up_gradients

Mix = Callable[[Tensor, Tensor, Tensor], Tensor]


def tiles_of(rank: int, ranks: int, order: str) -> tuple[int, int]:
    """The two of a sequence's 2·ranks equal tiles that a rank holds.

    Zig-zag takes one from each end: what a tile near the begin has to attend to less, its partner near
    the end has to attend to more.
    """
    return (rank, 2 * ranks - 1 - rank) if order == "zigzag" else (2 * rank, 2 * rank + 1)


class ContextParallel:
    """The single process's step on a part of each sequence, with an attention that knows the others."""

    def __init__(self, context: Context, mix: Mix) -> None:
        self.ranks = context.world_size
        tiles = torch.arange(context.shape.tokens).chunk(2 * self.ranks)
        mine = tiles_of(context.rank, self.ranks, context.options.sequence_order)
        self.positions = torch.cat([tiles[i] for i in mine])
        self.model = build_model(context.shape, context.seed)
        assert self.model.embedding is not None
        # Tokens keep their places in the whole sequence.
        self.model.embedding.positions = self.positions
        for block in self.model.blocks.values():
            block.attention.mix = mix
        self.modules: list[nn.Module] = [self.model]
        self.optimizer = AdamW(self.model.parameters(), lr=context.learning_rate, foreach=True)

    def step(self, batch: Batch) -> Tensor:
        mine = Batch(batch.inputs[:, self.positions], batch.targets[:, self.positions])
        loss = loss_of(self.model(mine.inputs), mine.targets)
        # The loss of the batch is the mean over ranks; a key's gradient comes from all of them.
        (loss / self.ranks).backward()
        add_up_gradients(list(self.model.parameters()))
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.detach()
