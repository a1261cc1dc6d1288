"""Expert parallelism: each rank owns some experts of every layer, and tokens travel to their expert.

A rank routes its own tokens and tells the others how many each will get. One all-to-all takes the tokens
to their experts (dispatch), another brings the results back (combine); two more in backward carry the
gradients. How many rows a rank gets is up to the router: a hot expert makes its rank late for all.
All that is not an expert is data parallel.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.optim import AdamW

from generator.recorder.data import Batch
from generator.recorder.model import loss_of
from generator.recorder.moe import MixtureOfExperts, apply_experts, build_moe_model
from generator.recorder.schemes.base import Context
from generator.recorder.schemes.gradients import add_up_gradients


def exchange(rows: Tensor, send: list[int], receive: list[int]) -> Tensor:
    """Send the first `send[0]` rows to rank 0, and so on; returns what each rank sent here, in order."""
    received = rows.new_empty(sum(receive), rows.shape[1])
    dist.all_to_all_single(received, rows.contiguous(), receive, send)
    return received


class Exchange(torch.autograd.Function):
    """An exchange whose gradients go the way back."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, send: list[int], receive: list[int]) -> Tensor:
        ctx.send, ctx.receive = send, receive
        return exchange(rows, send, receive)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return exchange(gradient, ctx.receive, ctx.send), None, None


class DistributedExperts(nn.Module):
    """A mixture of experts of which only some are here."""

    def __init__(self, whole: MixtureOfExperts, rank: int, ranks: int) -> None:
        super().__init__()
        self.ranks, self.everywhere = ranks, len(whole.experts)
        self.here = self.everywhere // ranks
        self.router = whole.router
        self.experts = whole.experts[rank * self.here : (rank + 1) * self.here]

    def forward(self, x: Tensor) -> Tensor:
        tokens = x.flatten(0, -2)
        choice, weight = self.router(tokens)
        order = choice.argsort(stable=True)
        counts = choice.bincount(minlength=self.everywhere)
        # By sender and expert, how many rows will come; known only once all have said so.
        coming = torch.empty_like(counts)
        dist.all_to_all_single(coming, counts)
        coming = coming.view(self.ranks, self.here)
        send, receive = counts.view(self.ranks, self.here).sum(1).tolist(), coming.sum(1).tolist()

        rows = Exchange.apply(tokens.index_select(0, order), send, receive)
        # They lie sender by sender; the experts want them expert by expert.
        expert = torch.arange(self.here).repeat(self.ranks).repeat_interleave(coming.flatten())
        by_expert = expert.argsort(stable=True)
        done = apply_experts(self.experts, rows.index_select(0, by_expert), coming.sum(0))
        done = torch.zeros_like(rows).index_copy(0, by_expert, done)
        back = Exchange.apply(done, receive, send)

        mixed = torch.zeros_like(tokens).index_copy(0, order, back)
        return (mixed * weight).view_as(x)


class ExpertParallel:
    """The single process's step on a share of the batch, with a share of the experts."""

    def __init__(self, context: Context) -> None:
        self.rank, self.ranks = context.rank, context.world_size
        options = context.options
        self.model = build_moe_model(context.shape, context.seed, options.experts, options.router)
        for block in self.model.blocks.values():
            block.register_module("mlp", DistributedExperts(block.mlp, self.rank, self.ranks))
        self.copied = [p for name, p in self.model.named_parameters() if ".experts." not in name]
        self.modules: list[nn.Module] = [self.model]
        self.optimizer = AdamW(self.model.parameters(), lr=context.learning_rate, foreach=True)

    def step(self, batch: Batch) -> Tensor:
        mine = batch.share(self.rank, self.ranks)
        loss = loss_of(self.model(mine.inputs), mine.targets)
        # The loss of the batch is the mean over ranks; an expert's gradient comes from all of them.
        (loss / self.ranks).backward()
        add_up_gradients(self.copied)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.detach()


def build(context: Context) -> ExpertParallel:
    return ExpertParallel(context)
