"""Pipeline parallelism with two stages on each rank: smaller stages, so that the pipeline fills sooner.

* Interleaved 1F1B: rank i has the stages i and p + i. A micro-batch passes all ranks twice.
* Interleaved zero bubble: the same stages, but backward is cut in two. The gradient of a stage's input
  is what the stage before waits for; the gradients of weights can wait, and fill the gaps.
* ZB-V and DualPipeV: rank i has the stages i and 2p − 1 − i. A micro-batch goes down the ranks and comes
  back up, turns around on the last rank without a message, and ends on the first. DualPipeV pairs a
  forward with a backward, in whose shadow messages could hide.

In all of them each rank's order is fixed before the step. The first stage has no input to compute a
gradient for, so where backward is cut in two PyTorch does all of it in the part for the weights.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.distributed.pipelining import (
    PipelineStage,
    ScheduleDualPipeV,
    ScheduleInterleaved1F1B,
    ScheduleInterleavedZeroBubble,
    ScheduleZBVZeroBubble,
)
from torch.optim import AdamW

from generator.recorder.data import Batch
from generator.recorder.model import build_model, loss_of
from generator.recorder.schemes.base import Context

LOOPS = {"Interleaved1F1B": ScheduleInterleaved1F1B, "InterleavedZeroBubble": ScheduleInterleavedZeroBubble}
TURNS = {"ZBVZeroBubble": ScheduleZBVZeroBubble, "DualPipeV": ScheduleDualPipeV}


class ChunkedPipeline:
    """Two stages of layers of equal number; the first of all embeds, the last has the loss."""

    def __init__(self, context: Context) -> None:
        assert context.schedule is not None
        name, ranks = context.schedule.name, context.world_size
        stages = 2 * ranks
        second = ranks + context.rank if name in LOOPS else stages - 1 - context.rank
        per_stage = context.shape.layers // stages
        self.modules: list[nn.Module] = []
        mine = []
        for index in (context.rank, second):
            begin = index * per_stage
            model = build_model(context.shape, context.seed, begin, begin + per_stage)
            self.modules.append(model)
            mine.append(PipelineStage(model, index, stages, torch.device("cpu")))
        self.first = context.rank == 0
        self.last = second == stages - 1
        schedule = (LOOPS | TURNS)[name]
        self.schedule = schedule(mine, context.schedule.microbatches, loss_fn=loss_of)
        parameters = [p for model in self.modules for p in model.parameters()]
        self.optimizer = AdamW(parameters, lr=context.learning_rate, foreach=True)

    def step(self, batch: Batch) -> Tensor | None:
        losses: list[Tensor] = []
        inputs = (batch.inputs,) if self.first else ()
        if self.last:
            self.schedule.step(*inputs, target=batch.targets, losses=losses, return_outputs=False)
        else:
            self.schedule.step(*inputs)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return torch.stack(losses).detach().mean() if losses else None


def build(context: Context) -> ChunkedPipeline:
    return ChunkedPipeline(context)
