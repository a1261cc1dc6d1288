"""ZeRO-1 by hand: every rank has all parameters and gradients, but the optimizer state of only its part.

Parameters are one vector, gradients another; rank r owns the r-th of n equal parts. A reduce-scatter
gives it the average gradient of its part, AdamW updates that part, and an all-gather hands the new
parameters to everyone. Together these two move what the all-reduce of plain data parallelism moves.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.optim import AdamW

from generator.recorder.data import Batch
from generator.recorder.model import build_model, loss_of
from generator.recorder.schemes.base import Context


class ShardedOptimizer:
    """The single process's step on a share of the batch, and the update of a part of the parameters."""

    def __init__(self, context: Context) -> None:
        self.rank, self.ranks = context.rank, context.world_size
        self.model = build_model(context.shape, context.seed)
        self.modules: list[nn.Module] = [self.model]
        self.parameters, self.gradients = flatten(self.model, self.ranks)
        self.part = self.parameters.chunk(self.ranks)[self.rank]
        self.part.grad = self.gradients.chunk(self.ranks)[self.rank]
        self.optimizer = AdamW([self.part], lr=context.learning_rate, foreach=True)

    def step(self, batch: Batch) -> Tensor:
        mine = batch.share(self.rank, self.ranks)
        loss = loss_of(self.model(mine.inputs), mine.targets)
        loss.backward()
        self.gradients.div_(self.ranks)
        # Both calls are in place: a rank's part lies where it belongs in the whole.
        assert self.part.grad is not None
        dist.reduce_scatter_single(self.part.grad, self.gradients)
        self.optimizer.step()
        dist.all_gather_single(self.parameters, self.part)
        self.gradients.zero_()
        return loss.detach()


def flatten(model: nn.Module, ranks: int) -> tuple[Tensor, Tensor]:
    """Two vectors whose slices are the model's parameters and their gradients from now on."""
    elements = sum(p.numel() for p in model.parameters())
    padded = elements + -elements % ranks
    parameters, gradients = torch.zeros(padded), torch.zeros(padded)
    begin = 0
    for p in model.parameters():
        here = slice(begin, begin + p.numel())
        parameters[here] = p.detach().flatten()
        p.data, p.grad = parameters[here].view_as(p), gradients[here].view_as(p)
        begin += p.numel()
    return parameters, gradients


def build(context: Context) -> ShardedOptimizer:
    return ShardedOptimizer(context)
