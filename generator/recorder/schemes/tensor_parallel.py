"""Tensor parallelism: every layer is cut across the ranks, by heads and by columns of the MLP.

All ranks work on the same batch. The parts of a layer's output are sums that lack the other ranks'
terms, so forward needs an all-reduce after attention and one after the MLP, and backward needs one
for the input of each: four a layer.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    parallelize_module,
)
from torch.optim import AdamW

from generator.recorder.data import Batch
from generator.recorder.model import build_model, loss_of
from generator.recorder.schemes.base import Context

PLAN = {
    # Without this, the gradients of the inputs of wq, wk and wv are reduced one by one: 6 all-reduces
    # a layer. Here they are summed on the rank first, and the sum is reduced.
    "attention": PrepareModuleInput(input_layouts=(Replicate(),), desired_input_layouts=(Replicate(),)),
    "attention.wq": ColwiseParallel(),
    "attention.wk": ColwiseParallel(),
    "attention.wv": ColwiseParallel(),
    "attention.wo": RowwiseParallel(),
    "mlp.w1": ColwiseParallel(),
    "mlp.w2": RowwiseParallel(),
}


class TensorParallel:
    """The single process's step; each rank has a part of every block, and all of embedding and head."""

    def __init__(self, context: Context) -> None:
        mesh = init_device_mesh("cpu", (context.world_size,), mesh_dim_names=("tp",))
        self.model = build_model(context.shape, context.seed)
        for block in self.model.blocks.values():
            parallelize_module(block, mesh, PLAN)
        self.modules: list[nn.Module] = [self.model]
        # Two groups, because one fused update cannot mix cut and whole parameters.
        cut = [p for p in self.model.parameters() if isinstance(p, DTensor)]
        whole = [p for p in self.model.parameters() if not isinstance(p, DTensor)]
        self.optimizer = AdamW([{"params": cut}, {"params": whole}], lr=context.learning_rate, foreach=True)

    def step(self, batch: Batch) -> Tensor:
        loss = loss_of(self.model(batch.inputs), batch.targets)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.detach()


def build(context: Context) -> TensorParallel:
    return TensorParallel(context)
