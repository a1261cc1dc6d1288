"""Memory of a rank by category, from the storages of its own tensors, and every operation it runs.

For one step, a dispatch mode sees every storage that is made, and a finaliser tells when it goes; a
storage that is resized in place (as FSDP frees and fills its gathered parameters) is seen too. What a
storage holds is decided afterwards, by all that was ever seen of it, and then holds from its birth:

* parameters: a parameter's storage, whole, sharded or gathered;
* gradients: the storage of a parameter's `.grad`, also before it was put there;
* optimizer: the optimizer's state;
* activations: saved by autograd for backward, and no parameter;
* communication: sent or filled by a call, and none of the above;
* other: the rest, such as results on their way and temporaries.

The mode makes the step slower, so no times are taken from this step.
"""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks
from torch.distributed.tensor import DTensor
from torch.utils import checkpoint
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.weak import WeakIdKeyDictionary

from generator.recorder.curve import (
    ACTIVATIONS,
    COMMUNICATION,
    GRADIENTS,
    OPTIMIZER,
    OTHER,
    PARAMETERS,
    Holding,
    memory_curve,
)
from generator.recorder.log import EventLog, wall_ns
from generator.recorder.operations import describe
from generator.recorder.schemes.base import Scheme


def local(tensor: Tensor) -> Tensor:
    """The plain tensor that a rank holds of it: the shard of a distributed one, else itself."""
    inner = getattr(tensor, "_local_tensor", getattr(tensor, "elem", None))
    return tensor if inner is None else local(inner)


class MemoryProbe:
    """A context manager around one step that puts the memory curve into the log."""

    def __init__(self, log: EventLog, scheme: Scheme) -> None:
        self.log = log
        self.scheme = scheme
        self._begin_ns = 0
        self._boundaries: list[int] = []
        self._all: list[Holding] = []
        #: The living, by storage.
        self._living: Any = WeakIdKeyDictionary()
        self._hooked: dict[int, Tensor] = {}
        self._mode = _Watch(self)
        self._saved = saved_tensors_hooks(self._pack, lambda kept: kept)
        self._resize = torch.UntypedStorage.resize_
        self._recomputed: Any = checkpoint._recomputation_hook

    def __enter__(self) -> None:
        self._begin_ns = wall_ns()
        self._look_around()
        self.log.boundaries.append(self._boundary)
        self.log.buffers.append(self._communicated)
        self._replace_resize()
        self._replace_recomputation()
        self._saved.__enter__()
        self._mode.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._mode.__exit__(*error)
        self._saved.__exit__(*error)
        torch.UntypedStorage.resize_ = self._resize
        checkpoint._recomputation_hook = self._recomputed
        self.log.boundaries.remove(self._boundary)
        self.log.buffers.remove(self._communicated)
        self.log.memory += memory_curve(self._all, self._boundaries, self._begin_ns)

    def hold(self, tensor: Tensor, category: int = OTHER, *, made: bool = False) -> None:
        """Note a tensor's storage; `made` says that an operator has just made it."""
        plain = local(tensor)
        if plain.device.type == "cpu":
            self._holding(plain.untyped_storage(), made=made).earn(category)

    def _holding(self, storage: Any, *, made: bool) -> Holding:
        known: Holding | None = self._living.get(storage)
        if known is not None:
            return known
        holding = self._living[storage] = Holding(found=not made)
        holding.resize(wall_ns(), storage.nbytes())
        self._all.append(holding)
        weakref.finalize(storage, lambda: holding.end(wall_ns())).atexit = False
        return holding

    def _look_around(self) -> None:
        """Note parameters, gradients and optimizer state, which no operator announces."""
        for module in self.scheme.modules:
            for parameter in module.parameters():
                self.hold(parameter, PARAMETERS)
                self._note_gradient(parameter)
                if parameter.requires_grad and id(parameter) not in self._hooked:
                    self._hooked[id(parameter)] = parameter
                    parameter.register_post_accumulate_grad_hook(self._note_gradient)
        optimizer = self.scheme.optimizer
        # ZeroRedundancyOptimizer has its state in the optimizer of this rank's parameters.
        held = getattr(optimizer, "optim", optimizer)
        for state in held.state.values() if held is not None else ():
            for value in state.values():
                if isinstance(value, Tensor):
                    self.hold(value, OPTIMIZER)

    def _note_gradient(self, parameter: Tensor) -> None:
        if parameter.grad is not None:
            self.hold(parameter.grad, GRADIENTS)

    def _boundary(self) -> None:
        self._look_around()
        self._boundaries.append(wall_ns())

    def _communicated(self, tensors: Any) -> None:
        for value in tree_leaves(tensors):
            if isinstance(value, Tensor):
                self.hold(value, COMMUNICATION)

    def _pack(self, tensor: Tensor) -> Tensor:
        self.hold(tensor, ACTIVATIONS)
        # Not the tensor itself: an output that its own node keeps would never be freed.
        return tensor.detach()

    def _replace_resize(self) -> None:
        original, probe = self._resize, self

        def resize_(storage: Any, size: int) -> Any:
            holding = probe._holding(storage, made=False)
            result = original(storage, size)
            holding.resize(wall_ns(), storage.nbytes())
            return result

        torch.UntypedStorage.resize_ = resize_

    def _replace_recomputation(self) -> None:
        """See what is saved in a forward that is run again; it is saved through hooks of its own."""
        probe = self

        class Seen(self._recomputed):  # type: ignore[name-defined]
            def __init__(self, *values: Any, **named: Any) -> None:
                super().__init__(*values, **named)
                keep: Any = self.pack_hook  # type: ignore[has-type]

                def pack(tensor: Tensor) -> Any:
                    probe.hold(tensor, ACTIVATIONS)
                    return keep(tensor)

                self.pack_hook = pack

        checkpoint._recomputation_hook = Seen


class _Watch(TorchDispatchMode):
    """Shows every operator's tensors to the probe."""

    def __init__(self, probe: MemoryProbe) -> None:
        super().__init__()
        self.probe = probe

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if any(issubclass(t, DTensor) or t.__name__ == "AsyncCollectiveTensor" for t in types):
            # The subclass does its work first; what it does comes here again, with plain tensors.
            return NotImplemented
        for value in tree_leaves((args, kwargs)):
            if isinstance(value, Tensor):
                self.probe.hold(value)
        # Detaching computes nothing, and most of it is the probe's own.
        detaches = func.overloadpacket is torch.ops.aten.detach
        span = None if detaches else self.probe.log.begin(func.name(), "cpu_op", {})
        result = func(*args, **kwargs)
        if span is not None:
            self.probe.log.end(span)
            span.arguments.update(describe(func, args, kwargs, result))
        for value in tree_leaves(result):
            if isinstance(value, Tensor):
                self.probe.hold(value, made=True)
        return result
