"""Pipeline parallelism: a rank owns a few layers, and micro-batches pass from rank to rank.

GPipe runs all forwards, then all backwards, and so holds the activations of all micro-batches at once.
1F1B starts with as many forwards as there are stages from this one to the end, then takes turns: one
forward, one backward. So it never holds the activations of more micro-batches than that.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
from torch.optim import AdamW

from generator.recorder.data import Batch
from generator.recorder.model import build_model, loss_of
from generator.recorder.schemes.base import Context

SCHEDULES = {"GPipe": ScheduleGPipe, "1F1B": Schedule1F1B}


class Pipeline:
    """One stage, of as many layers as the others unless told; the first embeds, the last has the loss."""

    def __init__(self, context: Context) -> None:
        self.first = context.rank == 0
        self.last = context.rank == context.world_size - 1
        equal = (context.shape.layers // context.world_size,) * context.world_size
        layers = context.options.layers_per_stage or equal
        begin = sum(layers[: context.rank])
        self.model = build_model(
            context.shape, context.seed, begin, begin + layers[context.rank], head=self.last
        )
        stage = PipelineStage(self.model, context.rank, context.world_size, torch.device("cpu"))
        assert context.schedule is not None
        self.schedule = SCHEDULES[context.schedule.name](
            stage, context.schedule.microbatches, loss_fn=loss_of
        )
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
