"""One process trains the model with a mixture of experts: what expert parallelism is compared with."""

from __future__ import annotations

from torch import nn
from torch.optim import AdamW

from generator.recorder.moe import build_moe_model
from generator.recorder.schemes.base import Context
from generator.recorder.schemes.single import Single


class SingleExperts(Single):
    """The single process's step, with experts."""

    def __init__(self, context: Context) -> None:
        options = context.options
        self.model = build_moe_model(context.shape, context.seed, options.experts, options.router)
        self.modules: list[nn.Module] = [self.model]
        self.optimizer = AdamW(self.model.parameters(), lr=context.learning_rate, foreach=True)


def build(context: Context) -> SingleExperts:
    return SingleExperts(context)
