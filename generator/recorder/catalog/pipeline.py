"""Pipeline parallelism."""

from __future__ import annotations

from dataclasses import replace

from generator.recorder.spec import SLOW_CALIBRATION, SLOW_MBIT, RunSpec, scheme_module
from generator.runs.manifest import Options, Schedule

_ONE_F_ONE_B = RunSpec(
    id="pp-1f1b",
    title="Pipeline parallelism, 1F1B",
    description="Four stages of two layers each. The batch is cut into eight micro-batches of one "
    "sequence; after a warm-up each stage takes turns, one forward and one backward.",
    scheme="pp",
    mesh={"pp": 4},
    module=scheme_module("pipeline"),
    schedule=Schedule("1F1B", 8),
)
_GPIPE = replace(
    _ONE_F_ONE_B,
    id="pp-gpipe",
    title="Pipeline parallelism, GPipe",
    description="Four stages of two layers each. The batch is cut into eight micro-batches of one "
    "sequence; all forwards come first, then all backwards.",
    schedule=Schedule("GPipe", 8),
)
_INTERLEAVED = replace(
    _ONE_F_ONE_B,
    id="pp-interleaved",
    title="Pipeline parallelism, interleaved 1F1B",
    description="Eight stages of one layer each, two on every rank: rank i has the stages i and 4 + i. A "
    "micro-batch passes all ranks twice, and the pipeline fills in half the time.",
    module=scheme_module("pipeline_chunks"),
    schedule=Schedule("Interleaved1F1B", 8, chunks=2),
)
#: A model whose head takes as long as two and a half layers, and its single process.
_LARGE = {"vocabulary": 8192}
_LARGE_SINGLE = RunSpec(
    id="single-vocabulary",
    title="Single process, vocabulary of 8192",
    description="One process trains the model with a vocabulary of 8192 instead of 1024: the same layers, "
    "but a much larger embedding and head.",
    scheme="single",
    mesh={"dp": 1},
    module=scheme_module("single"),
    rate_mbit=0,
    partner="",
    shape=_LARGE,
)
_UNEQUAL = replace(
    _ONE_F_ONE_B,
    id="pp-unequal",
    title="1F1B, equal layers, unequal stages",
    description="The model has a vocabulary of 8192, and its head takes as long as two and a half layers. "
    "Cut into four stages of two layers each, the last stage has more than twice the work of the others.",
    options=Options(layers_per_stage=(2, 2, 2, 2)),
    partner=_LARGE_SINGLE.id,
    shape=_LARGE,
)

SPECS = (
    _GPIPE,
    _ONE_F_ONE_B,
    _INTERLEAVED,
    replace(
        _INTERLEAVED,
        id="pp-interleaved-zb",
        title="Pipeline parallelism, interleaved zero bubble",
        description="The stages of the interleaved schedule. Backward is cut in two: first the gradient of a "
        "stage's input, which the stage before waits for, then, in what would be gaps, those of its weights.",
        schedule=Schedule("InterleavedZeroBubble", 8, chunks=2),
    ),
    replace(
        _INTERLEAVED,
        id="pp-zbv",
        title="Pipeline parallelism, ZB-V",
        description="Eight stages of one layer each, two on every rank: rank i has the stages i and 7 - i. A "
        "micro-batch goes down the ranks and back up. Backward is cut in two, and weights fill the gaps.",
        schedule=Schedule("ZBVZeroBubble", 8, chunks=2),
    ),
    replace(
        _INTERLEAVED,
        id="pp-dualpipev",
        title="Pipeline parallelism, DualPipeV",
        description="The stages of ZB-V. In its steady state each rank pairs the forward of one micro-batch "
        "with the backward of another.",
        schedule=Schedule("DualPipeV", 8, chunks=2),
    ),
    _LARGE_SINGLE,
    _UNEQUAL,
    replace(
        _UNEQUAL,
        id="pp-balanced",
        title="1F1B, unequal layers, equal stages",
        description="The model with a vocabulary of 8192, cut by measured times: two layers on the first "
        "stage, three on each of the next two, and on the last only the head.",
        # A layer takes 9.9 ms a micro-batch, the head 24 ms and the embedding 1 ms: the longest stage then
        # has 29.7 ms, and no other cut has less.
        options=Options(layers_per_stage=(2, 3, 3, 0)),
    ),
    *(
        replace(
            spec,
            id=f"{spec.id}-slow",
            title=f"{spec.title}, slow link",
            description=f"{spec.description} The link is slow ({SLOW_MBIT} Mbit/s): a message takes as long "
            "as a forward.",
            rate_mbit=SLOW_MBIT,
            calibration=SLOW_CALIBRATION,
        )
        for spec in (_GPIPE, _ONE_F_ONE_B)
    ),
)
