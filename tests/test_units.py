"""How quantities are shown, and what a rank sends."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.units import kind_of, magnitude, quantity, show, show_number, wire_bytes


@pytest.mark.parametrize(
    ("value", "unit", "asked", "shown"),
    [
        (0.264123, "", "%", "26.4 %"),
        (3 / 11, "", "%", "27.3 %"),
        (0.1534, "", "%", "15.34 %"),
        (1_234_567, "ns", None, "1.235 ms"),
        (526_123_456, "ns", None, "526 ms"),
        (1_234_567_890, "ns", "ms", "1 235 ms"),
        (12, "ns", None, "12 ns"),
        (1500, "ns", "us", "1.5 µs"),
        (6_857_216, "B", None, "6.86 MB"),
        (1_048_576, "B", "MiB", "1 MiB"),
        (96, "", None, "96"),
        (6_857_216, "", None, "6 857 216"),
        (96 / 4, "", None, "24"),
        (-12.3456, "", None, "−12.35"),
        (0, "", None, "0"),
        (1.25e-7, "", None, "1.25 × 10⁻⁷"),
        (9.9996, "", None, "10.00"),
        (1 / 3, "", None, "0.333"),
    ],
)
def test_a_quantity_is_shown_for_a_reader(value: float, unit: str, asked: str | None, shown: str) -> None:
    assert show(quantity(value, unit), asked) == shown.replace(" ", "\u2009").replace("\u2009×\u2009", " × ")


def test_a_rate_is_shown_in_the_unit_it_reads_best_in() -> None:
    assert show(quantity(0.25, "B") / quantity(1, "ns")) == "250\u2009MB/s"


def test_operations_are_counted_and_keep_their_name() -> None:
    operations = quantity(44_023_414_784, "FLOP")
    assert show(operations) == "44.0\u2009GFLOP"
    assert show(operations / quantity(500, "ms")) == "88.0\u2009GFLOP/s"
    assert show(operations / quantity(1, "GFLOP")) == "44.0"
    assert show(operations, "") == "44\u2009023\u2009414\u2009784"
    assert magnitude(quantity(2, "TFLOP/s"), "GFLOP/s") == pytest.approx(2000, rel=1e-12)
    with pytest.raises(ValueError, match="a product of units cannot be shown"):
        show(quantity(3) / quantity(1, "ns"))
    with pytest.raises(ValueError, match="cannot be given in GFLOP"):
        show(quantity(1, "B"), "GFLOP")


@pytest.mark.parametrize(("value", "unit"), [(1, "MB"), (1, ""), (1, "%")])
def test_a_quantity_is_not_shown_in_a_unit_of_another_kind(value: float, unit: str) -> None:
    with pytest.raises(ValueError, match="cannot be given in ms"):
        show(quantity(value, unit), "ms")


@pytest.mark.parametrize("unit", ["sec", "m", "MB/s/s", "ms/", "%%"])
def test_an_unknown_unit_is_refused(unit: str) -> None:
    with pytest.raises(ValueError, match="unknown unit"):
        quantity(1, unit)


def test_counts_stay_exact() -> None:
    assert magnitude(quantity(2**60 + 1), "") == 2**60 + 1


def test_kinds_have_names() -> None:
    assert [kind_of(quantity(1, u)) for u in ("ms", "B", "", "MB/s")] == [
        "a time",
        "a size in bytes",
        "a pure number",
        "a rate",
    ]
    assert kind_of(quantity(1, "ms") * quantity(1, "B")) == "a product of units"


@given(st.floats(min_value=1e-12, max_value=1e12) | st.floats(min_value=-1e12, max_value=-1e-12))
def test_a_shown_number_is_within_its_last_digit(value: float) -> None:
    plain = show_number(value).replace("\u2009", "").replace("−", "-")
    if "×" in plain:
        number, _, power = plain.partition(" × 10")
        read = float(number) * 10.0 ** int(power.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")))
    else:
        read = float(plain)
    # Three digits, or four after a leading 1: at most half a unit of the last.
    assert math.isclose(read, value, rel_tol=0.0026)
    assert re.fullmatch(r"−?[0-9\u2009]+(\.[0-9]+)?( × 10⁻?[⁰¹²³⁴⁵⁶⁷⁸⁹]+)?", show_number(value))


@pytest.mark.parametrize(
    ("op", "sent"),
    [
        ("all_reduce", 1500),
        ("all_gather", 750),
        ("reduce_scatter", 750),
        ("all_to_all", 750),
        ("send", 1000),
        ("recv", 0),
        ("barrier", 0),
    ],
)
def test_wire_bytes_of_four_ranks(op: str, sent: int) -> None:
    assert wire_bytes(op, 1000, 4) == sent


@given(st.integers(min_value=0, max_value=10**12), st.integers(min_value=1, max_value=64))
def test_an_all_reduce_sends_what_its_two_halves_send(payload: int, members: int) -> None:
    halves = wire_bytes("reduce_scatter", payload, members) + wire_bytes("all_gather", payload, members)
    assert wire_bytes("all_reduce", payload, members) == pytest.approx(halves)


def test_one_rank_alone_sends_nothing() -> None:
    assert wire_bytes("all_reduce", 1000, 1) == 0


def test_an_operation_without_a_ring_is_refused() -> None:
    with pytest.raises(ValueError, match="allreduce"):
        wire_bytes("allreduce", 1, 2)
