"""Adding up the gradients of what every rank has a copy of."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor


def add_up_gradients(parameters: list[Tensor]) -> None:
    """Sum gradients over all ranks by one all-reduce of all of them, end to end. Nothing overlaps it."""
    gradients = [p.grad for p in parameters if p.grad is not None]
    everything = torch.cat([g.flatten() for g in gradients])
    dist.all_reduce(everything)
    for gradient, total in zip(gradients, everything.split([g.numel() for g in gradients]), strict=True):
        gradient.copy_(total.view_as(gradient))
