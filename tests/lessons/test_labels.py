"""Where a metric's number comes from."""

from __future__ import annotations

import pytest

from generator.lessons.vocabulary import metric_label
from generator.timeline.metrics import METRICS


@pytest.mark.parametrize(
    ("name", "isolated", "recorded"),
    [
        ("step_time", "reconstructed", "recorded"),
        ("exposed_comm", "reconstructed", "recorded"),
        ("count", "recorded", "recorded"),
        ("peak_memory", "recorded", "recorded"),
        ("wire_bytes", "formula", "formula"),
    ],
)
def test_an_origin_of_its_own_holds_in_either_mode(name: str, isolated: str, recorded: str) -> None:
    assert metric_label(METRICS[name], "isolated") == isolated
    assert metric_label(METRICS[name], "recorded") == recorded
