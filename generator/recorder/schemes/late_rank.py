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


class LateRank:
    """No model and no training: a few matrix products stand for the computation between calls."""

    optimizer = None

    def __init__(self, context: Context) -> None:
        width = 4 * context.shape.d_model
        self.times = 3 if context.rank == LATE else 1
        self.work = nn.Sequential(*(nn.Linear(width, width, bias=False) for _ in range(4)))
        self.modules: list[nn.Module] = [self.work]
        self.data = torch.randn(256, width)
        # 1 MiB in fp32, at the width of the book's model.
        self.values = torch.ones(width * width // 4)

    @torch.no_grad()
    def step(self, batch: Batch) -> None:
        for _ in range(3):
            for _ in range(self.times):
                self.work(self.data)
            # The largest of equal values: a sum would grow from call to call.
            dist.all_reduce(self.values, op=dist.ReduceOp.MAX)


def build(context: Context) -> LateRank:
    return LateRank(context)
