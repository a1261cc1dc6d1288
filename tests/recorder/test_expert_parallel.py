"""Expert parallelism, really run: four ranks with two of eight experts each."""

from __future__ import annotations

import pytest

from generator.recorder import RUNS
from generator.runs.reader import read_run
from generator.timeline.collectives import Verdict, match_step
from generator.timeline.metrics import METRICS
from generator.timeline.reconstruct import reconstruct
from tests.recorder.small import LAYERS, STEPS, TIMED, Event, SmallRun, record_small

pytest.importorskip("torch", reason="recording needs PyTorch: pip install shardbook[record]")

ROUTERS = ("balanced", "skewed")
RANKS, EXPERTS, WIDTH = 4, 8, 64
#: Tokens of a rank: one sequence.
TOKENS = 32
#: Rows that each rank sends to each other one in a dispatch, by router.
SENT = {"balanced": [8, 8, 8, 8], "skewed": [20, 4, 4, 4]}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, SmallRun]:
    out = tmp_path_factory.mktemp("runs")
    return {
        name: record_small(RUNS[name], out)
        for router in ROUTERS
        for name in (f"single-moe-{router}", f"ep-{router}")
    }


@pytest.mark.parametrize("router", ROUTERS)
def test_losses_agree_with_the_single_process(router: str, runs: dict[str, SmallRun]) -> None:
    ours, single = runs[f"ep-{router}"], runs[f"single-moe-{router}"]
    assert ours.manifest.partner == single.manifest.id
    assert ours.losses == pytest.approx(single.losses, rel=1e-6)


def test_the_routers_differ(runs: dict[str, SmallRun]) -> None:
    losses = [runs[f"ep-{router}"].losses for router in ROUTERS]
    assert losses[0] != pytest.approx(losses[1], rel=1e-5)


def calls_in(run: SmallRun, rank: int, phase: str, layer: int) -> list[Event]:
    (span,) = [e for e in run.layers(rank) if (e["args"]["phase"], e["args"].get("layer")) == (phase, layer)]
    end = span["ts"] + span["dur"]
    return [e["args"] for e in run.spans(rank) if "op" in e["args"] and span["ts"] <= e["ts"] < end]


@pytest.mark.parametrize("router", ROUTERS)
@pytest.mark.parametrize("layer", range(LAYERS))
@pytest.mark.parametrize("rank", range(RANKS))
def test_tokens_go_to_their_experts_and_back_and_so_do_gradients(
    router: str, layer: int, rank: int, runs: dict[str, SmallRun]
) -> None:
    run = runs[f"ep-{router}"]
    counts, dispatch, combine = calls_in(run, rank, "forward", layer)
    assert {c["op"] for c in (counts, dispatch, combine)} == {"all_to_all"}
    # How many rows come: an int64 for each expert, in even parts.
    assert (counts["dtype"], counts["bytes"]) == ("int64", 8 * EXPERTS)
    assert "in_splits" not in counts
    to, come = SENT[router], [SENT[router][rank]] * RANKS
    assert (dispatch["in_splits"], dispatch["out_splits"]) == (to, come)
    assert (combine["in_splits"], combine["out_splits"]) == (come, to)
    row = 4 * WIDTH
    assert dispatch["bytes"] == combine["bytes"] == row * max(TOKENS, sum(come))
    assert dispatch["sent"] == row * (TOKENS - to[rank])
    assert combine["sent"] == row * 3 * to[rank]
    back = calls_in(run, rank, "backward", layer)
    assert [(c["in_splits"], c["out_splits"]) for c in back] == [(to, come), (come, to)]


@pytest.mark.parametrize("router", ROUTERS)
def test_uneven_parts_match_and_count_as_they_are(router: str, runs: dict[str, SmallRun]) -> None:
    run = read_run(runs[f"ep-{router}"].folder)
    matches = [m for step in range(STEPS) for m in match_step(run, step)]
    assert {m.verdict for m in matches} == {Verdict.MATCHED}
    recorded = reconstruct(run, mode="recorded", step=TIMED)
    row, to = 4 * WIDTH, SENT[router]
    for rank in range(RANKS):
        # Dispatch and combine, and their like in backward; the counts' 64 bytes go in even parts.
        expected = LAYERS * (2 * row * (TOKENS - to[rank] + 3 * to[rank]) + 3 / 4 * 8 * EXPERTS)
        assert METRICS["wire_bytes"](recorded, rank=rank, op="all_to_all") == expected
    largest = max(c.bytes for c in recorded.calls if c.op == "all_to_all")
    assert largest == row * RANKS * max(to)


@pytest.mark.parametrize("router", ROUTERS)
def test_a_rank_owns_its_experts_and_all_of_the_rest(router: str, runs: dict[str, SmallRun]) -> None:
    model = runs[f"ep-{router}"].manifest.model
    single = runs[f"single-moe-{router}"].manifest.model
    assert model is not None
    assert single is not None
    assert model.parameters == single.parameters == single.parameters_per_rank[0]
    elsewhere = LAYERS * 6 * 8 * WIDTH * WIDTH
    assert set(model.parameters_per_rank) == {model.parameters - elsewhere}
    (reduced,) = [c for c in runs[f"ep-{router}"].calls() if c["op"] == "all_reduce"]
    assert reduced["bytes"] == 4 * (model.parameters - LAYERS * EXPERTS * 8 * WIDTH * WIDTH)
