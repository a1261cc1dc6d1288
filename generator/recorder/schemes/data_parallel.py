"""Data parallelism: every rank holds the whole model, takes its part of the batch, averages gradients.

DistributedDataParallel puts gradients into buckets in the order in which backward makes them, and
calls the hook when a bucket is full: the all-reduce of one bucket runs while backward fills the next.
"""

from __future__ import annotations

import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed import GradBucket, Work
from torch.futures import Future
from torch.nn.parallel import DistributedDataParallel
from torch.optim import AdamW

from generator.recorder.data import Batch
from generator.recorder.model import build_model, loss_of
from generator.recorder.schemes.base import Context


class AverageBuckets:
    """Start an all-reduce for each bucket; wait for all of them when the last has been started.

    DistributedDataParallel does so by itself, out of Python's sight; as a hook, each call can be recorded.
    """

    def __init__(self, ranks: int) -> None:
        self.ranks = ranks
        self.started: list[tuple[Work, Tensor, Future[Tensor]]] = []

    def add(self, bucket: GradBucket) -> Future[Tensor]:
        gradients = bucket.buffer().div_(self.ranks)
        work = dist.all_reduce(gradients, async_op=True)
        result: Future[Tensor] = Future()
        self.started.append((work, gradients, result))
        if bucket.is_last():
            for work, gradients, ready in self.started:
                work.wait()
                ready.set_result(gradients)
            self.started.clear()
        return result


def data_parallel(context: Context) -> DistributedDataParallel:
    """The model, whole on every rank, with its gradients averaged in buckets of the given size."""
    model = DistributedDataParallel(
        build_model(context.shape, context.seed), bucket_cap_mb=context.options.bucket_mib
    )
    average = AverageBuckets(context.world_size)
    model.register_comm_hook(None, lambda state, bucket: average.add(bucket))
    return model


class DataParallel:
    """The single process's step, on a share of the batch."""

    def __init__(self, context: Context) -> None:
        self.rank, self.ranks = context.rank, context.world_size
        self.model = data_parallel(context)
        self.modules: list[nn.Module] = [self.model]
        self.optimizer = AdamW(self.model.parameters(), lr=context.learning_rate, foreach=True)

    def step(self, batch: Batch) -> Tensor:
        mine = batch.share(self.rank, self.ranks)
        loss = loss_of(self.model(mine.inputs), mine.targets)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.detach()


def build(context: Context) -> DataParallel:
    return DataParallel(context)
