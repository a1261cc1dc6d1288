"""What a call costs by its group's shape, from calibrations with known numbers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from generator.errors import UserError
from generator.runs.manifest import Link, LinkRow, nodes_of
from generator.runs.run import Run
from generator.timeline.links import crossing_share, ring_link, table_link
from tests.timeline.synthetic import manifest

KIB, MIB = 1 << 10, 1 << 20
#: ns, and bytes a ns.
LATENCY, RATE, INNER_LATENCY, INNER_RATE = 100_000, 0.25, 20_000, 4.0


def calibration(*rows: LinkRow, ranks_per_node: int = 1) -> Run:
    link = Link("tbf", 2000, 128 * KIB, ranks_per_node=ranks_per_node)
    found = replace(manifest("link", kind="calibration", table=rows), link=link)
    return Run(Path("link"), found, ())


def sends(latency_ns: float, rate: float, nodes: int = 0) -> list[LinkRow]:
    """A link that shows its latency to a kibibyte, and its rate from then on."""
    times = {size: round(latency_ns + (size / rate if size > KIB else 0)) for size in (KIB, MIB, 4 * MIB)}
    return [LinkRow("send", 2, size, ns, ns, ns, 5, size, nodes) for size, ns in times.items()]


def on_two_nodes() -> Run:
    """Two nodes of two ranks; between nodes two send at once, so each has half of the interface."""
    return calibration(
        *sends(LATENCY, RATE / 2, nodes=2), *sends(INNER_LATENCY, INNER_RATE, nodes=1), ranks_per_node=2
    )


def test_ranks_are_counted_by_the_nodes_that_they_are_on() -> None:
    assert [nodes_of(ranks, 2) for ranks in ((0, 1), (2, 3), (0, 2), (1, 2), (0, 1, 2, 3))] == [1, 1, 2, 2, 2]
    assert nodes_of((0, 1, 2, 3), 1) == 0


def test_the_rate_of_an_interface_is_what_all_its_ranks_have_together() -> None:
    link = ring_link(on_two_nodes())
    assert link.bytes_per_ns == pytest.approx(RATE)
    assert link.inner_bytes_per_ns == pytest.approx(INNER_RATE)
    assert (link.latency_ns, link.inner_latency_ns) == (LATENCY, INNER_LATENCY)


def test_a_pair_across_nodes_has_half_of_the_interface_and_a_pair_inside_does_not_use_it() -> None:
    link = ring_link(on_two_nodes())
    across = link.duration_ns("send", MIB, 2, nodes=2)
    assert across == pytest.approx(LATENCY + MIB / (RATE / 2))
    inside = link.duration_ns("all_reduce", MIB, 2, nodes=1)
    assert inside == pytest.approx(2 * INNER_LATENCY + MIB / INNER_RATE)


def test_a_ring_over_all_ranks_crosses_each_boundary_once_a_step_at_the_whole_rate() -> None:
    link = ring_link(on_two_nodes())
    steps = 6
    assert link.duration_ns("all_reduce", MIB, 4, nodes=2) == pytest.approx(
        steps * (LATENCY + MIB / 4 / RATE)
    )


@pytest.mark.parametrize(("members", "nodes"), [(4, 2), (4, 4), (8, 4), (8, 2)])
def test_what_crosses_is_what_leaves_a_node_when_it_is_counted_message_by_message(
    members: int, nodes: int
) -> None:
    inside = members // nodes

    def node(rank: int) -> int:
        return rank // inside

    ring = [(r, (r + 1) % members) for _ in range(members - 1) for r in range(members)]
    everyone = [(a, b) for a in range(members) for b in range(members) if a != b]
    for op, messages in (("all_gather", ring), ("all_to_all", everyone)):
        leaving = sum(node(a) == 0 and node(b) != 0 for a, b in messages)
        assert crossing_share(op, members, nodes) == pytest.approx(leaving / members)


def test_where_each_rank_is_a_node_all_is_as_without_nodes() -> None:
    link = ring_link(calibration(*sends(LATENCY, RATE)))
    for op in ("all_reduce", "all_gather", "all_to_all", "send"):
        members = 2 if op == "send" else 4
        assert link.duration_ns(op, MIB, members, nodes=members) == link.duration_ns(op, MIB, members)


def test_the_table_is_asked_for_the_shape_of_the_group() -> None:
    rows = [
        LinkRow("all_reduce", 2, size, size * ns, 0, 0, 5, 0, nodes)
        for nodes, ns in ((1, 1), (2, 8))
        for size in (KIB, MIB)
    ]
    link = table_link(calibration(*rows, ranks_per_node=2))
    assert link.duration_ns("all_reduce", MIB, 2, nodes=1) == MIB
    assert link.duration_ns("all_reduce", MIB, 2, nodes=2) == 8 * MIB
    with pytest.raises(UserError, match="no all_reduce of 4 ranks over 2 nodes"):
        link.duration_ns("all_reduce", MIB, 4, nodes=2)


def test_a_call_is_parted_into_latency_and_transfer_that_add_up_to_it() -> None:
    rows = [
        LinkRow("all_reduce", 4, size, ns, 0, 0, 5, 0) for size, ns in ((4, 700), (KIB, 900), (MIB, 9000))
    ]
    table = table_link(calibration(*rows))
    assert table.parts_ns("all_reduce", 4, 4) == (700, 0)
    assert table.parts_ns("all_reduce", KIB, 4) == (700, 200)
    assert table.parts_ns("all_reduce", MIB, 1) == (0, 0)
    ring = ring_link(calibration(*sends(LATENCY, RATE)))
    assert ring.parts_ns("all_reduce", MIB, 4) == (6 * LATENCY, round(1.5 * MIB / RATE))
    assert ring.parts_ns("barrier", 0, 4) == (3 * LATENCY, 0)
    nodes = ring_link(on_two_nodes())
    for shape in ((2, 1), (4, 2)):
        assert sum(nodes.parts_ns("all_gather", MIB, *shape)) == nodes.duration_ns("all_gather", MIB, *shape)
    assert nodes.parts_ns("all_reduce", MIB, 2, 1)[0] == 2 * INNER_LATENCY
