"""Several kinds of parallelism at once: each rank has a place in a mesh, and a group for each dimension.

Tensor parallelism talks most, so its ranks follow each other and share a node; sharded data
parallelism comes around it, and a pipeline around both, since it talks least.
"""

from __future__ import annotations

from itertools import groupby

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.distributed.tensor.parallel import parallelize_module
from torch.optim import AdamW

from generator.recorder.data import Batch
from generator.recorder.model import GPT, build_model, loss_of
from generator.recorder.schemes.base import Context
from generator.recorder.schemes.tensor_parallel import PLAN


def cut_and_shard(model: GPT, mesh: DeviceMesh, *, reshard: bool) -> None:
    """Cut every block over the tensor-parallel ranks, then shard what is left of it over the others."""
    for block in model.blocks.values():
        parallelize_module(block, mesh["tp"], PLAN)
        fully_shard(block, mesh=mesh["shard"], reshard_after_forward=reshard)
    root = fully_shard(model, mesh=mesh["shard"], reshard_after_forward=False)
    assert isinstance(root, FSDPModule)
    # Without this an all-gather on CPU blocks the rank that asks for it.
    root._set_unshard_async_op(True)


def make_optimizer(model: GPT, learning_rate: float) -> AdamW:
    """AdamW over groups of parameters: one fused update cannot mix those of different meshes."""

    def mesh_of(parameter: nn.Parameter) -> int:
        return int(parameter.device_mesh.ndim)

    groups = groupby(sorted(model.parameters(), key=mesh_of), key=mesh_of)
    return AdamW([{"params": list(group)} for _, group in groups], lr=learning_rate, foreach=True)


class ShardedTensorParallel:
    """FSDP x TP: the ranks of one node cut every layer, and each shards its part over the nodes."""

    def __init__(self, context: Context) -> None:
        sizes = context.mesh["shard"], context.mesh["tp"]
        mesh = init_device_mesh("cpu", sizes, mesh_dim_names=("shard", "tp"))
        self.place, self.shards = mesh.get_local_rank("shard"), sizes[0]
        self.model = build_model(context.shape, context.seed)
        cut_and_shard(self.model, mesh, reshard=context.options.reshard_after_forward)
        self.modules: list[nn.Module] = [self.model]
        self.optimizer = make_optimizer(self.model, context.learning_rate)

    def step(self, batch: Batch) -> Tensor:
        mine = batch.share(self.place, self.shards)
        loss = loss_of(self.model(mine.inputs), mine.targets)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.detach()


class ShardedTensorParallelPipeline:
    """PP x FSDP x TP: every stage of a 1F1B pipeline is trained as above.

    A stage keeps its gathered parameters until the last micro-batch, and reduces gradients once.
    """

    def __init__(self, context: Context) -> None:
        sizes = context.mesh["pp"], context.mesh["shard"], context.mesh["tp"]
        mesh = init_device_mesh("cpu", sizes, mesh_dim_names=("pp", "shard", "tp"))
        self.place, self.shards = mesh.get_local_rank("shard"), sizes[1]
        number, stages = mesh.get_local_rank("pp"), sizes[0]
        per_stage = context.shape.layers // stages
        begin = number * per_stage
        self.model = build_model(context.shape, context.seed, begin, begin + per_stage)
        cut_and_shard(self.model, mesh, reshard=context.options.reshard_after_forward)
        self.first, self.last = number == 0, number == stages - 1
        stage = PipelineStage(self.model, number, stages, torch.device("cpu"), group=mesh.get_group("pp"))
        assert context.schedule is not None
        self.schedule = Schedule1F1B(stage, context.schedule.microbatches, loss_fn=loss_of)
        self.modules: list[nn.Module] = [self.model]
        self.optimizer = make_optimizer(self.model, context.learning_rate)

    def step(self, batch: Batch) -> Tensor | None:
        mine = batch.share(self.place, self.shards)
        losses: list[Tensor] = []
        if self.first:
            self.schedule.step(mine.inputs)
        elif self.last:
            self.schedule.step(target=mine.targets, losses=losses, return_outputs=False)
        else:
            self.schedule.step()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return torch.stack(losses).detach().mean() if losses else None


def build(context: Context) -> ShardedTensorParallel | ShardedTensorParallelPipeline:
    return ShardedTensorParallelPipeline(context) if "pp" in context.mesh else ShardedTensorParallel(context)
