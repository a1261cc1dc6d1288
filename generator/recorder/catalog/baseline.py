"""One process: the measure of all other runs, and what one device can do about its memory."""

from __future__ import annotations

from dataclasses import replace

from generator.recorder.spec import RunSpec, scheme_module
from generator.runs.manifest import Options

_SINGLE = RunSpec(
    id="single",
    title="Single process",
    description="One process trains the model on the whole batch. There is no communication. "
    "All other runs train the same model on the same batches and must reach the same losses.",
    scheme="single",
    mesh={"dp": 1},
    module=scheme_module("single"),
    rate_mbit=0,
    partner="",
)

_RECOMPUTE = RunSpec(
    id="recompute-reentrant",
    title="Activation recomputation, whole blocks",
    description="One process keeps only the input of every block and runs the block's forward again "
    "in backward, all of it (reentrant checkpointing). A third more FLOPs, far fewer activations.",
    scheme="recompute",
    mesh={"dp": 1},
    module=scheme_module("recompute"),
    options=Options(recompute="reentrant"),
    rate_mbit=0,
)

SPECS = (
    _SINGLE,
    _RECOMPUTE,
    replace(
        _RECOMPUTE,
        id="recompute-early-stop",
        title="Activation recomputation, stopped early",
        description="One process keeps only the input of every block and runs the block's forward again "
        "in backward, until all that backward needs is there (PyTorch's default): the last matrix "
        "product of each block is not computed again.",
        options=Options(recompute="early-stop"),
    ),
    RunSpec(
        id="accumulation",
        title="Gradient accumulation",
        description="One process trains on the whole batch, one sequence at a time: eight forwards and "
        "backwards add up gradients for one update. Activations are those of a single sequence.",
        scheme="accumulation",
        mesh={"dp": 1},
        module=scheme_module("accumulation"),
        options=Options(accumulation=8),
        rate_mbit=0,
    ),
)
