"""Five collectives, one after the other, on the same amount of data; between them every rank computes.

What the ranks have before and after a call tells them apart. With n ranks and S bytes in full:
all-reduce takes S and gives the sum of all, S; all-gather takes S/n and gives S; reduce-scatter takes S
and gives a part of the sum, S/n; all-to-all takes S and gives S, a part from each; broadcast takes S
from one rank and gives it to all.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import nn

from generator.recorder.data import Batch
from generator.recorder.schemes.base import Context


class Collectives:
    """No model and no training: a few matrix products stand for the computation between calls."""

    optimizer = None

    def __init__(self, context: Context) -> None:
        width = 4 * context.shape.d_model
        self.work = nn.Sequential(*(nn.Linear(width, width, bias=False) for _ in range(4)))
        self.modules: list[nn.Module] = [self.work]
        self.data = torch.randn(256, width)
        # 4 MiB in fp32, at the width of the book's model.
        self.full = torch.ones(width * width)
        self.other = torch.ones_like(self.full)
        self.part = self.full.chunk(context.world_size)[context.rank].clone()

    @torch.no_grad()
    def step(self, batch: Batch) -> None:
        self.work(self.data)
        # The largest of equal values: a sum would grow from step to step.
        dist.all_reduce(self.full, op=dist.ReduceOp.MAX)
        self.work(self.data)
        dist.all_gather_single(self.full, self.part)
        self.work(self.data)
        dist.reduce_scatter_single(self.part, self.full, op=dist.ReduceOp.MAX)
        self.work(self.data)
        dist.all_to_all_single(self.other, self.full)
        self.work(self.data)
        dist.broadcast(self.full, src=0)


def build(context: Context) -> Collectives:
    return Collectives(context)
