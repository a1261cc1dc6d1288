"""One process trains the whole model on the whole batch: what all other schemes are compared with."""

from __future__ import annotations

from torch import Tensor, nn
from torch.optim import AdamW

from generator.recorder.data import Batch
from generator.recorder.model import build_model, loss_of
from generator.recorder.schemes.base import Context


class Single:
    """Forward, backward, optimizer."""

    def __init__(self, context: Context) -> None:
        self.model = build_model(context.shape, context.seed)
        self.modules: list[nn.Module] = [self.model]
        self.optimizer = AdamW(self.model.parameters(), lr=context.learning_rate, foreach=True)

    def step(self, batch: Batch) -> Tensor:
        loss = loss_of(self.model(batch.inputs), batch.targets)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.detach()


def build(context: Context) -> Single:
    return Single(context)
