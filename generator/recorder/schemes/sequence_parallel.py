"""Tensor and sequence parallelism: between the cut layers, each rank keeps a part of the sequence.

Tensor parallelism alone leaves norms and residual stream whole on every rank. Here they are cut by
tokens: an all-gather brings the sequence together before attention and before the MLP, and a
reduce-scatter adds up and cuts again after it. Each all-reduce has become such a pair, with the same
bytes: forward 2 + 2 a layer, backward 2 + 2, because the gathered input is kept for backward. What is
new is that a norm's gradient lacks the other ranks' tokens: one small all-reduce before the update.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from torch.optim import AdamW

from generator.recorder.data import Batch
from generator.recorder.model import GPT, build_model, loss_of
from generator.recorder.schemes.base import Context

#: Tokens are the dimension 1 of [batch, tokens, d_model].
BY_TOKEN = Shard(1)
GATHER = PrepareModuleInput(input_layouts=(BY_TOKEN,), desired_input_layouts=(Replicate(),))
GATHER_HEAD = PrepareModuleInput(
    input_layouts=(BY_TOKEN,), desired_input_layouts=(Replicate(),), use_local_output=True
)

BLOCK = {
    "norm1": SequenceParallel(),
    "attention": GATHER,
    "attention.wq": ColwiseParallel(),
    "attention.wk": ColwiseParallel(),
    "attention.wv": ColwiseParallel(),
    "attention.wo": RowwiseParallel(output_layouts=BY_TOKEN),
    "norm2": SequenceParallel(),
    "mlp": GATHER,
    "mlp.w1": ColwiseParallel(),
    "mlp.w2": RowwiseParallel(output_layouts=BY_TOKEN),
}
# A rank has some rows of both tables, so a vector may be on any rank: summed and cut by tokens.
EMBEDDING = {
    "token": RowwiseParallel(input_layouts=Replicate(), output_layouts=BY_TOKEN),
    "position": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(0)),
}


def parallelize(model: GPT, mesh: DeviceMesh, tokens: int) -> None:
    """Cut embedding and blocks; the head is whole, and gathers what it is given."""
    assert model.embedding is not None
    # Positions are looked up like tokens, all of them: a table that is cut has no first rows.
    model.embedding.positions = torch.arange(tokens)
    parallelize_module(model.embedding, mesh, EMBEDDING)
    for block in model.blocks.values():
        parallelize_module(block, mesh, BLOCK)
    parallelize_module(model.head, mesh, GATHER_HEAD)


class TensorSequenceParallel:
    """The single process's step; each rank has a part of every block, and all of the head."""

    def __init__(self, context: Context) -> None:
        self.mesh = init_device_mesh("cpu", (context.world_size,), mesh_dim_names=("tp",))
        self.model = build_model(context.shape, context.seed)
        parallelize(self.model, self.mesh, context.shape.tokens)
        self.modules: list[nn.Module] = [self.model]
        # Two groups, because one fused update cannot mix cut and whole parameters.
        cut = [p for p in self.model.parameters() if isinstance(p, DTensor)]
        whole = [p for p in self.model.parameters() if not isinstance(p, DTensor)]
        self.optimizer = AdamW([{"params": cut}, {"params": whole}], lr=context.learning_rate, foreach=True)

    def step(self, batch: Batch) -> Tensor:
        loss = loss_of(self.model(batch.inputs), batch.targets)
        loss.backward()
        self.add_up_norms()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.detach()

    def add_up_norms(self) -> None:
        """Reduce the gradients of all norms at once; the optimizer would reduce each of them, thrice."""
        norms = [
            p
            for block in self.model.blocks.values()
            for norm in (block.norm1, block.norm2)
            for p in norm.parameters()
        ]
        partial = [p.grad.to_local() for p in norms]
        summed = torch.cat(partial)
        dist.all_reduce(summed)
        for p, gradient in zip(norms, summed.split([len(g) for g in partial]), strict=True):
            p.grad = DTensor.from_local(gradient, self.mesh, [Replicate()])


def build(context: Context) -> TensorSequenceParallel:
    return TensorSequenceParallel(context)
