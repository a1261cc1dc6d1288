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

#: Elements of the full tensor, fp32: 4 MiB.
ELEMENTS = 1 << 20


class Collectives:
    """No model and no training: a few matrix products stand for the computation between calls."""

    optimizer = None

    def __init__(self, context: Context) -> None:
        self.work = nn.Sequential(*(nn.Linear(1024, 1024, bias=False) for _ in range(4)))
        self.modules: list[nn.Module] = [self.work]
        self.data = torch.randn(256, 1024)
        self.full = torch.ones(ELEMENTS)
        self.other = torch.ones(ELEMENTS)
        self.part = torch.ones(ELEMENTS // context.world_size)

    @torch.no_grad()
    def step(self, batch: Batch) -> None:
        self.work(self.data)
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
