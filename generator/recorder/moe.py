"""The model with a mixture of experts in every layer: each token's MLP is one of several."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from generator.recorder.model import GPT, MLP, Shape, build_model


class Router(nn.Module):
    """Chooses one expert for each token (top-1), and how much of the expert's output the token takes.

    Choices are dealt out by position, so that the load is known and stays what it is: `balanced` gives
    the experts tokens in turn; `skewed` gives every other token to the first expert and deals out the
    rest. Left to learn freely, without a loss that balances, the router of this model sent all tokens
    of most layers to one expert within five steps. What it does learn is the weight of its choice.
    """

    def __init__(self, width: int, experts: int, rule: str) -> None:
        super().__init__()
        self.gate = nn.Linear(width, experts, bias=False)
        self.rule = rule

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Tokens [tokens, width] to experts [tokens] and weights [tokens, 1]."""
        shares = self.gate(tokens).softmax(-1)
        turn, experts = torch.arange(len(tokens)), shares.shape[1]
        choice = turn % experts if self.rule == "balanced" else turn % 2 * (turn // 2 % experts)
        return choice, shares.gather(1, choice[:, None])


class MixtureOfExperts(nn.Module):
    """All experts in one process; takes the place of a block's MLP."""

    def __init__(self, shape: Shape, experts: int, rule: str) -> None:
        super().__init__()
        self.router = Router(shape.d_model, experts, rule)
        self.experts = nn.ModuleList(MLP(shape) for _ in range(experts))

    def forward(self, x: Tensor) -> Tensor:
        tokens = x.flatten(0, -2)
        choice, weight = self.router(tokens)
        order = choice.argsort(stable=True)
        counts = choice.bincount(minlength=len(self.experts))
        done = apply_experts(self.experts, tokens.index_select(0, order), counts)
        mixed = torch.zeros_like(tokens).index_copy(0, order, done)
        return (mixed * weight).view_as(x)


def apply_experts(experts: nn.ModuleList, rows: Tensor, counts: Tensor) -> Tensor:
    """Give each expert its rows, which lie one expert after the other, `counts` of each."""
    parts = rows.split(counts.tolist())
    return torch.cat([expert(part) for expert, part in zip(experts, parts, strict=True)])


def build_moe_model(shape: Shape, seed: int, experts: int, rule: str) -> GPT:
    """The seeded model with all experts in all layers; the rest is the model without experts."""
    model = build_model(shape, seed)
    for block in model.blocks.values():
        block.register_module("mlp", MixtureOfExperts(shape, experts, rule))
    return model


def count_moe_parameters(shape: Shape, experts: int) -> int:
    """Parameters of the whole model, counted without making them."""
    with torch.device("meta"):
        return sum(p.numel() for p in build_moe_model(shape, 0, experts, "balanced").parameters())
