"""One late rank: three all-reduces, and before each of them rank 2 computes three times as long.

A collective ends for nobody before the last member has arrived. So the ranks in time see a long call,
most of which is waiting, and the late rank sees the shortest: its own is the transfer alone.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import nn

from generator.recorder.data import Batch
from generator.recorder.schemes.base import Context

LATE = 2
#: Elements of the tensor that is reduced, fp32: 1 MiB.
ELEMENTS = 1 << 18


class LateRank:
    """No model and no training: a few matrix products stand for the computation between calls."""

    optimizer = None

    def __init__(self, context: Context) -> None:
        self.times = 3 if context.rank == LATE % context.world_size else 1
        self.work = nn.Sequential(*(nn.Linear(1024, 1024, bias=False) for _ in range(4)))
        self.modules: list[nn.Module] = [self.work]
        self.data = torch.randn(256, 1024)
        self.values = torch.ones(ELEMENTS)

    @torch.no_grad()
    def step(self, batch: Batch) -> None:
        for _ in range(3):
            for _ in range(self.times):
                self.work(self.data)
            dist.all_reduce(self.values, op=dist.ReduceOp.MAX)


def build(context: Context) -> LateRank:
    return LateRank(context)
