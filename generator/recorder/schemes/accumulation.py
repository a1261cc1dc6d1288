"""Gradient accumulation: the batch goes through in micro-batches, and one update uses their sum.

Each backward adds to the gradients that are there. Only one micro-batch's activations are held at a
time; parameters, gradients and optimizer state are what they are without accumulation.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.optim import AdamW

from generator.recorder.data import Batch
from generator.recorder.model import build_model, loss_of
from generator.recorder.schemes.base import Context


class Accumulation:
    """The single process's step in several forwards and backwards."""

    def __init__(self, context: Context) -> None:
        self.microbatches = context.options.accumulation
        self.model = build_model(context.shape, context.seed)
        self.modules: list[nn.Module] = [self.model]
        self.optimizer = AdamW(self.model.parameters(), lr=context.learning_rate, foreach=True)

    def step(self, batch: Batch) -> Tensor:
        losses = []
        for index in range(self.microbatches):
            part = batch.share(index, self.microbatches)
            # Divided, so that the gradients add up to those of the whole batch's mean.
            loss = loss_of(self.model(part.inputs), part.targets) / self.microbatches
            loss.backward()
            losses.append(loss.detach())
        self.optimizer.step()
        self.optimizer.zero_grad()
        return torch.stack(losses).sum()


def build(context: Context) -> Accumulation:
    return Accumulation(context)
