"""Which closed form speaks of which measure of which run, and how near the two should come.

The page of validation and the tests read this one list.
"""

from __future__ import annotations

from generator.lessons.comparing import Comparison

_N = "world_size()"
_STAGES = "stages() / chunks(), microbatches()"
#: Parameters of embedding and head, which are FSDP's root: all that is not in blocks.
_ROOT = "parameters() - layers() * block_parameters(d_model())"
_BS = "sequences() * tokens()"
_SHAPE = "sequences(), tokens(), d_model()"
_BY_LAYER = "layers() * element_size()"
#: What the head saves for backward: its norm's input and output, two numbers a token, the log-softmax.
_HEAD = f"{_BS} * (2 * d_model() + 2 + vocabulary())"
_STATE = " + ".join(
    f"memory(rank=0, category='{c}', at='optimizer')" for c in ("parameters", "gradients", "optimizer")
)
_ACTIVATIONS = "peak_memory(rank=0, category='activations')"
_STEPS_KEPT = "Adam also keeps the number of its step, and ZeRO’s shards are padded."
_FOR_A_MOMENT = "The formula counts what is saved for backward, not what lives for a moment."
_UNEQUAL = "Stages are not equal, the last one has head and loss; and messages take time."
#: What all ranks do in forward and backward at unit cost: 3 for each micro-batch and stage of a rank.
_BUSY = "(3 * microbatches() * chunks())"
_ONE_FORWARD_ONE_BACKWARD = ("pp-1f1b", "pp-unequal", "pp-balanced", "pp-1f1b-slow")
_ONE_STAGE = ("pp-gpipe", "pp-gpipe-slow", *_ONE_FORWARD_ONE_BACKWARD)
_FSDP = ("fsdp", "fsdp-no-prefetch", "fsdp-nodes")

COMPARISONS: tuple[Comparison, ...] = (
    # ---- calls
    Comparison(
        "All-gathers of FSDP",
        "fsdp_all_gathers(units())",
        "count(op='all_gather', rank=0)",
        (*_FSDP, "hsdp", "fsdp-tp"),
    ),
    Comparison(
        "Reduce-scatters of FSDP",
        "fsdp_reduce_scatters(units())",
        "count(op='reduce_scatter', rank=0)",
        ("zero2", *_FSDP, "hsdp", "fsdp-tp"),
    ),
    Comparison(
        "All-reduces of tensor parallelism",
        "tp_all_reduces(layers())",
        "count(op='all_reduce', rank=0)",
        ("tp", "fsdp-tp"),
    ),
    Comparison(
        "Messages of an all-reduce by hand, around a ring",
        f"{_N} * ring_all_reduce_steps({_N})",
        "count(op='send')",
        ("ring-all-reduce",),
    ),
    Comparison(
        "Messages of ring attention",
        f"layers() * {_N} * cp_ring_messages({_N})",
        "count(op='send')",
        ("cp-ring", "cp-ring-zigzag"),
    ),
    Comparison(
        "Messages of a pipeline",
        f"pipeline_messages({_STAGES}, chunks())",
        "count(op='send')",
        (*_ONE_STAGE, "pp-interleaved", "pp-interleaved-zb"),
    ),
    Comparison(
        "Messages of a pipeline in a V, whose turn needs none",
        f"pipeline_messages({_STAGES}, chunks()) - 2 * microbatches()",
        "count(op='send')",
        ("pp-zbv", "pp-dualpipev"),
    ),
    # ---- bytes
    Comparison(
        "Bytes a rank sends to reduce gradients under DDP",
        f"element_size() * ddp_wire_elements(parameters(), {_N})",
        "wire_bytes(rank=0)",
        ("ddp", "ddp-tiny-buckets", "ddp-one-bucket", "ddp-accumulate"),
        unit="MB",
    ),
    Comparison(
        "The same, reduced for each micro-batch",
        f"microbatches() * element_size() * ddp_wire_elements(parameters(), {_N})",
        "wire_bytes(rank=0)",
        ("ddp-accumulate-sync",),
        unit="MB",
    ),
    Comparison(
        "Bytes a rank sends under ZeRO-1 and ZeRO-2",
        f"element_size() * zero1_wire_elements(parameters(), {_N})",
        "wire_bytes(rank=0)",
        ("zero1", "zero2"),
        unit="MB",
    ),
    Comparison(
        "Bytes a rank sends under PyTorch’s own ZeRO-1",
        f"element_size() * zero1_library_wire_elements(parameters(), {_N})",
        "wire_bytes(rank=0)",
        ("zero1-library",),
        unit="MB",
    ),
    Comparison(
        "Bytes a rank sends under FSDP",
        f"element_size() * fsdp_wire_elements(parameters(), {_ROOT}, {_N})",
        "wire_bytes(rank=0)",
        _FSDP,
        unit="MB",
    ),
    Comparison(
        "Bytes that leave a node under HSDP",
        "element_size() * hsdp_egress_elements(parameters(), mesh_size(axis='dp'))",
        "egress_bytes(node=0)",
        ("hsdp",),
        unit="MB",
    ),
    Comparison(
        "Bytes a rank sends under tensor parallelism",
        f"{_BY_LAYER} * tp_wire_elements({_SHAPE}, {_N})",
        "wire_bytes(rank=0)",
        ("tp",),
        unit="MB",
    ),
    Comparison(
        "Bytes a rank sends for one layer under sequence parallelism",
        f"element_size() * sp_wire_elements({_SHAPE}, {_N}, 1)",
        "wire_bytes(rank=0, layer=3)",
        ("tp-sp",),
        unit="MB",
    ),
    Comparison(
        "Bytes a rank sends in ring attention",
        f"{_BY_LAYER} * cp_ring_wire_elements({_SHAPE}, {_N})",
        "wire_bytes(rank=0, op='send')",
        ("cp-ring", "cp-ring-zigzag"),
        unit="MB",
    ),
    Comparison(
        "Bytes a rank sends in the all-to-alls of Ulysses",
        f"{_BY_LAYER} * cp_ulysses_wire_elements({_SHAPE}, {_N})",
        "wire_bytes(rank=0, op='all_to_all')",
        ("cp-ulysses",),
        unit="MB",
    ),
    Comparison(
        "Bytes a rank sends to experts and back",
        f"{_BY_LAYER} * ep_wire_elements({_BS} / {_N}, d_model(), {_N})",
        "wire_bytes(rank=0, op='all_to_all')",
        ("ep-balanced",),
        within=1e-4,
        leaves_out="Before each dispatch ranks tell each other how many tokens will come.",
        unit="MB",
    ),
    # ---- schedules
    Comparison(
        "Micro-batches in flight on the second stage of 1F1B",
        f"pipeline_in_flight({_STAGES}, 1)",
        "in_flight(rank=1)",
        _ONE_FORWARD_ONE_BACKWARD,
    ),
    Comparison(
        "The same of interleaved 1F1B, on both stages of the second rank",
        f"interleaved_in_flight({_STAGES}, chunks(), 1)",
        "in_flight(rank=1)",
        ("pp-interleaved",),
    ),
    Comparison(
        "The same of ZB-V",
        "zbv_in_flight(stages() / chunks())",
        "in_flight(rank=1)",
        ("pp-zbv",),
    ),
    Comparison(
        "The same of DualPipeV",
        "dualpipev_in_flight(stages() / chunks())",
        "in_flight(rank=1)",
        ("pp-dualpipev",),
    ),
    Comparison(
        "Step of GPipe and of both kinds of 1F1B at unit cost",
        f"pipeline_step_time({_STAGES}, chunks(), 2 * chunks(), chunks())",
        "step_time() / ns",
        ("pp-gpipe", "pp-1f1b", "pp-interleaved", "3d"),
        at_unit_cost=True,
    ),
    Comparison(
        "Bubble fraction of GPipe and 1F1B at unit cost",
        f"pipeline_bubble_fraction({_STAGES})",
        "bubble_fraction()",
        ("pp-gpipe", "pp-1f1b", "pp-gpipe-slow", "pp-1f1b-slow", "3d"),
        unit="%",
        at_unit_cost=True,
    ),
    Comparison(
        "Bubble fraction of interleaved 1F1B at unit cost",
        f"interleaved_bubble_fraction({_STAGES}, chunks())",
        "bubble_fraction()",
        ("pp-interleaved",),
        unit="%",
        at_unit_cost=True,
    ),
    Comparison(
        "Bubble overhead of interleaved zero bubble at unit cost",
        f"zero_bubble_idle(stages() / chunks(), 1, 1, 1) / {_BUSY}",
        "bubble_overhead()",
        ("pp-interleaved-zb",),
        unit="%",
        at_unit_cost=True,
    ),
    Comparison(
        "Bubble overhead of ZB-V at unit cost",
        f"zbv_idle(stages() / chunks(), 1) / {_BUSY}",
        "bubble_overhead()",
        ("pp-zbv",),
        unit="%",
        at_unit_cost=True,
    ),
    Comparison(
        "Bubble overhead of DualPipeV at unit cost",
        f"dualpipev_idle(stages() / chunks(), 1, 1, 1) / {_BUSY}",
        "bubble_overhead()",
        ("pp-dualpipev",),
        unit="%",
        at_unit_cost=True,
    ),
    Comparison(
        "Bubble fraction of GPipe and 1F1B as reconstructed",
        f"pipeline_bubble_fraction({_STAGES})",
        "bubble_fraction()",
        (*_ONE_STAGE, "3d"),
        within=None,
        leaves_out=_UNEQUAL,
        unit="%",
    ),
    Comparison(
        "Bubble fraction of interleaved 1F1B as reconstructed",
        f"interleaved_bubble_fraction({_STAGES}, chunks())",
        "bubble_fraction()",
        ("pp-interleaved",),
        within=None,
        leaves_out=_UNEQUAL,
        unit="%",
    ),
    # ---- memory
    Comparison(
        "Parameters, gradients and Adam’s state where every rank has all of them",
        "adam_state_bytes(parameters())",
        _STATE,
        ("single", "accumulation", "ddp", "ddp-one-bucket", "ddp-accumulate"),
        within=0.005,
        leaves_out=_STEPS_KEPT,
        unit="MB",
    ),
    Comparison(
        "The same of a rank under ZeRO-1",
        f"zero_state_bytes(parameters(), {_N}, 1)",
        _STATE,
        ("zero1", "zero1-library"),
        within=0.005,
        leaves_out=_STEPS_KEPT,
        unit="MB",
    ),
    Comparison(
        "The same of a rank under ZeRO-3, and HSDP within a node",
        "zero_state_bytes(parameters(), mesh_size(axis='shard'), 3)",
        _STATE,
        (*_FSDP, "hsdp"),
        within=0.005,
        leaves_out=_STEPS_KEPT,
        unit="MB",
    ),
    Comparison(
        "Activations of one process",
        f"element_size() * model_saved_elements({_SHAPE}, heads(), layers(), vocabulary())",
        _ACTIVATIONS,
        ("single", "single-vocabulary", "single-long"),
        within=0.005,
        leaves_out=_FOR_A_MOMENT,
        unit="MB",
    ),
    Comparison(
        "Activations of a rank under tensor parallelism",
        f"element_size() * (layers() * tp_saved_elements({_SHAPE}, heads(), {_N}) + {_HEAD})",
        _ACTIVATIONS,
        ("tp",),
        within=0.005,
        leaves_out=_FOR_A_MOMENT,
        unit="MB",
    ),
    Comparison(
        "The same with sequence parallelism",
        f"element_size() * (layers() * sp_saved_elements({_SHAPE}, heads(), {_N}, 1) + {_HEAD})",
        _ACTIVATIONS,
        ("tp-sp",),
        within=0.005,
        leaves_out=_FOR_A_MOMENT,
        unit="MB",
    ),
    Comparison(
        "Activations where each block is computed again",
        f"element_size() * recomputed_saved_elements({_SHAPE}, heads(), layers())",
        _ACTIVATIONS,
        ("recompute-reentrant", "recompute-early-stop"),
        within=0.005,
        leaves_out=_FOR_A_MOMENT,
        unit="MB",
    ),
    # ---- computation
    Comparison(
        "Operations of all blocks in forward",
        f"layers() * block_forward_flops({_SHAPE})",
        "flops(phase='forward', module='block')",
        ("single", "single-long"),
        unit="GFLOP",
    ),
    Comparison(
        "Operations of backward over forward, with flash attention",
        "flash_backward_over_forward(tokens(), d_model())",
        "flops(phase='backward', module='block') / flops(phase='forward', module='block')",
        ("single", "single-long"),
    ),
    Comparison(
        "Operations of computing every block again",
        f"layers() * block_recompute_flops({_SHAPE}, 0)",
        "flops() - flops(run='single')",
        ("recompute-reentrant",),
        unit="GFLOP",
    ),
    Comparison(
        "The same where PyTorch stops early",
        f"layers() * block_recompute_flops({_SHAPE}, 1)",
        "flops() - flops(run='single')",
        ("recompute-early-stop",),
        unit="GFLOP",
    ),
    Comparison(
        "Operations of a step that the model needs",
        f"step_flops({_SHAPE}, layers(), vocabulary())",
        "flops()",
        ("single", "single-long"),
        within=0.1,
        leaves_out="Flash attention computes its scores again in backward.",
        unit="GFLOP",
    ),
    Comparison(
        "Time of backward over forward",
        "backward_over_forward()",
        "busy(phase='backward') / busy(phase='forward')",
        ("single", "single-long", "single-vocabulary"),
        within=None,
        leaves_out="Flash attention computes scores again, and not all time goes into matrix products.",
    ),
    Comparison(
        "Extra time of computing every block again",
        "recompute_overhead(tokens(), d_model(), 0)",
        "busy() / busy(run='single') - 1",
        ("recompute-reentrant",),
        within=None,
        leaves_out="The formula counts operations of blocks; a step also has embedding, head and optimizer.",
        unit="%",
    ),
    Comparison(
        "Extra time where PyTorch stops early",
        "recompute_overhead(tokens(), d_model(), 1)",
        "busy() / busy(run='single') - 1",
        ("recompute-early-stop",),
        within=None,
        leaves_out="The formula counts operations of blocks; a step also has embedding, head and optimizer.",
        unit="%",
    ),
)
