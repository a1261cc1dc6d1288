"""Numbers as readers see them."""

from __future__ import annotations

import pytest

from generator.publish import show
from generator.units import MINUS

T = show.THIN


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (show.number(1081.45, 1), f"1{T}081.5"),
        (show.number(-0.04, 1), "0.0"),
        (show.number(-2.25, 1), f"{MINUS}2.3"),
        (show.number(float("inf")), "–"),
        (show.integer(6857216), f"6{T}857{T}216"),
        (show.time(526_100_000), f"526.1{T}ms"),
        (show.time(12_345), f"0.012{T}ms"),
        (show.size(11_400), f"11.4{T}kB"),
        (show.size(512), f"512{T}B"),
        (show.percent(0.264), f"26.4{T}%"),
        (show.power(1.6e-7), "1.6 × 10⁻⁷"),
        (show.power(9.99e-8), "1.0 × 10⁻⁷"),
        (show.power(0.0), "0"),
        (show.power(-3.25e-7), f"{MINUS}3.3 × 10⁻⁷"),
        (show.power(float("nan")), "–"),
        (show.minutes(110), f"1{T}h{T}50"),
        (show.minutes(60), f"1{T}h"),
        (show.minutes(55), f"55{T}min"),
    ],
)
def test_a_number_is_shown(text: str, expected: str) -> None:
    assert text == expected
