"""Calibrations: one for each kind of link that runs use."""

from __future__ import annotations

from generator.recorder.spec import CALIBRATION, RunSpec

SPECS = (
    RunSpec(
        id=CALIBRATION,
        title="The link: 2 Gbit/s for each rank",
        description="How long each collective takes over the link that the other runs use, when no "
        "rank computes: by operation, size and number of members.",
        scheme="calibration",
        kind="calibration",
        module="generator.recorder.calibrate",
        ranks=4,
    ),
)
