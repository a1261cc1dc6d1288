"""Fully sharded data parallelism: a rank keeps its shard of every parameter, and collects the rest.

Each block is a unit: its parameters are all-gathered before its forward and again before its backward
(ZeRO-3), and its gradients are reduce-scattered. The root, which is embedding and head, is gathered
once. Variants:

* Prefetch: the all-gather of the next block runs while this one computes; else the rank stands still.
* Without resharding after forward, a block's parameters stay until its backward (as in ZeRO-2): more
  memory, one all-gather less.
* Hybrid (HSDP): sharded over the ranks of a node, whole in every node. A gradient's shard is then
  averaged over the nodes by an all-reduce.

On CPU, backward waits for each reduction of gradients; on a GPU these run beside it, on streams of their
own.
"""

from __future__ import annotations

from itertools import pairwise

from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.optim import AdamW

from generator.recorder.data import Batch
from generator.recorder.model import GPT, build_model, loss_of
from generator.recorder.schemes.base import Context


def shard(model: GPT, context: Context) -> None:
    """Shard every block, and the embedding and the head together as the root.

    The mesh has one dimension, over which all is sharded, or two: replicas, then shards.
    """
    options = context.options
    mesh = init_device_mesh("cpu", tuple(context.mesh.values()), mesh_dim_names=tuple(context.mesh))
    blocks = [
        fully_shard(block, mesh=mesh, reshard_after_forward=options.reshard_after_forward)
        for block in model.blocks.values()
    ]
    root = fully_shard(model, mesh=mesh)
    if options.prefetch:
        for before, after in pairwise(blocks):
            before.set_modules_to_forward_prefetch([after])
            after.set_modules_to_backward_prefetch([before])
    assert isinstance(root, FSDPModule)
    # Without this an all-gather on CPU blocks the rank that asks for it, and prefetching hides nothing.
    root._set_unshard_async_op(options.asynchronous_unshard)


class Sharded:
    """The single process's step, on a share of the batch."""

    def __init__(self, context: Context) -> None:
        self.rank, self.ranks = context.rank, context.world_size
        self.model = build_model(context.shape, context.seed)
        shard(self.model, context)
        self.modules: list[nn.Module] = [self.model]
        self.optimizer = AdamW(self.model.parameters(), lr=context.learning_rate, foreach=True)

    def step(self, batch: Batch) -> Tensor:
        mine = batch.share(self.rank, self.ranks)
        loss = loss_of(self.model(mine.inputs), mine.targets)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.detach()


def build(context: Context) -> Sharded:
    return Sharded(context)
