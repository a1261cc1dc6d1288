"""What every scheme is given and what it gives back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor, nn
from torch.optim import Optimizer

from generator.recorder.data import Batch
from generator.recorder.model import Shape


@dataclass(frozen=True, slots=True)
class Context:
    """Where a rank stands and what all ranks agree on."""

    rank: int
    world_size: int
    shape: Shape
    seed: int
    learning_rate: float
    #: Of data parallelism: a bucket is reduced when it reaches this size.
    bucket_mib: float = 1.0
    #: Of a pipeline: the pieces that a batch is cut into.
    microbatches: int = 8


class Scheme(Protocol):
    """One rank's part of a training run."""

    #: The modules this rank runs, outermost first.
    modules: list[nn.Module]
    optimizer: Optimizer

    def step(self, batch: Batch) -> Tensor | None:
        """Train on one global batch; the loss of this rank's share of it, None if it has none."""
