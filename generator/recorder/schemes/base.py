"""What every scheme is given and what it gives back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor, nn
from torch.optim import Optimizer

from generator.recorder.data import Batch
from generator.recorder.model import Shape
from generator.runs.manifest import Options, Schedule


@dataclass(frozen=True, slots=True)
class Context:
    """Where a rank stands and what all ranks agree on."""

    rank: int
    world_size: int
    shape: Shape
    seed: int
    learning_rate: float
    #: Sizes of the parallel dimensions, outermost first.
    mesh: Mapping[str, int]
    options: Options
    #: Only of a pipeline.
    schedule: Schedule | None = None


class Scheme(Protocol):
    """One rank's part of a training run."""

    #: The modules this rank runs, outermost first.
    modules: list[nn.Module]
    #: None where nothing is trained.
    optimizer: Optimizer | None

    def step(self, batch: Batch) -> Tensor | None:
        """Train on one global batch; the loss of this rank's share of it, None if it has none."""
