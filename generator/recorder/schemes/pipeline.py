"""Pipeline parallelism, 1F1B: a rank owns a few layers, and micro-batches pass from rank to rank.

A stage starts with as many forwards as there are stages from it to the end, then takes turns: one
forward, one backward. So it never holds the activations of more micro-batches than that.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.optim import AdamW

from generator.recorder.data import Batch
from generator.recorder.model import build_model, loss_of
from generator.recorder.schemes.base import Context


class Pipeline:
    """One stage: layers of equal number; the first also embeds, the last also computes the loss."""

    def __init__(self, context: Context) -> None:
        self.first = context.rank == 0
        self.last = context.rank == context.world_size - 1
        per_stage = context.shape.layers // context.world_size
        begin = context.rank * per_stage
        self.model = build_model(context.shape, context.seed, begin, begin + per_stage)
        stage = PipelineStage(self.model, context.rank, context.world_size, torch.device("cpu"))
        assert context.schedule is not None
        self.schedule = Schedule1F1B(stage, context.schedule.microbatches, loss_fn=loss_of)
        self.modules: list[nn.Module] = [self.model]
        self.optimizer = AdamW(self.model.parameters(), lr=context.learning_rate, foreach=True)

    def step(self, batch: Batch) -> Tensor | None:
        losses: list[Tensor] = []
        if self.first:
            self.schedule.step(batch.inputs)
        elif self.last:
            self.schedule.step(target=batch.targets, losses=losses, return_outputs=False)
        else:
            self.schedule.step()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return torch.stack(losses).detach().mean() if losses else None


def build(context: Context) -> Pipeline:
    return Pipeline(context)
