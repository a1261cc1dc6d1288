"""What an operator is told and gives: shapes, bytes, and the floating-point operations of matrix products."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry, sdpa_backward_flop_count, sdpa_flop_count

_aten = torch.ops.aten
#: Flash attention on CPU, which torch's own counter does not know (torch 2.13). Both count the full
#: square of a causal mask; backward computes the scores again, so it has five products for two.
_FLASH = _aten._scaled_dot_product_flash_attention_for_cpu
_FLASH_BACKWARD = _aten._scaled_dot_product_flash_attention_for_cpu_backward


def describe(func: Any, args: Any, kwargs: Any, result: Any) -> dict[str, Any]:
    """Shapes of an operator's tensors, bytes that they hold in all, and its FLOPs where it has any."""
    given = [v for v in tree_leaves((args, kwargs)) if isinstance(v, Tensor)]
    made = [v for v in tree_leaves(result) if isinstance(v, Tensor)]
    told: dict[str, Any] = {
        "shapes": [list(t.shape) for t in given],
        "bytes": sum(t.numel() * t.element_size() for t in (*given, *made)),
    }
    if flops := count_flops(func, args, kwargs, result):
        told["flops"] = flops
    place = {_FLASH: 4, _FLASH_BACKWARD: 7}.get(func.overloadpacket)
    if place is not None:
        # What the FLOPs do not say: of a causal mask they count the full square.
        told["causal"] = bool(args[place] if len(args) > place else kwargs.get("is_causal", False))
    return told


def count_flops(func: Any, args: Any, kwargs: Any, result: Any) -> int:
    """FLOPs of one operator; 0 for those that are no matrix product."""
    packet = func.overloadpacket
    if packet is _FLASH:
        return int(sdpa_flop_count(*(t.shape for t in args[:3])))
    if packet is _FLASH_BACKWARD:
        gradient, query, key, value = (t.shape for t in args[:4])
        return int(sdpa_backward_flop_count(gradient, query, key, value))
    if packet in flop_registry:
        return int(flop_registry[packet](*args, **kwargs, out_val=result))
    return 0
