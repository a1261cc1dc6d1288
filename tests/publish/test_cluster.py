"""Which cluster a run's ratio stands for, against the bytes and FLOP of a step counted one by one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from generator.publish.cluster import (
    BYTES_PER_S,
    ELEMENT_BYTES,
    FLOP_PER_S,
    stage_size,
    stands_for,
    tensor_width,
    tokens_a_rank,
)
from generator.runs.manifest import Link, Mesh, Options, Ratio
from generator.units import wire_bytes
from tests.timeline.synthetic import manifest

LAYERS, WIDTH, TOKENS = 32, 4096, 8192
PARAMETERS = LAYERS * 12 * WIDTH**2


def ratio(sent_bytes: float, flop: float) -> float:
    """Communication alone over computation alone, of one rank and step."""
    return (sent_bytes / BYTES_PER_S) / (flop / FLOP_PER_S)


@pytest.mark.parametrize("ranks", [4, 64])
def test_data_parallelism_is_told_by_its_tokens(ranks: int) -> None:
    flop = 6 * PARAMETERS * TOKENS
    gradients = PARAMETERS * ELEMENT_BYTES
    sent = wire_bytes("all_reduce", gradients, ranks)
    assert tokens_a_rank(ratio(sent, flop), ranks, payloads=2) == pytest.approx(TOKENS)
    gathered = 2 * wire_bytes("all_gather", gradients, ranks) + wire_bytes("reduce_scatter", gradients, ranks)
    assert tokens_a_rank(ratio(gathered, flop), ranks, payloads=3) == pytest.approx(TOKENS)


def test_many_ranks_at_8k_tokens_come_to_about_two_thirds() -> None:
    assert tokens_a_rank(0.65, 10**6, payloads=2) == pytest.approx(8192, rel=0.01)


@pytest.mark.parametrize("ranks", [2, 8])
def test_tensor_parallelism_is_told_by_its_width(ranks: int) -> None:
    one = wire_bytes("all_reduce", TOKENS * WIDTH * ELEMENT_BYTES, ranks)
    flop = 6 * PARAMETERS * TOKENS / ranks
    assert tensor_width(ratio(4 * LAYERS * one, flop), ranks) == pytest.approx(WIDTH)


def test_a_pipeline_is_told_by_the_size_of_its_stages() -> None:
    stages = 4
    passed = 2 * (stages - 1) * TOKENS * WIDTH * ELEMENT_BYTES / stages
    flop = 6 * PARAMETERS * TOKENS / stages
    assert stage_size(ratio(passed, flop), stages) == pytest.approx(WIDTH * LAYERS / stages)


def test_a_run_says_it_in_words_where_a_form_describes_it() -> None:
    run = replace(manifest("r"), ratio=Ratio(36.0, 100.0, 0.36))
    assert stands_for(replace(run, mesh=Mesh(dp=4))) == "11\u2009000 tokens a rank"
    gathered = replace(run, mesh=Mesh(shard=4), options=Options(reshard_after_forward=True))
    assert stands_for(gathered) == "17\u2009000 tokens a rank"
    assert stands_for(replace(run, mesh=Mesh(tp=4))) == "a model of width 15\u2009000"
    assert stands_for(replace(run, mesh=Mesh(pp=4))) == "stages with 930 for width × layers"


@pytest.mark.parametrize(
    "change",
    [
        {"mesh": Mesh()},
        {"mesh": Mesh(dp=2, tp=2)},
        {"mesh": Mesh(cp=4)},
        {"ratio": None},
        {"ratio": Ratio(0.0, 1.0, 0.0)},
        {"options": Options(recompute="reentrant")},
        {"options": Options(reduce_each=True)},
        {"link": Link("tbf", 2000, 0, ranks_per_node=2)},
    ],
)
def test_other_runs_stand_for_none(change: dict[str, object]) -> None:
    run = replace(manifest("r"), ratio=Ratio(36.0, 100.0, 0.36), mesh=Mesh(dp=4))
    assert stands_for(run)
    assert stands_for(replace(run, **change)) == ""
