"""A ring all-reduce by hand: every rank sends to the next one and receives from the one before.

All gradients are one vector, cut into as many chunks as there are ranks. In the first n - 1 steps each
rank adds the chunk it receives to its own and passes the sum on: in the end it has one chunk of the
whole sum. In the other n - 1 steps these finished chunks go round. So 2(n - 1) chunks leave every rank,
2(n - 1)/n of the vector, and no rank and no link has more to do than any other.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters
from torch.optim import AdamW

from generator.recorder.data import Batch
from generator.recorder.model import build_model, loss_of
from generator.recorder.schemes.base import Context


def ring_all_reduce(vector: Tensor, rank: int, ranks: int) -> None:
    """Replace a vector by its sum over all ranks; its length is a multiple of their number."""
    chunks = vector.chunk(ranks)
    received = torch.empty_like(chunks[0])
    for step in range(ranks - 1):
        exchange(chunks[(rank - step) % ranks], received, rank, ranks)
        chunks[(rank - step - 1) % ranks].add_(received)
    for step in range(ranks - 1):
        exchange(chunks[(rank + 1 - step) % ranks], chunks[(rank - step) % ranks], rank, ranks)


def exchange(outgoing: Tensor, incoming: Tensor, rank: int, ranks: int) -> None:
    """Send a chunk to the next rank while one comes from the rank before."""
    sending = dist.isend(outgoing, (rank + 1) % ranks)
    receiving = dist.irecv(incoming, (rank - 1) % ranks)
    assert sending is not None
    assert receiving is not None
    receiving.wait()
    sending.wait()


class RingDataParallel:
    """The single process's step on a share of the batch; all gradients are averaged after backward."""

    def __init__(self, context: Context) -> None:
        self.rank, self.ranks = context.rank, context.world_size
        self.model = build_model(context.shape, context.seed)
        self.modules: list[nn.Module] = [self.model]
        self.optimizer = AdamW(self.model.parameters(), lr=context.learning_rate, foreach=True)

    def step(self, batch: Batch) -> Tensor:
        mine = batch.share(self.rank, self.ranks)
        loss = loss_of(self.model(mine.inputs), mine.targets)
        loss.backward()
        self.average_gradients()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.detach()

    def average_gradients(self) -> None:
        gradients = [p.grad for p in self.model.parameters() if p.grad is not None]
        vector = parameters_to_vector(gradients).div_(self.ranks)
        padding = -len(vector) % self.ranks
        vector = nn.functional.pad(vector, (0, padding)) if padding else vector
        ring_all_reduce(vector, self.rank, self.ranks)
        vector_to_parameters(vector, gradients)


def build(context: Context) -> RingDataParallel:
    return RingDataParallel(context)
