"""Phases and layers of a step, seen from outside: hooks on modules and tensors, wrapped methods.

A scheme's source has no instrumentation; a probe is attached to the scheme after it is built.

* Phases: forward from the outermost module's call until backward is asked for; backward; optimizer
  until the gradients are cleared. In a pipeline, the stage's own methods for one micro-batch.
* Layers: embedding, blocks and head. Forward: the module's call, with whatever hooks a scheme has put
  around it (FSDP's all-gather of a block is part of that block). Backward: from the gradient of a
  block's output to the gradient of the next one's; the head begins with the loss.
* Recomputation: where backward runs a block's forward again, a layer of its own inside that block's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.pipelining.schedules import _PipelineSchedule
from torch.distributed.pipelining.stage import _PipelineStageBase

from generator.recorder.log import Arguments, EventLog, Span
from generator.recorder.model import GPT, Block
from generator.recorder.schemes.base import Scheme


class Probe:
    """Turns what a scheme does into phases and layers of an event log."""

    def __init__(self, log: EventLog, *, microbatches: int = 0) -> None:
        self.log = log
        #: Micro-batches whose gradients a step adds up; 0 where phases have no number.
        self._microbatches = microbatches
        self._microbatch = -1
        self._phase: Span | None = None
        self._layer: Span | None = None
        #: What the log says of the open layer.
        self._place: Arguments = {}
        #: The layer in which backward begins: the last one of each model that is here, and of all.
        self._deepest_of: dict[nn.Module, Arguments] = {}
        self._deepest: Arguments = {}
        #: The layer of each parameter, by identity.
        self._layer_of: dict[int, Arguments] = {}

    def attach(self, scheme: Scheme) -> None:
        """Watch a scheme, for the rest of the process."""
        models = [m for module in scheme.modules for m in module.modules() if isinstance(m, GPT)]
        for model in models:
            for arguments, module in _layers(model):
                self._watch_layer(module, arguments)
                self._deepest = self._deepest_of[model] = arguments
                self._layer_of |= {id(parameter): arguments for parameter in module.parameters()}
        if hasattr(scheme, "schedule"):
            self._watch_stages()
        else:
            self._watch_step(scheme.modules[0])
        if scheme.optimizer is not None:
            self._watch_optimizer(scheme.optimizer)

    def begin_phase(self, name: str, place: Arguments) -> None:
        """End the phase that is open and begin another; `place` is micro-batch and chunk, or empty."""
        self.end_phase()
        self._phase = self.log.begin(name, "user_annotation", {"phase": name, **place})
        self.log.boundary()

    def end_step(self) -> None:
        """End what is open, and count micro-batches from the first again."""
        self.end_phase()
        self._microbatch = -1

    def end_phase(self) -> None:
        """End the open phase and its layer, if any."""
        self.end_layer()
        if self._phase is not None:
            self.log.boundary()
            self.log.end(self._phase)
            self._phase = None

    def begin_layer(self, arguments: Arguments) -> None:
        """End the layer that is open and begin another inside the open phase.

        Backward begins in a stage's last layer, whose tensor hook then says so again: no new layer.
        """
        if self._layer is not None and self._place is arguments:
            return
        self.end_layer()
        if self._phase is None:
            return
        self._place = arguments
        inherited = {k: v for k, v in self._phase.arguments.items() if k != "step"}
        name = f"layer {arguments['layer']}" if "layer" in arguments else arguments["module"]
        self._layer = self.log.begin(name, "user_annotation", {**inherited, **arguments})
        self.log.boundary()

    def end_layer(self) -> None:
        """End the open layer, if any."""
        if self._layer is not None:
            self.log.boundary()
            self.log.end(self._layer)
            self._layer = None

    def _watch_layer(self, module: nn.Module, arguments: Arguments) -> None:
        def before(*_: Any) -> None:
            self.begin_layer(arguments)

        def output_known(_: nn.Module, inputs: Any, output: Tensor) -> None:
            # In backward, the gradient of this output is where this layer begins.
            self.log.boundary()
            if output.requires_grad:
                output.register_hook(lambda gradient: self.begin_layer(arguments))

        def after(*_: Any) -> None:
            self.end_layer()

        # First and last of all hooks, so that a scheme's own fall inside; the tensor hook before a
        # scheme's, so that what these do at the start of a layer's backward belongs to that layer.
        module.register_forward_pre_hook(before, prepend=True)
        if arguments["module"] != "head":
            module.register_forward_hook(output_known, prepend=True)
            module.register_forward_hook(after)
        # The head has no end of its own in forward: the loss belongs to it.
        for inner in module.modules():
            if isinstance(inner, Block) and inner is not module:
                self._watch_recomputation(inner, arguments)

    def _watch_recomputation(self, block: nn.Module, arguments: Arguments) -> None:
        """A block inside a module that may run it again in backward."""
        again: list[Span | None] = []

        def before(*_: Any) -> None:
            if self._phase is not None and self._phase.name == "backward" and self._layer is not None:
                told = {k: v for k, v in self._layer.arguments.items() if k != "step"}
                name = f"recompute layer {arguments['layer']}"
                again.append(self.log.begin(name, "user_annotation", {**told, "recompute": True}))
                self.log.boundary()

        def after(*_: Any) -> None:
            if again:
                self.log.boundary()
                self.log.end(again.pop())

        block.register_forward_pre_hook(before, prepend=True)
        # Always: recomputation that stops early leaves the block by an exception.
        block.register_forward_hook(after, always_call=True)

    def _watch_step(self, outermost: nn.Module) -> None:
        def before(*_: Any) -> None:
            self._microbatch += 1
            self.begin_phase("forward", self._numbered())

        outermost.register_forward_pre_hook(before, prepend=True)
        original = Tensor.backward

        def backward(tensor: Tensor, *values: Any, **named: Any) -> None:
            self.begin_phase("backward", self._numbered())
            self.begin_layer(self._deepest)
            original(tensor, *values, **named)
            self.end_phase()

        Tensor.backward = backward

    def _numbered(self) -> Arguments:
        return {"microbatch": self._microbatch} if self._microbatches else {}

    def _watch_stages(self) -> None:
        """A pipeline's phases, by micro-batch. The loss is computed after the last stage's forward."""
        stage = _PipelineStageBase

        def forward_begins(stage: Any, microbatch: int, *_: Any, **__: Any) -> None:
            self.begin_phase("forward", {"microbatch": microbatch, "chunk": stage.stage_index})

        def forward_ends(stage: Any, *_: Any, **__: Any) -> None:
            if not stage.is_last:
                self.end_phase()

        def backward_begins(stage: Any, microbatch: int, *_: Any, **named: Any) -> None:
            name = "backward" if named.get("full_backward", True) else "backward_input"
            self.begin_phase(name, {"microbatch": microbatch, "chunk": stage.stage_index})
            self.begin_layer(self._deepest_of[stage.submod])

        def weights_begin(stage: Any, microbatch: int, *_: Any, **__: Any) -> None:
            self.begin_phase("backward_weight", {"microbatch": microbatch, "chunk": stage.stage_index})

        def ends(*_: Any, **__: Any) -> None:
            self.end_phase()

        _around(stage, "forward_one_chunk", forward_begins, forward_ends)
        _around(stage, "backward_one_chunk", backward_begins, ends)
        _around(stage, "backward_weight_one_chunk", weights_begin, ends)
        _around(_PipelineSchedule, "_maybe_compute_loss", None, ends)
        self._watch_weight_gradients()

    def _watch_weight_gradients(self) -> None:
        """The weights' part of a backward asks for gradients of one layer after the other."""

        def gradients_begin(*values: Any, **named: Any) -> None:
            if self._phase is not None and self._phase.name == "backward_weight":
                first = next(iter(named["inputs"] if "inputs" in named else values[1]))
                parameter = getattr(getattr(first, "node", None), "variable", None)
                if (layer := self._layer_of.get(id(parameter))) is not None:
                    self.begin_layer(layer)

        _around(torch.autograd, "grad", gradients_begin, None)

    def _watch_optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        def begins(*_: Any, **__: Any) -> None:
            self.begin_phase("optimizer", {})

        def ends(*_: Any, **__: Any) -> None:
            self.end_phase()

        _around(optimizer, "step", begins, None)
        _around(optimizer, "zero_grad", None, ends)


def _layers(model: GPT) -> list[tuple[Arguments, nn.Module]]:
    """The layers of a model or a slice of one, in order of forward, with what the log says of them."""
    layers: list[tuple[Arguments, nn.Module]] = []
    if model.embedding is not None:
        layers.append(({"module": "embedding"}, model.embedding))
    for name, block in model.blocks.items():
        layers.append(({"module": "block", "layer": int(name)}, block))
    if model.head is not None:
        layers.append(({"module": "head"}, model.head))
    return layers


def _around(
    owner: Any, name: str, before: Callable[..., None] | None, after: Callable[..., None] | None
) -> None:
    """Replace a method by itself with something before and something after it."""
    original = getattr(owner, name)

    def wrapped(*values: Any, **named: Any) -> Any:
        if before is not None:
            before(*values, **named)
        result = original(*values, **named)
        if after is not None:
            after(*values, **named)
        return result

    setattr(owner, name, wrapped)
