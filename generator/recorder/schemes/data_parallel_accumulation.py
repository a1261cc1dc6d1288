"""Data parallelism with gradient accumulation: several backwards, one update.

Without `no_sync` every backward all-reduces all gradients, although only their sum is used: m times the
bytes for the same result. With it, the micro-batches before the last only add to the gradients.
"""

from __future__ import annotations

from contextlib import nullcontext

import torch
from torch import Tensor, nn
from torch.optim import AdamW

from generator.recorder.data import Batch
from generator.recorder.model import loss_of
from generator.recorder.schemes.base import Context
from generator.recorder.schemes.data_parallel import data_parallel


class AccumulatingDataParallel:
    """Data parallelism's step in several forwards and backwards."""

    def __init__(self, context: Context) -> None:
        self.rank, self.ranks = context.rank, context.world_size
        self.microbatches = context.options.accumulation
        self.reduce_each = context.options.reduce_each
        self.model = data_parallel(context)
        self.modules: list[nn.Module] = [self.model]
        self.optimizer = AdamW(self.model.parameters(), lr=context.learning_rate, foreach=True)

    def step(self, batch: Batch) -> Tensor:
        mine = batch.share(self.rank, self.ranks)
        losses = []
        for index in range(self.microbatches):
            part = mine.share(index, self.microbatches)
            reduces = self.reduce_each or index == self.microbatches - 1
            with nullcontext() if reduces else self.model.no_sync():
                loss = loss_of(self.model(part.inputs), part.targets) / self.microbatches
                loss.backward()
            losses.append(loss.detach())
        self.optimizer.step()
        self.optimizer.zero_grad()
        return torch.stack(losses).sum()


def build(context: Context) -> AccumulatingDataParallel:
    return AccumulatingDataParallel(context)
