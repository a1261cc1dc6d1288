"""Calibrations: one for each kind of link that runs use."""

from __future__ import annotations

from generator.recorder.spec import CALIBRATION, NODES_CALIBRATION, SLOW_CALIBRATION, SLOW_MBIT, RunSpec

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
    RunSpec(
        id=NODES_CALIBRATION,
        title="The link: 2 Gbit/s for each node of two ranks",
        description="How long each collective takes where two ranks share a node and its interface, when "
        "no rank computes: among all four ranks, between the two of a node, and between two nodes while "
        "the other two ranks do the same.",
        scheme="calibration",
        kind="calibration",
        module="generator.recorder.calibrate",
        ranks=4,
        ranks_per_node=2,
    ),
    RunSpec(
        id=SLOW_CALIBRATION,
        title=f"The link: {SLOW_MBIT} Mbit/s for each rank",
        description="How long each collective takes over a slow link, when no rank computes: by "
        "operation, size and number of members.",
        scheme="calibration",
        kind="calibration",
        module="generator.recorder.calibrate",
        ranks=4,
        rate_mbit=SLOW_MBIT,
    ),
)
