"""One process: the measure of all other runs."""

from __future__ import annotations

from generator.recorder.spec import RunSpec, scheme_module

SPECS = (
    RunSpec(
        id="single",
        title="Single process",
        description="One process trains the model on the whole batch. There is no communication. "
        "All other runs train the same model on the same batches and must reach the same losses.",
        scheme="single",
        mesh={"dp": 1},
        module=scheme_module("single"),
        rate_mbit=0,
        partner="",
    ),
)
