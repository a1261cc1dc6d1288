"""Activation checkpointing: a block keeps only its input, and backward runs its forward once more.

Reentrant checkpointing runs the whole block again and then its backward. PyTorch's default stops as
soon as everything that backward asks for is there again: the block's last matrix product, whose result
nobody needs, is left out. So the first costs a third more FLOPs, the second less than that.
"""

from __future__ import annotations

from typing import cast

from torch import Tensor, nn
from torch.optim import AdamW
from torch.utils.checkpoint import checkpoint

from generator.recorder.data import Batch
from generator.recorder.model import build_model, loss_of
from generator.recorder.schemes.base import Context


class Recomputed(nn.Module):
    """A block whose activations are not kept for backward."""

    def __init__(self, block: nn.Module, *, reentrant: bool) -> None:
        super().__init__()
        self.block, self.reentrant = block, reentrant

    def forward(self, x: Tensor) -> Tensor:
        return cast(Tensor, checkpoint(self.block, x, use_reentrant=self.reentrant))


class Recompute:
    """The single process's step, with every block checkpointed."""

    def __init__(self, context: Context) -> None:
        self.model = build_model(context.shape, context.seed)
        for name, block in self.model.blocks.items():
            self.model.blocks[name] = Recomputed(block, reentrant=context.options.recompute == "reentrant")
        self.modules: list[nn.Module] = [self.model]
        self.optimizer = AdamW(self.model.parameters(), lr=context.learning_rate, foreach=True)

    def step(self, batch: Batch) -> Tensor:
        loss = loss_of(self.model(batch.inputs), batch.targets)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.detach()


def build(context: Context) -> Recompute:
    return Recompute(context)
