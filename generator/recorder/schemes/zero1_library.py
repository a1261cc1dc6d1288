"""ZeRO-1 from the library: data parallelism whose optimizer state is divided by ZeroRedundancyOptimizer.

DistributedDataParallel still all-reduces every gradient to every rank, although a rank needs only those
of the parameters it updates. Each rank then broadcasts what it has updated: a third collective's worth
of bytes where reduce-scatter and all-gather need two.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.optim import AdamW

from generator.recorder.data import Batch
from generator.recorder.model import loss_of
from generator.recorder.schemes.base import Context
from generator.recorder.schemes.data_parallel import data_parallel


class LibraryShardedOptimizer:
    """Data parallelism's step with another optimizer."""

    def __init__(self, context: Context) -> None:
        self.rank, self.ranks = context.rank, context.world_size
        self.model = data_parallel(context)
        self.modules: list[nn.Module] = [self.model]
        # As buckets: one broadcast a rank, not one a parameter.
        self.optimizer = ZeroRedundancyOptimizer(
            self.model.parameters(),
            optimizer_class=AdamW,
            parameters_as_bucket_view=True,
            lr=context.learning_rate,
            foreach=True,
        )

    def step(self, batch: Batch) -> Tensor:
        mine = batch.share(self.rank, self.ranks)
        loss = loss_of(self.model(mine.inputs), mine.targets)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.detach()


def build(context: Context) -> LibraryShardedOptimizer:
    return LibraryShardedOptimizer(context)
